"""Form fields for custom fields, and the forms by which admins define them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.errors import Invalid
from portal.web import locales
from tickets.custom_fields.defining import USES, FieldWishes, KindWishes
from tickets.custom_fields.definitions import (
    CHOICES_LIMIT,
    HELP_LIMIT,
    NAME_LIMIT,
    TEMPLATE_LIMIT,
    CustomField,
    Definitions,
    TicketKind,
)
from tickets.ticket import custom_values
from tickets.ticket.custom_values import YES, FieldType
from tickets.ticket.fields import DefinedField

_LINE: Final = {"autocomplete": "off", "dir": "auto"}
_HELP: Final = {FieldType.NUMBER: gettext_lazy("A number such as 12 or 12.5.")}


class ValueField(forms.Field):
    """A value of one custom field. Its input takes what was stored once, even where that no longer fits."""

    def __init__(self, of: CustomField, *, required: bool, stored: str) -> None:
        help_text = of.help or _HELP.get(of.type, "")
        is_box = of.type is FieldType.CHECKBOX
        super().__init__(label=of.name, required=required, help_text=help_text, widget=_widget(of, stored))
        needed = _("Tick “%(name)s”.") if is_box else _("Enter a value for “%(name)s”.")
        self.error_messages["required"] = needed % {"name": of.name}
        self.of, self.was = of, stored

    def clean(self, value: Any) -> str:
        try:
            found = custom_values.clean(self.of.id, self._plain(value))
        except Invalid as error:
            raise ValidationError(error.message, code="invalid") from error
        if self.required and not found:
            raise ValidationError(self.error_messages["required"], code="required")
        if not self.of.fits(found) and found != self.was:
            raise ValidationError(_("Choose a value from the list."), code="invalid")
        return found

    def _plain(self, value: Any) -> Any:
        """Return a number with a point where the person at the form writes a comma: 12,5 in German."""
        if self.of.type is FieldType.NUMBER and locales.current().with_marks(".") == ",":
            return re.sub(r"^([^.,]*),([^.,]*)$", r"\1.\2", str(value or ""))
        return value


def _widget(of: CustomField, stored: str) -> forms.Widget:
    match of.type:
        case FieldType.CHECKBOX:
            return forms.CheckboxInput(attrs={"value": YES}, check_test=bool)
        case FieldType.CHOICE:
            kept = [] if of.fits(stored) else [(stored, _("%(value)s (no longer offered)") % {"value": stored})]
            return forms.Select(choices=[("", "—"), *kept, *((one, one) for one in of.choices)])
        case FieldType.DATE:
            return forms.DateInput(attrs={"type": "date"})
        case FieldType.NUMBER:
            return forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        case _:
            limit = {"data-characters": custom_values.TEXT_LIMIT, "autocomplete": "off", "dir": "auto"}
            return forms.TextInput(attrs=limit)


def value_fields(defined: Definitions, kind_id: str, stored: Mapping[str, str]) -> dict[str, forms.Field]:
    """Return the fields of the form of a kind by their ids. `stored` are the values that the ticket has."""
    return {
        one.id: ValueField(one, required=is_required, stored=stored.get(one.id, ""))
        for one, is_required in defined.asked(kind_id)
    }


def defined_field(defined: Definitions, of: DefinedField, stored: str | None) -> forms.Field | None:
    """Return the choice of a ticket's kind or group, None where the desk has defined none. `stored` is that of the
    ticket, None of a new one, which always has one where there is a default."""
    choices = defined_choices(defined, of, stored or "")
    if len(choices) == 1 and not stored:
        return None
    default = defined.default_of(of) if stored is None else ""
    field = forms.ChoiceField(
        label=of.label, required=False, choices=choices[1:] if default else choices, initial=default
    )
    field.error_messages["invalid_choice"] = _("Choose a value from the list.")
    return field


def defined_choices(defined: Definitions, of: DefinedField, stored: str = "") -> list[tuple[str, str]]:
    """Return the values of a field that the desk offers, none first, with the one that a ticket has already."""
    offered = [(one.id, one.name) for one in defined.of_field(of) if one.id == stored or not one.is_archived]
    kept = [(stored, stored)] if stored and stored not in dict(offered) else []
    return [("", _(of.none)), *offered, *kept]


# --- what admins define ---


def use_of_field(label: str, initial: int) -> forms.TypedChoiceField:
    """Return the choice of whether a form asks a field."""
    return forms.TypedChoiceField(label=label, coerce=int, choices=USES, initial=initial, widget=forms.Select)


class _Defining(forms.Form):
    """A definition, on the version of the desk's setup that the form showed."""

    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def uses(self, prefix: str) -> dict[str, int]:
        """Return what was chosen of each form, by the ids behind this prefix."""
        return {
            name.removeprefix(prefix): int(value)
            for name, value in self.cleaned_data.items()
            if name.startswith(prefix)
        }


