"""The form of a rule: when, if and then. The rules check what is typed; the form shows an error at its field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.errors import Invalid
from tenants.membership.forms import OfferedMembers
from tenants.membership.members import AtHand
from tickets.bulk_jobs.forms import NOBODY, BulkEditForm
from tickets.custom_fields.definitions import Definitions
from tickets.ready_answers.filling import PLACEHOLDERS
from tickets.rules import definition
from tickets.rules.definition import ASSIGNEE_WORD, SETTABLE, By, On, Only, Rule
from tickets.rules.rule_changes import MAIL_LIMIT, NAME_LIMIT
from tickets.ticket import fields
from tickets.ticket.custom_values import FieldType
from tickets.ticket.fields import CUSTOM, CUSTOM_PREFIX, DEFINED, DESCRIPTION, TAGS, TITLE, Status

Choices = Sequence[tuple[str, str]]

EVENTS: Final = {
    On.CREATED: gettext_lazy("A ticket is created"),
    On.CHANGED: gettext_lazy("A ticket is changed"),
    On.ANSWERED: gettext_lazy("A public comment is added"),
    On.RATED: gettext_lazy("A ticket is rated"),
    On.DUE: gettext_lazy("A deadline comes near or has passed"),
}
SIDES: Final = {
    By.ANYBODY: gettext_lazy("Anybody"),
    By.DESK: gettext_lazy("A member of this desk"),
    By.OUTSIDE: gettext_lazy("Somebody outside"),
}
BY: Final = {
    By.ANYBODY: "",
    By.DESK: gettext_lazy("by a member of this desk"),
    By.OUTSIDE: gettext_lazy("by somebody outside"),
}
MOMENTS: Final = {
    "due": gettext_lazy("Due"),
    "due_soon": gettext_lazy("Due soon"),
    "breached": gettext_lazy("Breached"),
}
_IF: Final = "if_"
_MAIL: Final = {"mail": "mail_text"}


@dataclass(frozen=True)
class Offered:
    """The choices of a form that the code does not declare: members, shared answers and endpoints, as ids and names."""

    people: OfferedMembers
    known: AtHand
    answers: Choices
    webhooks: Choices
    defined: Definitions


def whats(defined: Definitions) -> dict[str, str]:
    """Return the fields and moments that the event of a rule can name, with their labels."""
    own = {f"{CUSTOM_PREFIX}{one.id}": one.name for one in defined.in_use}
    changed = [one for one in (TITLE, DESCRIPTION, TAGS, *SETTABLE) if one is not CUSTOM]
    return {one.name: one.label for one in changed} | {fields.REQUESTER: _("Requester")} | own


class RuleForm(BulkEditForm):
    """A new rule, or a stored one in its `revision`: what it sets is asked as a bulk change asks it.

    `given` is what a valid form asks for, as `definition.shown` has it. Conditions of a stored rule that the form does
    not ask, such as days, stay as they are.
    """

    def __init__(self, data: Any = None, *, offered: Offered, stored: Rule | None = None, revision: int = 0) -> None:
        shown = definition.shown(stored) if stored else {}
        initial = {"revision": revision, **(_initial(stored, shown) if stored else {})}
        super().__init__(data, people=offered.people, defined=offered.defined, initial=initial)
        self._shown, self.given = shown, dict[str, Any]()
        then = {name: self.fields.pop(name) for name in [*self.fields]}
        self.fields["name"] = forms.CharField(
            label=_("Name"),
            widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto", "data-characters": NAME_LIMIT}),
            error_messages={"required": _("Enter a name.")},
        )
        self.fields |= self._when(offered.defined)
        self.fields |= self._if(offered)
        self.fields |= then
        self.fields |= self._others(offered)
        self.fields["revision"] = forms.IntegerField(required=False, widget=forms.HiddenInput)
        every: dict[str, Any] = {name: one for name, one in self.fields.items() if isinstance(one, forms.ChoiceField)}
        for name, field in every.items():  # what is stored and no longer offered can stay
            value = str(initial.get(name) or "")
            if value and value not in _values(field.choices):
                field.choices = [*field.choices, (value, _("(no longer offered)"))]

    def _when(self, defined: Definitions) -> dict[str, forms.Field]:
        what = [
            ("", _("Any change")),
            (_("When a ticket is changed"), [*whats(defined).items()]),
            (_("When a deadline comes"), [*MOMENTS.items()]),
        ]
        return {
            "event": forms.ChoiceField(label=_("When"), choices=[(on.value, label) for on, label in EVENTS.items()]),
            "what": forms.ChoiceField(label=_("What is changed or due"), choices=what, required=False),
            "by": forms.ChoiceField(
                label=_("Who does it"), choices=[(by.value, label) for by, label in SIDES.items()], required=False,
                help_text=_("A change that a rule makes is by nobody; “Anybody” includes it."),
            ),
        }  # fmt: skip

    def _if(self, offered: Offered) -> dict[str, forms.Field]:
        statuses = [("any", _("Any")), ("unresolved", _("Unresolved")), *((one.value, one.label) for one in Status)]
        found: dict[str, forms.Field] = {
            "status": forms.ChoiceField(label=_("Status"), choices=statuses, required=False),
            "resolver": offered.people.field(("", _("Any")), (NOBODY, _("Nobody")), label=_("Assignee")),
        }
        for of in DEFINED:
            if known := offered.defined.in_use_of(of):
                found[of.name] = _choice(of.label, [(one.id, one.name) for one in known])
        for choice in fields.FILTERS.values():
            found[choice.name] = _choice(choice.label, [pair for pair in choice.choices if pair[0]])
        found["tag"] = _line(_("Tag"))
        for own in offered.defined.in_use:
            if own.type is FieldType.CHOICE:
                found[own.id] = _choice(own.name, [(one, one) for one in own.choices])
            elif own.type is FieldType.CHECKBOX:
                found[own.id] = _choice(own.name, [("yes", _("Ticked")), ("no", _("Not ticked"))])
            else:
                range_ = {FieldType.NUMBER: "10..20", FieldType.DATE: "2026-11-01..2026-11-30"}.get(own.type)
                hint = _("A value, or a range such as %(range)s.") % {"range": range_} if range_ else ""
                found[own.id] = _line(own.name, hint)
        for field in found.values():
            field.label = _("%(field)s is") % {"field": field.label}
        return {f"{_IF}{name}": field for name, field in found.items()}

    def _others(self, offered: Offered) -> dict[str, forms.Field]:
        to = (("", _("Nobody")), (ASSIGNEE_WORD, _("The assignee")))
        return {
            "answer": _choice(_("Post a ready answer"), offered.answers, _("Do not answer"),
                              help_text=_("A shared ready answer becomes a public comment.")),
            "webhook": _choice(_("Call a webhook"), offered.webhooks, _("Call none")),
            "mail_to": offered.people.field(*to, label=_("Send a mail to")),
            "mail_text": forms.CharField(
                label=_("Text of the mail"), required=False,
                help_text=_("Placeholders: %(names)s.") % {"names": ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)},
                widget=forms.Textarea(attrs={"rows": 4, "dir": "auto", "data-characters": MAIL_LIMIT}),
            ),
        }  # fmt: skip

    @property
    def parts(self) -> list[tuple[str, str, list[Any]]]:
        """Return the parts of the form, each with its heading, a sentence and its fields."""
        when = ["event", "what", "by"]
        only = [name for name in self.fields if name.startswith(_IF)]
        then = [name for name in self.fields if name not in ("name", "revision", *when, *only)]
        return [
            (heading, text, [self[name] for name in names])
            for heading, text, names in (
                (_("When"), _("The event that starts the rule."), when),
                (_("If"), _("The ticket must be all of this."), only),
                (_("Do"), _("The rule does this with the ticket."), then),
            )
        ]

    def clean(self) -> dict[str, Any]:
        data, values = self.cleaned_data, self.values()
        if kept := _emptied(self._shown):
            values[CUSTOM.name] = kept | values.get(CUSTOM.name, {})
        asked = {name: value for name in self.fields if name.startswith(_IF) and (value := data.get(name))}
        only = {name: value for name, value in self._shown.get("if", {}).items() if f"{_IF}{name}" not in self.fields}
        only |= {name.removeprefix(_IF): value for name, value in asked.items()}
        try:
            Only.parse(only)
        except Invalid as error:
            self.refuse(error, prefix=_IF)
        self.given = {
            "when": {name: data.get(name) or "" for name in ("event", "by", "what")},
            "if": only,
            "then": {
                "set": values,
                **{name: _tags(data.get(name) or "") for name in ("add_tags", "remove_tags")},
                **{name: data.get(name) or "" for name in ("answer", "webhook")},
                "mail": {"to": data.get("mail_to"), "text": data.get("mail_text") or ""},
            },
        }
        return data

    def refuse(self, error: Invalid, *, prefix: str = "") -> None:
        """Say at its field what is wrong, or above the form where it has none."""
        name = f"{prefix}{_MAIL.get(error.field or '', error.field)}"
        self.add_error(name if name in self.fields else None, error.message)


def _initial(rule: Rule, shown: Mapping[str, Any]) -> dict[str, Any]:
    then, values = shown["then"], dict(shown["then"]["set"])
    own = values.pop(CUSTOM.name, {})
    mail = then["mail"] or {"to": "", "text": ""}
    return {
        "name": rule.name,
        **shown["when"],
        **{f"{_IF}{name}": value for name, value in shown["if"].items()},
        **{name: value or NOBODY for name, value in values.items()},
        **own,
        **{name: ", ".join(then[name]) for name in ("add_tags", "remove_tags")},
        "answer": then["answer"],
        "webhook": then["webhook"],
        "mail_to": mail["to"],
        "mail_text": mail["text"],
    }


def _emptied(shown: Mapping[str, Any]) -> dict[str, str]:
    """Return the custom fields that a stored rule empties, which the form cannot ask for."""
    own = shown["then"]["set"].get(CUSTOM.name, {}) if shown else {}
    return {name: "" for name, text in own.items() if not text}


def _tags(text: str) -> list[str]:
    return [one for one in text.split(",") if one.strip()]


def _choice(label: str, choices: Choices, none: str = "", **how: Any) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=[("", none or _("Any")), *choices], required=False, **how)


def _line(label: str, help_text: str = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _values(choices: Any) -> set[str]:
    """Return the values of choices, those of groups too."""
    found = set[str]()
    for value, label in choices:
        found |= _values(label) if isinstance(label, list | tuple) else {str(value)}
    return found
