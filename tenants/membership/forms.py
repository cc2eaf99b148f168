"""Check what people enter about members and invitations."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from portal import clock, plain_text, zones
from portal.web import locales
from tenants.membership import invitations, own_profile
from tenants.sign_in import profiles
from tenants.sign_in.stored import folded
from tenants.tenancy.roles import Role


class InviteForm(forms.Form):
    """Take e-mail addresses, one or a pasted list, and the role for all of them: none above one's own."""

    addresses = forms.CharField(
        label="E-mail addresses",
        max_length=20_000,
        help_text=f"One per line, or separated by commas. Up to {invitations.MOST_AT_ONCE} at once.",
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label="Role", initial=Role.AGENT.value)

    def __init__(self, role: Role, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(r.value, f"{r.label}: can {r.abilities}") for r in Role if role.at_least(r)]
        self.fields["role"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField
        # Browsers cut pasted text to the attribute without a word; a form that is refused loses nothing.
        self.fields["addresses"].widget.attrs.pop("maxlength")

    def clean_addresses(self) -> list[str]:
        addresses: list[str] = []
        wrong: list[str] = []
        for number, line in enumerate(self.cleaned_data["addresses"].splitlines(), 1):
            for address in filter(None, map(_address, re.split("[,;]", line))):
                if not _is_address(address):
                    wrong.append(f"Line {number}: \u201c{address[:100]}\u201d is not an e-mail address.")
                    continue
                try:
                    folded(address)
                    addresses.append(address)
                except ValueError as error:
                    wrong.append(f"Line {number}: \u201c{address[:100]}\u201d. {error}")
        if wrong:
            more = [f"And {len(wrong) - 10} more lines."] if len(wrong) > 10 else []
            raise ValidationError([*wrong[:10], *more, "No invitations were sent."])
        if not addresses:
            raise ValidationError("Enter at least one e-mail address.")
        if len(addresses) > invitations.MOST_AT_ONCE:
            raise ValidationError(
                f"You can invite up to {invitations.MOST_AT_ONCE} people at once. This list has {len(addresses)}."
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
    """Take the new role of a member."""

    role = forms.ChoiceField(choices=[(role.value, role.label) for role in Role])


class ProfileForm(forms.Form):
    """Take a person's name, and how they read pages."""

    name = forms.CharField(label="Name", max_length=100, help_text="Others see it beside all that you do from now on.")
    zone = forms.ChoiceField(label="Time zone")
    date_form = forms.ChoiceField(label="Dates and times", choices=[*profiles.DATE_FORMS.items()])
    number_form = forms.ChoiceField(label="Numbers", choices=[*profiles.NUMBER_FORMS.items()], required=False)
    first_weekday = forms.ChoiceField(label="First day of the week", choices=[*profiles.WEEK_STARTS.items()])
    language = forms.ChoiceField(
        label="Language",
        choices=[(value or profiles.DESK, label) for value, label in profiles.LANGUAGES.items()],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs.pop("maxlength")
        chosen = self.initial.get("zone") or self.data.get("zone") or ""
        offered = [(profiles.DESK, "As the desk has it"), *zones.choices()]
        if chosen in zones.names() and chosen not in dict(offered):  # a name of former times, as some browsers have it
            offered.append((chosen, chosen))
        self.fields["zone"].choices = offered  # type: ignore[attr-defined]  # a ChoiceField
        locale = locales.current()
        self.fields["zone"].help_text = f"It is now {locale.moment(clock.now())} in {locale.zone}."
        for name in ("zone", "language"):
            self.initial[name] = self.initial.get(name) or profiles.DESK

    def clean_language(self) -> str:
        chosen: str = self.cleaned_data["language"]
        return "" if chosen == profiles.DESK else chosen


class SignatureForm(forms.Form):
    """Take the text that stands under a person's public replies."""

    signature = forms.CharField(
        label="Signature",
        required=False,
        help_text="It stands under your public replies, as they leave by mail, above the desk's own. Plain text.",
        widget=forms.Textarea(attrs={"rows": 4, "data-characters": str(own_profile.SIGNATURE_LIMIT)}),
    )
