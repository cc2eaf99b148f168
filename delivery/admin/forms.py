"""Take what operators type about queues."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from django import forms

from delivery.queues import queue_sets
from delivery.queues.queue_sets import QueueSet

MOST_TENANTS = 10_000_000
MOST_PROCESSORS = 512
MOST_SIZE = 16
# Of a worker that always runs, 0.25 vCPU and 0.5 GB: 730 hours of $0.04048 a vCPU and $0.004445 a GB. AWS, "AWS Fargate
# Pricing", us-east-1, Linux/X86, 2026-11.
WORKER_DOLLARS = Decimal("9.01")


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

    queues = forms.IntegerField(label="Processors (queues)", min_value=1, max_value=MOST_PROCESSORS)
    size = forms.IntegerField(label="Processors of a tenant", min_value=1, max_value=MOST_SIZE)
    tenants = forms.IntegerField(label="Tenants", min_value=2, max_value=MOST_TENANTS)
    dollars = forms.DecimalField(
        label="Dollars a processor costs a month",
        required=False,
        min_value=0,
        max_digits=8,
        decimal_places=2,
        help_text=f"{WORKER_DOLLARS} without it: a Fargate task of 0.25 vCPU and 0.5 GB in us-east-1.",
    )

    def clean_dollars(self) -> Decimal:
        typed: Decimal | None = self.cleaned_data["dollars"]
        return WORKER_DOLLARS if typed is None else typed

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if values.get("size", 0) > values.get("queues", MOST_SIZE):
            self.add_error("size", "A tenant has no more processors than there are.")
        return values

    @property
    def is_ours(self) -> bool:
        """Tell whether the product could be run so: with sets of four, of one of its numbers of queues."""
        return bool(self.cleaned_data["size"] == queue_sets.SIZE and self.cleaned_data["queues"] in queue_sets.COUNTS)
