"""Check what people enter about members and invitations."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, Self

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock, plain_text
from portal.schema import keys
from portal.web import locales
from tenants.membership import invitations, members, own_profile
from tenants.membership.mail_choices import Choices, MailKind
from tenants.membership.members import AtHand, ListedMember
from tenants.sign_in import accounts
from tenants.sign_in.stored import folded
from tenants.tenancy.context import MEMBER_ROLES, Role, TenantContext

Choice = tuple[str, Any]


class MemberInput(forms.TextInput):
    """A text field for one of many members. The browser offers those at hand, and of others those whom the server finds
    while somebody types. Choices that are no members are always offered."""

    choices: Sequence[Choice] = ()
    several = False  # with commas between

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        labels = dict(self.choices)
        about = {
            "list": f"{name}-members",
            "autocomplete": "off",
            "spellcheck": "false",
            "dir": "auto",
            "placeholder": str(labels.pop("", "")),
            "hx-get": f"{reverse('tickets:people_options')}?{urlencode({'several' if self.several else 'of': name})}",
            "hx-trigger": "input changed delay:150ms",
            "hx-target": f"#{name}-found",
            "hx-swap": "innerHTML",
            "hx-sync": "this:replace",
            "hx-push-url": "false",
            "data-quiet": "",
        }
        unknown = "" if keys.USER_ID.match(str(value or "")) else value  # an id says nothing to anybody
        return super().get_context(name, labels.get(value, unknown), {**about, **(attrs or {})})

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        field = super().render(name, value, attrs, renderer)
        people = [label for key, label in self.choices if keys.USER_ID.match(str(key))]
        others = [label for key, label in self.choices if key and label not in people]
        listed = '{}<datalist id="{}-members">{}<span id="{}-found">{}</span></datalist>'
        return format_html(listed, field, name, _options(others), name, _options(people))


def _options(labels: Iterable[Any]) -> SafeString:
    return format_html_join("", '<option value="{}"></option>', ((label,) for label in labels))


class TypedMemberField(forms.ChoiceField):
    """Take a choice, or the name or address of an agent whom `find` finds by it. The value is an id."""

    widget = MemberInput
    hint: Any = gettext_lazy("Type a name, or an address where several people have the name.")

    def __init__(self, find: Callable[[str], Sequence[ListedMember]], **how: Any) -> None:
        super().__init__(**how)
        self._find = find
        self.help_text = self.help_text or self.hint

    def to_python(self, value: Any) -> str:
        typed, choices = str(value or "").strip(), dict(self.widget.choices)
        if typed in choices:
            return typed
        sought = _address(typed).casefold()  # of "Name <address>"
        agents = [one for one in self._find(sought) if one.is_agent]
        named = [key for key, label in choices.items() if str(label).casefold() == typed.casefold()]
        named += [one.id for one in agents if sought in (one.name.casefold(), one.email.casefold())]
        found = set(named or [one.id for one in agents])
        if not found:
            raise ValidationError(_("Nobody here who can have tickets is called “%(typed)s”.") % {"typed": typed})
        if len(found) > 1:
            told = _("Several people are called “%(typed)s”. Type the address of one of them.")
            raise ValidationError(told % {"typed": typed})
        (user_id,) = found
        self.choices = [*choices.items(), (user_id, typed)]
        return str(user_id)


class MembersInput(MemberInput):
    """A text field for several of many members."""

    several = True


class TypedMembersField(TypedMemberField):
    """Take several members, by names or addresses with commas between. The value is a list of ids."""

    widget = MembersInput
    hint = gettext_lazy("Type names, or addresses where several people have the name, separated by commas.")

    def clean(self, value: Any) -> Any:
        typed = [one for one in str(value or "").split(",") if one.strip()]
        return [user_id for user_id in map(self.to_python, typed) if user_id]


@dataclass(frozen=True)
class OfferedMembers:
    """The agents that a form offers, as ids and names; `find` finds others, None where these are all."""

    choices: tuple[Choice, ...]
    find: Callable[[str], Sequence[ListedMember]] | None = None

    def __iter__(self) -> Iterator[Choice]:
        return iter(self.choices)

    def field(self, *others: Choice, takes: type[TypedMemberField] = TypedMemberField, **how: Any) -> forms.ChoiceField:
        """Return the field of one agent, behind the other choices: a list, or in a large desk a text field."""
        choices = [*others, *self.choices]
        if self.find is None:
            return forms.ChoiceField(choices=choices, required=False, **how)
        return takes(self.find, choices=choices, required=False, **how)


def labels(people: Collection[ListedMember], *, by_address: str = "") -> dict[str, str]:
    """Return how lists call these people, by id: by name, and with the address where several have the name, or only
    the address has the text `by_address`. TypedMemberField takes both."""
    times = Counter(one.name for one in people)
    return {
        one.id: one.name
        if times[one.name] == 1 and by_address.casefold() in one.name.casefold()
        else f"{one.name} <{one.email}>"
        for one in people
    }


def offered_members(tenant: TenantContext, known: AtHand, *, also: Iterable[str] = (), but: str = "") -> OfferedMembers:
    """Return the agents at hand except one, who is at work before the others, and those who were chosen. Costs what
    `with_ids` does."""
    me, repository = tenant.user_id, tenant.repository
    people = members.with_ids(repository, known, chain([me], also)).people
    agents = [one for one in people if one.is_agent and one.id != but]
    shown = labels(agents)
    names = (
        (one.id, f"{one.name} {_('(you)')}" if one.id == me else shown[one.id])
        for one in sorted(agents, key=lambda one: one.id != me)
    )
    return OfferedMembers(tuple(names), None if known.is_all else partial(members.matching, repository))


class InviteForm(forms.Form):
    """Take e-mail addresses, one or a pasted list, and the role for all of them: none above one's own."""

    addresses = forms.CharField(
        label=gettext_lazy("E-mail addresses"),
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"), initial=Role.AGENT.value)

    def __init__(self, role: Role, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [
            (r.value, _("%(role)s: can %(abilities)s") % {"role": r.label, "abilities": r.abilities})
            for r in MEMBER_ROLES
            if role.at_least(r)
        ]
        self.fields["role"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField
        # Browsers cut pasted text to the attribute without a word; a form that is refused loses nothing.
        self.fields["addresses"].widget.attrs.pop("maxlength")
        most = {"count": invitations.MOST_AT_ONCE}
        self.fields["addresses"].help_text = _("One per line, or separated by commas. Up to %(count)s at once.") % most

    def clean_addresses(self) -> list[str]:
        addresses: list[str] = []
        wrong: list[str] = []
        for number, line in enumerate(self.cleaned_data["addresses"].splitlines(), 1):
            for address in filter(None, map(_address, re.split("[,;]", line))):
                if not _is_address(address):
                    wrong.append(
                        _("Line %(number)s: “%(address)s” is not an e-mail address.")
                        % {"number": number, "address": address[:100]}
                    )
                    continue
                try:
                    folded(address)
                    addresses.append(address)
                except ValueError as error:
                    wrong.append(
                        _("Line %(number)s: “%(address)s”. %(why)s")
                        % {"number": number, "address": address[:100], "why": error}
                    )
        if wrong:
            more = [_("And %(count)s more lines.") % {"count": len(wrong) - 10}] if len(wrong) > 10 else []
            raise ValidationError([*wrong[:10], *more, _("No invitations were sent.")])
        if not addresses:
            raise ValidationError(_("Enter at least one e-mail address."))
        if len(addresses) > invitations.MOST_AT_ONCE:
            raise ValidationError(
                _("You can invite up to %(most)s people at once. This list has %(count)s.")
                % {"most": invitations.MOST_AT_ONCE, "count": len(addresses)}
            )
        return addresses


def _address(line: str) -> str:
    """Return the address in a line, which may be pasted as "Name <address>"."""
    match = re.search(r"<([^<>]+)>\s*$", line)
    return (match[1] if match else line).strip()


def _is_address(text: str) -> bool:
    """Tell whether a text is an e-mail address, written with the characters that mail is delivered by.

    Mail servers drop invisible characters from a domain and narrow wide ones. With those in it, an address would stand
    for a second account with the mailbox of another.
    """
    try:
        validate_email(text)
    except ValidationError:
        return False
    return unicodedata.normalize("NFKC", text) == text and not plain_text.has_controls(text)


class RoleForm(forms.Form):
    """Take the new role of a member, and the one that the page showed."""

    role = forms.ChoiceField(choices=[(role.value, role.label) for role in MEMBER_ROLES])
    seen = forms.ChoiceField(choices=[(role.value, role.label) for role in MEMBER_ROLES], required=False)


class ProfileForm(forms.Form):
    """Take a person's name, and how they read pages."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        help_text=gettext_lazy("Others see it beside all that you do from now on."),
    )
    zone = forms.ChoiceField(label=gettext_lazy("Time zone"), widget=forms.Select(attrs={"translate": "no"}))
    date_form = forms.ChoiceField(
        label=gettext_lazy("Dates and times"),
        choices=[*accounts.DATE_FORMS.items()],
        widget=forms.Select(attrs={"translate": "no"}),
    )
    number_form = forms.ChoiceField(
        label=gettext_lazy("Numbers"), choices=[*accounts.NUMBER_FORMS.items()], required=False
    )
    first_weekday = forms.ChoiceField(
        label=gettext_lazy("First day of the week"), choices=[*accounts.WEEK_STARTS.items()]
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        choices=[(value or accounts.DESK, label) for value, label in accounts.LANGUAGES.items()],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs.pop("maxlength")
        chosen = self.initial.get("zone") or self.data.get("zone") or ""
        offered = [(accounts.DESK, _("As the desk has it")), *clock.choices()]
        if chosen in clock.zone_names() and chosen not in dict(offered):
            offered.append((chosen, chosen))  # a name of former times, as some browsers have it
        self.fields["zone"].choices = offered  # type: ignore[attr-defined]  # a ChoiceField
        locale = locales.current()
        self.fields["zone"].help_text = _("It is now %(moment)s in %(zone)s.") % {
            "moment": locale.moment(clock.now()),
            "zone": locale.zone,
        }
        for name in ("zone", "language"):
            self.initial[name] = self.initial.get(name) or accounts.DESK
        for field in self.fields.values():
            field.show_hidden_initial = True

    def clean_language(self) -> str:
        chosen: str = self.cleaned_data["language"]
        return "" if chosen == accounts.DESK else chosen


class NewsForm(forms.Form):
    """Take of what a desk tells a member: of each kind in the inbox and by mail, and when mail is sent."""

    WAYS: Final = ("notice", "mail")

    digest = forms.ChoiceField(label=gettext_lazy("Send me mail"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hours = [(str(hour), _("Once a day, at %(hour)s:00") % {"hour": f"{hour:02}"}) for hour in range(24)]
        at_once = ("", _("At once: one mail for each minute with news"))
        self.fields["digest"].choices = [at_once, *hours]  # type: ignore[attr-defined]  # a ChoiceField
        self.fields |= {f"{way}_{kind}": forms.BooleanField(required=False) for way in self.WAYS for kind in MailKind}
        for field in self.fields.values():
            field.show_hidden_initial = True

    @classmethod
    def of(cls, chosen: Choices) -> Self:
        """Make the form of what a member has chosen."""
        digest = "" if chosen.digest_hour is None else str(chosen.digest_hour)
        refused = {"notice": chosen.unwanted_notices, "mail": chosen.unwanted_mail}
        wanted = {f"{way}_{kind}": kind not in refused[way] for way in cls.WAYS for kind in MailKind}
        return cls(initial={"digest": digest, **wanted})

    @property
    def rows(self) -> list[tuple[MailKind, forms.BoundField, forms.BoundField]]:
        return [(kind, self[f"notice_{kind}"], self[f"mail_{kind}"]) for kind in MailKind]

    def wanted(self, way: str) -> set[MailKind]:
        """Return the kinds that are wanted in this way, when the form is valid."""
        return {kind for kind in MailKind if self.cleaned_data[f"{way}_{kind}"]}


class SignatureForm(forms.Form):
    """Take the text that stands under a person's public replies."""

    signature = forms.CharField(
        label=gettext_lazy("Signature"),
        required=False,
        help_text=gettext_lazy(
            "It stands under your public replies, as they leave by mail, above the desk's own. Plain text."
        ),
        widget=forms.Textarea(attrs={"rows": 4, "data-characters": str(own_profile.SIGNATURE_LIMIT)}),
        show_hidden_initial=True,
    )
