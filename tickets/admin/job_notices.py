"""Say where operators begin which jobs are stuck: moves, reshardings and purges that stopped for a reason."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from portal.dynamo.client import fan_out
from portal.nosql.admin import Notice
from tenants.operators.operator_site import OperatorSite
from tickets.moving import move_notes
from tickets.purging import purge_notes
from tickets.sharding import reshard_notes, reshard_requests


@OperatorSite.watches
def jobs_are_stuck() -> list[Notice]:
    """Report each job that somebody has to carry on and that has a trouble: three Queries at the same time."""
    reads: list[Any] = [move_notes.MOVES.all_last, reshard_requests.all_last, purge_notes.PURGES.all_last]
    moves, reshardings, purges = fan_out(reads)
    return [
        *_stuck(moves, move_notes.UNFINISHED, "The move", "places"),
        *_stuck(reshardings, reshard_notes.UNFINISHED, "The resharding", "shards"),
        *_stuck(purges, purge_notes.UNFINISHED, "The deletion", "deletions"),
    ]


def _stuck(jobs: list[Any], unfinished: tuple[str, ...], what: str, page: str) -> list[Notice]:
    return [
        Notice(20, f"{what} of {job.slug} waits. {job.trouble}", reverse(f"admin:{page}"), "error")
        for job in jobs
        if job.trouble and job.state in unfinished
    ]
