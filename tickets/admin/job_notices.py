"""Say where operators begin which jobs are stuck: moves, reshardings and purges that stopped for a reason."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from portal.dynamo.client import fan_out
from portal.nosql.admin import Notice
from tenants.lifecycle import import_notes
from tenants.operators.operator_site import OperatorSite
from tickets.moving import place_changes
from tickets.purging import purge_requests
from tickets.sharding import reshard_requests


@OperatorSite.watches
def jobs_are_stuck() -> list[Notice]:
    """Report each job that somebody has to carry on and that has a trouble, each purge that is about to begin, and
    each import that has not ended.

    Four Queries at the same time.
    """
    lasts: list[Any] = [place_changes.MOVES.all_last, reshard_requests.all_last, purge_requests.PURGES.all_last]
    moves, reshardings, purges, arriving = fan_out([*lasts, import_notes.all_under_way])
    return [
        *_stuck(moves, place_changes.MOVES.unfinished, "The move", "places"),
        *_stuck(reshardings, reshard_requests.RESHARDINGS.unfinished, "The resharding", "shards"),
        *_stuck(purges, purge_requests.PURGES.unfinished, "The deletion", "deletions"),
        *(_ordered(item) for item in purges if item.state == purge_requests.ORDERED),
        *(_arriving(item) for item in arriving),
    ]


def _ordered(item: Any) -> Notice:
    begins = f"{purge_requests.begins_at(item):%H:%M} UTC"
    url = f"{reverse('admin:deletions')}?{urlencode({'tenant': item.slug})}"
    return Notice(21, f"The deletion of {item.slug} is ordered. It begins after {begins}.", url, "error")


def _arriving(item: Any) -> Notice:
    text = f"The import of {item.name} has not ended: it is under way, or broken off."
    return Notice(24, text, reverse("admin:deletions"), "info")


def _stuck(jobs: list[Any], unfinished: tuple[str, ...], what: str, page: str) -> list[Notice]:
    return [
        Notice(20, f"{what} of {job.slug} waits. {job.trouble}", reverse(f"admin:{page}"), "error")
        for job in jobs
        if job.trouble and job.state in unfinished
    ]
