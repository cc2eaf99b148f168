"""Declare bulk jobs: the last one of each desk in the directory, and beside the tickets their parts with outcomes."""

from __future__ import annotations

from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item, KeepsUnknown
from portal.schema import keys as all_keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, declare_holding
from portal.schema.registry import Grant, declare
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.stored import JobItem, jobs
from tickets.ticket.stored import TICKETS

BULK_JOBS: Final = all_keys.part("BULK")  # the directory's partition
_PAST: Final = "PAST"
_PART: Final = "PART"
PAST_PREFIX: Final = all_keys.beginning(_PAST)

declare(DIRECTORY, grants=(Grant("platform", DIRECTORY, ("GetItem",), "ReadBulkJobs", leading_keys=BULK_JOBS),))


def bulk(tenant_id: str) -> str:
    """Return the partition key of a desk's bulk jobs: those that have ended, and the parts of all."""
    return all_keys.collection(tenant_id, "BULK")


def past_job(job_id: str) -> str:
    """Return the sort key of a job that has ended. Ids of jobs sort by time."""
    return all_keys.joined(_PAST, job_id)


def part(job_id: str, plan: str, number: int) -> str:
    """Return the sort key of a part of a job, in one of its plans. Parts count from 1 and sort by their numbers."""
    return all_keys.joined(_PART, job_id, plan, f"{int(all_keys.whole_number(number, 'a part', least=1)):06}")


def parts_prefix(job_id: str, plan: str) -> str:
    """Return the beginning of the sort keys of a plan's parts."""
    return all_keys.beginning(_PART, job_id, plan)


class _BulkItem(KeepsUnknown):
    """The attributes that a bulk job keeps when it has ended; `BulkJobItem` says what they mean."""

    job_id = UnicodeAttribute()
    by_id = UnicodeAttribute()
    by_key = UnicodeAttribute(default="")
    edit = UnicodeAttribute(default="")
    listed = UnicodeAttribute(default="")
    undoes = UnicodeAttribute(default="")
    plan = UnicodeAttribute(default="")
    parts = NumberAttribute(default=0)
    total = NumberAttribute(default=0)
    changed = NumberAttribute(default=0)
    unchanged = NumberAttribute(default=0)
    refused = NumberAttribute(default=0)
    why = UnicodeAttribute(default="")


class BulkJobItem(_BulkItem, JobItem):
    """The last bulk job of a desk.

    `state` is running, cancelling, done, cancelled or failed; `phase` is listing or changing. `edit` is what
    `TicketEdit.dump` made, "" for the undo of the job `undoes`; `listed` the parameters of the list as JSON, "" for
    tickets that were named. `by_id` is a member's id, or a key's, which then has `by_key`, its prefix; `acted_by` the
    name of an operator in the member's place. `plan` names the parts that count, of which there are `parts` for `total`
    tickets. `changed`, `unchanged` and `refused` count those of the first `met` parts. `why` says why it failed.
    """

    acted_by = UnicodeAttribute(default="")
    met = NumberAttribute(default=0)


class PastBulkItem(_BulkItem, Item):
    """A bulk job that has ended, with the attributes that it had in the directory. TTL removes it after a while."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    begun_at = UnicodeAttribute()
    ended_at = UnicodeAttribute()
    state = UnicodeAttribute()
    expires_at = NumberAttribute()


class BulkPartItem(Item):
    """Some tickets of a job, which change in one transaction.

    `tickets` is JSON: numbers with the versions that somebody saw, null for any, or for an undo what `many.packed`
    made. `outcome` is written with the changes, so that nobody makes them twice: JSON of `entries` as `many.packed`
    makes them, of `unchanged` numbers, and of `refused` ones, each with the reason.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    tickets = UnicodeAttribute()
    outcome = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()


_FORGOTTEN = "it is forgotten a week after the job"


def _kept(reader: Reader) -> object:
    return reader.query(TICKETS, bulk(reader.tenant_id))


declare_holding(
    jobs("bulk jobs", BULK_JOBS, Stage.CONTENT, left_out=_FORGOTTEN),
    Holding("parts of bulk jobs", (TICKETS,), _kept, Stage.CONTENT, left_out=_FORGOTTEN),  # type: ignore[arg-type]
)


declare_keys(TICKETS, {"bulk part": "TENANT#<tenant>|BULK, <part>"})
declare_keys(DIRECTORY, {"bulk job": "BULK, <tenant>"})
