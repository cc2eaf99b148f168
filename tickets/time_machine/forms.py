"""Take what the list of tickets as they were is filtered by."""

from __future__ import annotations

from django import forms

from tickets.ticket.fields import Status


class PastFilterForm(forms.Form):
    """Take the filters. The page's address holds them."""

    status = forms.ChoiceField(
        label="Status then", required=False, choices=[("", "Any"), *((s.value, s.label) for s in Status)]
    )
    assignee = forms.CharField(label="Assignee then", required=False, max_length=100)
    tag = forms.CharField(label="Tag then", required=False, max_length=100)
    changed = forms.BooleanField(
        label="Different now", required=False, widget=forms.CheckboxInput(attrs={"value": "yes"})
    )
