"""Check what people enter to filter the audit trail."""

from __future__ import annotations

from django import forms


class AuditFilterForm(forms.Form):
    """Take the filters of the audit trail. The page's address holds them."""

    actor = forms.CharField(required=False, max_length=64)
    entity = forms.CharField(required=False, max_length=120)
    first = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))
