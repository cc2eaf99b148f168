"""The form that says what to change of many tickets. A field that is left as it is asks for nothing."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext, gettext_lazy

from portal.errors import Invalid
from tenants.membership.forms import OfferedMembers
from tickets.custom_fields.definitions import Definitions
from tickets.custom_fields.forms import ValueField
from tickets.desk.many import TicketEdit
from tickets.ticket.fields import ASSIGNEE, CHANGED, CUSTOM, DEFINED, tag_list

NOBODY: Final = "none"
_LEAVE: Final = ("", gettext_lazy("Leave as it is"))


class BulkEditForm(forms.Form):
    """Ask for one value of each choice and of each custom field, for an assignee, and for tags.

    `edit` is what a valid form asks for.
    """

    def __init__(self, data: Any = None, *, people: OfferedMembers, defined: Definitions, **how: Any) -> None:
        super().__init__(data, **how)
        for field in CHANGED:
            choices = [(value or NOBODY, label) for value, label in field.choices]
            self.fields[field.name] = forms.ChoiceField(choices=[_LEAVE, *choices], required=False, label=field.label)
        for of in DEFINED:
            if offered := [(one.id, one.name) for one in defined.in_use_of(of)]:
                named = [_LEAVE, (NOBODY, gettext(of.none)), *offered]
                self.fields[of.name] = forms.ChoiceField(choices=named, required=False, label=of.label)
        self.fields[ASSIGNEE.name] = people.field(_LEAVE, (NOBODY, gettext("Nobody")), label=ASSIGNEE.label)
        for name, label in (("add_tags", gettext("Add tags")), ("remove_tags", gettext("Remove tags"))):
            line = forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"})
            hint = gettext("Separate tags with commas.") if name == "add_tags" else ""
            self.fields[name] = forms.CharField(required=False, label=label, widget=line, help_text=hint)
        self.own = {one.id: ValueField(one, required=False, stored="") for one in defined.in_use}
        self.fields |= self.own
        self.edit: TicketEdit | None = None

    def values(self) -> dict[str, Any]:
        """Return the values that are asked for, by the names of fields, and check the tags."""
        data: dict[str, Any] = self.cleaned_data
        names = (*(field.name for field in CHANGED), *(of.name for of in DEFINED), ASSIGNEE.name)
        values = {name: "" if data[name] == NOBODY else data[name] for name in names if data.get(name)}
        if own := {name: data[name] for name in self.own if data.get(name)}:
            values[CUSTOM.name] = own
        for name in ("add_tags", "remove_tags"):
            try:
                tag_list(data.get(name) or "")
            except Invalid as error:
                self.add_error(name, error.message)
        return values

    def clean(self) -> dict[str, Any]:
        data, values = self.cleaned_data, self.values()
        if not self.errors:
            try:
                self.edit = TicketEdit.of(
                    values, add_tags=[data["add_tags"] or ""], remove_tags=[data["remove_tags"] or ""]
                )
            except Invalid as error:
                self.add_error(None, error.message)
        return data
