"""Carry out beside a stream the purges that operators have ordered, after a while in which that can be taken back."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from portal import clock
from portal.errors import Conflict
from tenants.audit_trail.recording import Actor
from tickets.jobs.job_follower import JobFollower
from tickets.purging import purge_notes, purge_requests
from tickets.purging.items import PurgeItem
from tickets.purging.tenant_purge import TenantPurge

_BY: Final = Actor(origin="worker")


def follower(**how: Any) -> JobFollower[PurgeItem]:
    """Return what carries out the purges that nobody carries out. It needs the rights of the lifecycle role."""
    return JobFollower(_due, partial(_job, **how), unfinished=purge_notes.UNFINISHED, name="purge")


def _due() -> list[PurgeItem]:
    now = clock.now()
    return [
        item
        for item in purge_notes.PURGES.all_last()
        if item.state != purge_notes.ORDERED or purge_requests.begins_at(item) <= now
    ]


def _job(item: PurgeItem, **how: Any) -> TenantPurge:
    begun = purge_requests.begin_ordered(item, by=_BY)
    if begun is None:
        raise Conflict("The tenant was reopened since: its order is dropped.")
    return TenantPurge(begun, by=_BY, **how)
