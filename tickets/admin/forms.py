"""Take what operators type about shards."""

from __future__ import annotations

from django import forms

from portal.nosql.admin.object_actions import REASON_LIMIT
from tenants.provisioning.tenant_lifecycle import MOST_SHARDS


class ReshardForm(forms.Form):
    """Ask how many shards a tenant is to have, and why."""

    shards = forms.IntegerField(
        min_value=1,
        max_value=MOST_SHARDS,
        error_messages=dict.fromkeys(("min_value", "max_value", "invalid"), f"Use 1-{MOST_SHARDS} shards."),
        help_text=f"From 1 to {MOST_SHARDS}. Each takes up to 1,000 write units a second; a list reads all of them.",
    )
    reason = forms.CharField(
        required=False, max_length=REASON_LIMIT, help_text="It is kept in the history and in the audit trail."
    )
