"""Carry out what operators order for whole tenants: moves, the end of old copies, purges; and what owners ask for:
exports, and attacks on their desks.

It takes the rights of the lifecycle role, which no web process has. So it is done by `manage.py run_lifecycle` or by
the function of the stack, which have that role; and where processes have no roles of their own, beside the stream of
each stream worker, so that it needs no process more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.conf import settings

from tickets.bulk_jobs import bulk_job
from tickets.desk_export import export_job
from tickets.isolation_runs import run_job
from tickets.jobs.job_follower import JobFollower
from tickets.moving import tenant_mover
from tickets.purging import tenant_purge
from tickets.rules import rehearsal_job


def is_done_by_workers() -> bool:
    """Tell whether a stream worker may do it, because all processes sign their requests alike."""
    return not settings.TENANT_ROLE_ARN


def followers() -> list[JobFollower[Any]]:
    """Return what does it, one for each kind of work. Without a key that signs certificates nothing is purged."""
    always: list[JobFollower[Any]] = [
        bulk_job.follower(),
        tenant_mover.follower(),
        export_job.follower(),
        rehearsal_job.follower(),
        run_job.follower(),
    ]
    return [*always, tenant_purge.follower()] if settings.CERTIFICATE_KEY else always


@contextmanager
def running() -> Iterator[None]:
    """Do it while the context lasts, each kind in a thread of its own, so that a long move keeps no purge waiting."""
    with ExitStack() as stack:
        for follower in followers():
            stack.enter_context(follower.running())
        yield
