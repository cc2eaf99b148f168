"""Check what owners enter about auditors."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from portal import clock, zones
from portal.web import locales
from tenants.membership import auditors


class EndForm(forms.Form):
    """Take the last day of an access, in the reader's zone; `ends_at` is its end once the form is valid."""

    until = forms.DateField(
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("The access ends by itself when this day ends in your time zone. At most 90 days."),
        error_messages={"invalid": gettext_lazy("Enter a day."), "required": gettext_lazy("Enter a day.")},
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        today = zones.today(locales.current().zone)
        self.fields["until"].initial = today + timedelta(days=30)
        last = locales.current().local(clock.now() + auditors.LONGEST).date() - timedelta(days=1)
        self.fields["until"].widget.attrs |= {"min": f"{today}", "max": f"{last}"}

    @property
    def ends_at(self) -> datetime:
        """Return the moment at which the access ends."""
        return zones.day_ends(self.cleaned_data["until"], locales.current().zone)


class InviteAuditorForm(EndForm):
    """Take who is invited as an auditor, and why."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=auditors.NAME_LIMIT)
    email = forms.EmailField(label=gettext_lazy("E-mail"), max_length=254)
    purpose = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=auditors.PURPOSE_LIMIT,
        help_text=gettext_lazy("The auditor and the audit trail are told, such as “ISO 27001, yearly audit”."),
    )
    field_order = ("name", "email", "purpose", "until")
