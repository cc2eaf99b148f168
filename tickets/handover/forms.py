"""The form that asks who gets the tickets of somebody."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _

from tenants.membership.forms import OfferedMembers

NOBODY: Final = "none"


class HandoverForm(forms.Form):
    """Take a member who can have tickets, oneself at first, or NOBODY."""

    def __init__(self, data: Any, *, people: OfferedMembers, me: str) -> None:
        super().__init__(data, initial={"to": me})
        field = people.field((NOBODY, _("Unassigned")), label=_("New assignee"))
        field.required, field.error_messages["required"] = True, _("Choose a new assignee.")
        self.fields["to"] = field