class FieldForm(_Defining):
    """A custom field. The type is asked for a new one alone."""

    name = forms.CharField(
        label=gettext_lazy("Name"), widget=forms.TextInput(attrs=_LINE | {"data-characters": NAME_LIMIT})
    )
    help = forms.CharField(
        label=gettext_lazy("Help text"),
        required=False,
        help_text=gettext_lazy("Forms show it with the field."),
        widget=forms.TextInput(attrs=_LINE | {"data-characters": HELP_LIMIT}),
    )

    def __init__(self, *args: Any, defined: Definitions, stored: CustomField | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if stored is None:
            self.fields["type"] = forms.ChoiceField(
                label=_("Type"),
                choices=[(one.value, one.label) for one in FieldType],
                help_text=_("It cannot change later."),
            )
        if stored is None or stored.type is FieldType.CHOICE:
            self.fields["choices"] = forms.CharField(
                label=_("Choices"),
                required=False,
                help_text=_("For a choice: one in each line, at most %(limit)s. Tickets keep one that you remove.")
                % {"limit": CHOICES_LIMIT},
                widget=forms.Textarea(attrs={"rows": 6, "dir": "auto"}),
            )
        for kind_id, label in (
            *((one.id, one.name) for one in defined.kinds_in_use),
            ("", _("Tickets without a kind")),
        ):
            initial = stored.forms.get(kind_id, 0) if stored else 1
            name = label if kind_id or defined.kinds_in_use else _("In the form of tickets")
            self.fields[f"in_{kind_id}"] = use_of_field(
                _("Form of “%(name)s”") % {"name": name} if kind_id else name, initial
            )
        self.fields["is_column"] = forms.BooleanField(label=_("Show it as a column in lists"), required=False)
        if stored is not None:
            self.fields["is_archived"] = forms.BooleanField(
                label=_("Archived"), required=False, help_text=_("Forms no longer ask it. Tickets keep their values.")
            )
            self.initial = {
                "name": stored.name,
                "help": stored.help,
                "choices": "\n".join(stored.choices),
                "is_column": stored.is_column,
                "is_archived": stored.is_archived,
                **self.initial,
            }

    @property
    def wishes(self) -> FieldWishes:
        data = self.cleaned_data
        return FieldWishes(
            name=data["name"],
            help=data["help"],
            choices=data.get("choices", "").splitlines(),
            forms=self.uses("in_"),
            is_column=data["is_column"],
            is_archived=data.get("is_archived", False),
        )


class KindForm(_Defining):
    """A kind of tickets, with what its form asks."""

    name = forms.CharField(
        label=gettext_lazy("Name"), widget=forms.TextInput(attrs=_LINE | {"data-characters": NAME_LIMIT})
    )
    template = forms.CharField(
        label=gettext_lazy("Template of the description"),
        required=False,
        strip=False,
        help_text=gettext_lazy("The form of this kind begins with it. You can use Markdown."),
        widget=forms.Textarea(attrs={"rows": 6, "dir": "auto", "data-characters": TEMPLATE_LIMIT}),
    )

    def __init__(self, *args: Any, defined: Definitions, stored: TicketKind | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for one in defined.in_use:
            initial = one.forms.get(stored.id if stored else "", 0)
            self.fields[f"of_{one.id}"] = use_of_field(_("Field “%(name)s”") % {"name": one.name}, initial)
        self.fields["is_default"] = forms.BooleanField(
            label=_("Default kind"), required=False, help_text=_("New tickets have it where nobody says another.")
        )
        if stored is not None:
            self.fields["is_archived"] = forms.BooleanField(
                label=_("Archived"),
                required=False,
                help_text=_("New tickets cannot have it. Those that have it keep it."),
            )
            self.initial = {
                "name": stored.name,
                "template": stored.template,
                "is_default": defined.default_kind == stored.id,
                "is_archived": stored.is_archived,
                **self.initial,
            }

    @property
    def wishes(self) -> KindWishes:
        data = self.cleaned_data
        return KindWishes(
            name=data["name"],
            template=data["template"],
            fields=self.uses("of_"),
            is_default=data["is_default"],
            is_archived=data.get("is_archived", False),
        )


class MoveForm(forms.Form):
    """A field or a kind that goes up or down in its list."""

    version = forms.IntegerField(min_value=0)
    id = forms.CharField(max_length=20)
    by_places = forms.TypedChoiceField(coerce=int, choices=[(-1, "up"), (1, "down")])
