"""Take what operators type about shards and places."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from portal.nosql.admin.options import ReasonField, ReasonForm
from tenants.tenancy.shard_layout import MOST_SHARDS
from tickets.moving.move_requests import GRACE_DAYS

_KEPT = "in the audit trail, which the desk's admins read as well."


class ReshardForm(forms.Form):
    """Ask how many shards a tenant is to have, and why."""

    shards = forms.IntegerField(
        min_value=1,
        max_value=MOST_SHARDS,
        error_messages=dict.fromkeys(("min_value", "max_value", "invalid"), f"Use 1-{MOST_SHARDS} shards."),
        help_text=f"From 1 to {MOST_SHARDS}. Each takes up to 1,000 write units a second; a list reads all of them.",
    )
    reason = ReasonField(
        required=False,
        help_text=f"It is kept in the history and {_KEPT}",
    )


class PurgeForm(ReasonForm):
    """Ask why a tenant is to be purged, and for its slug, typed by hand."""

    slug = forms.CharField(
        label="Slug",
        help_text="Type the short name of the tenant, to be sure that it is this one.",
        error_messages={"required": "Type the slug of the tenant."},
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.fields["reason"].help_text = "It stands in the certificate."


class PlaceForm(forms.Form):
    """Ask where a desk is to lie, how long its old copy is kept, and why."""

    to = forms.ChoiceField(label="Place", help_text="The tables of all, tables of its own, or those at a site.")
    grace = forms.IntegerField(
        label="Grace",
        min_value=0,
        max_value=365,
        initial=GRACE_DAYS,
        help_text="Days that the old copy is kept. Until somebody discards it, going back is possible.",
    )
    reason = ReasonField(
        required=False,
        help_text=f"It is kept {_KEPT}",
    )

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        # Nothing is chosen beforehand: a desk moves nowhere by a button that was pressed too soon.
        named = [("", "Choose a place"), ("pool", "Pool: the tables of all"), ("bridge", "Bridge: tables of its own")]
        self.fields["to"].choices = [*named, *((f"silo/{site}", f"Silo: {site}") for site in settings.SILOS)]  # type: ignore[attr-defined]  # a ChoiceField
