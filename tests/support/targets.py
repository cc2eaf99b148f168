"""Targets for answers and solutions of a test's desk."""

from __future__ import annotations

from dataclasses import replace

from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.sla import policy_versions
from tickets.sla.policy import Calendar, TargetRule

ALWAYS = Calendar("UTC", (((0, 1440),),) * 7)
HOUR = 3600


def set_targets(tenant: TenantContext, *rules: TargetRule, calendar: Calendar = ALWAYS, warning: int = 25) -> None:
    """Save targets for a desk, that is open all the time where no calendar is given."""
    now = policy_versions.read(tenant)
    wanted = replace(now, calendar=calendar, rules=rules, warning=warning, country="")
    policy_versions.save(tenant, wanted, seen=now.version, by=Actor(tenant.user_id))
