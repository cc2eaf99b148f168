"""Take what operators type about queues."""

from __future__ import annotations

import re

from django import forms

from delivery.queues import queue_sets
from delivery.queues.queue_sets import QueueSet

MOST_TENANTS = 10_000
_COUNTS = [(count, str(count)) for count in (8, 16, 32, 64)]


class QueueMoveForm(forms.Form):
    """Another set for a tenant: its four numbers, or nothing for the next set of the list. `seen` is what was shown."""

    queues = forms.CharField(
        label="Another set",
        required=False,
        max_length=40,
        help_text="Four numbers, any three of which give the fourth. Empty: the next set of the list.",
    )
    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=40)

    def clean_queues(self) -> QueueSet | None:
        typed: str = self.cleaned_data["queues"]
        return _numbers(typed) if typed.strip() else None

    def clean_seen(self) -> QueueSet:
        return _numbers(self.cleaned_data["seen"])


def _numbers(text: str) -> QueueSet:
    if re.search(r"[^0-9, ]", text):
        raise forms.ValidationError("Write numbers with spaces between them, such as 0 5 10 15.")
    return frozenset(int(number) for number in re.findall(r"\d{1,3}", text))


class BlastRadiusForm(forms.Form):
    """An installation to compute: how many queues, how many of them a tenant has, and how many tenants."""

    queues = forms.TypedChoiceField(label="Queues", choices=_COUNTS, coerce=int)
    size = forms.IntegerField(label="Queues of a tenant", min_value=1, max_value=8)
    tenants = forms.IntegerField(label="Tenants", min_value=2, max_value=MOST_TENANTS)

    @property
    def is_ours(self) -> bool:
        return bool(self.cleaned_data["size"] == queue_sets.SIZE)
