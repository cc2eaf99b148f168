"""Ask for a bulk job, look at it, cancel it, and have it undone. A desk has one at a time.

A job changes the tickets that a list shows when it begins, or those that are named, each as if somebody had done it on
its page. So it may be asked for by everybody who may change a ticket, and the history of each ticket names them.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction, chunked
from portal.errors import Conflict, Forbidden, Invalid, NotFound
from portal.web.locales import declare_stored
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.bulk_jobs import stored
from tickets.bulk_jobs.stored import BulkJobItem, BulkPartItem, PastBulkItem
from tickets.desk import filters, lists, many
from tickets.desk.changing import EntryOfChange
from tickets.desk.filters import TicketFilter
from tickets.desk.many import TicketEdit
from tickets.jobs.leased_job import JobKind
from tickets.ticket.fields import Status
from tickets.ticket.stored import SummaryItem

RUNNING, CANCELLING, CANCELLED, DONE, FAILED = "running", "cancelling", "cancelled", "done", "failed"
LISTING, CHANGING = "listing", "changing"
BULKS: Final = JobKind("bulk change", BulkJobItem, stored.BULK_JOBS, "platform", (RUNNING, CANCELLING))
KEPT_SECONDS: Final = 7 * 86400  # of a job that has ended, which can be undone for as long
PART: Final = 45  # tickets of one transaction: with the part itself, and with what a move of the desk adds
MOST_NAMED: Final = 1000
SHOWN: Final = 20  # former jobs, and parts of one
COUNTED: Final = 2000  # rows of a list, to say how many tickets there are
_PAGE: Final = 500
_NAMED_PLAN: Final = "named"
TOO_MANY: Final = declare_stored(gettext_noop("These are more than %(most)s tickets. Narrow the list."))
_BUSY: Final = gettext_noop("Another bulk change of this desk is running. Wait until it has ended, or cancel it.")

Job = BulkJobItem | PastBulkItem


@dataclass(frozen=True)
class ListedTickets:
    """A list of tickets by the parameters of its address: `status`, `resolver` and those of filters."""

    statuses: tuple[Status, ...]
    resolver: str | None
    only: TicketFilter
    params: Mapping[str, str]

    @classmethod
    def of(cls, tenant: TenantContext, params: Mapping[str, str]) -> ListedTickets:
        """Read a list's parameters, whatever else is among them. Raises Invalid."""
        status, who = params.get("status", "open"), params.get("resolver", "")
        resolver = {"": None, "me": tenant.user_id, "none": ""}.get(who, who)
        only = TicketFilter.parse(params).in_zone(tenant.zone)
        told = {"status": status, **({} if resolver is None else {"resolver": resolver or "none"}), **only.params}
        return cls(filters.statuses(status), resolver, only, told)

    def has(self, summary: SummaryItem) -> bool:
        is_theirs = self.resolver is None or summary.resolver == self.resolver
        return is_theirs and summary.status in self.statuses and self.only.matches(summary)


@dataclass(frozen=True)
class PartOutcome:
    """Hold what became of some tickets: the entries of those that were changed, and why others were refused."""

    entries: tuple[EntryOfChange, ...] = ()
    unchanged: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, outcomes: Sequence[many.TicketOutcome]) -> PartOutcome:
        return cls(
            tuple(one.entry for one in outcomes if one.entry),
            tuple(one.number for one in outcomes if one.did == many.UNCHANGED),
            tuple((one.number, one.reason) for one in outcomes if one.did == many.REFUSED),
        )

    @classmethod
    def load(cls, text: str) -> PartOutcome:
        """Return the outcome that `dump` made this of."""
        entries, unchanged, refused = json.loads(text)
        known = many.unpacked(entries) if entries else ()
        return cls(tuple(known), tuple(unchanged), tuple((number, why) for number, why in refused))

    def dump(self) -> str:
        return json.dumps([many.packed(self.entries) if self.entries else [], self.unchanged, self.refused])


# --- asking ---


def ask(
    tenant: TenantContext,
    edit: TicketEdit,
    *,
    by: Actor,
    params: Mapping[str, str] | None = None,
    numbers: Mapping[int, int | None] | None = None,
    key: str = "",
) -> str:
    """Ask for a change of all tickets of a list, or of those that are named, and return the job's id.

    The numbers have the version that somebody saw, None for any. `key` is the prefix of the API key that asks. Raises
    Invalid, and Conflict while another job of the desk is running.
    """
    if (params is None) == (numbers is None):
        raise ValueError("a job is for a list or for named tickets")
    if numbers is not None and not 0 < len(numbers) <= MOST_NAMED:
        raise Invalid(_("Name 1 to %(most)s tickets.") % {"most": f"{MOST_NAMED:,}"}, field="tickets")
    job_id = _new_id()
    if params is not None:
        listed = json.dumps(dict(ListedTickets.of(tenant, params).params))
        return _begin(tenant, by, job_id, key, edit=edit.dump(), listed=listed, phase=LISTING)
    named = [[number, version] for number, version in (numbers or {}).items()]
    parts = [*chunked(named, PART)]
    if BULKS.under_way(tenant.tenant_id):  # before anything is written
        raise Conflict(_(_BUSY))
    fan_out([partial(put_part, tenant, job_id, _NAMED_PLAN, place, some) for place, some in enumerate(parts, 1)])
    how = {"phase": CHANGING, "plan": _NAMED_PLAN, "parts": len(parts), "total": len(named)}
    return _begin(tenant, by, job_id, key, edit=edit.dump(), **how)


def undo(tenant: TenantContext, job_id: str, *, by: Actor, key: str = "") -> str:
    """Have a job undone that has ended, by a job like it, and return that one's id.

    Raises NotFound, Forbidden, and Conflict for one that changed nothing and while another job of the desk is running.
    """
    job = find(tenant, job_id)
    if BULKS.goes_on(job):  # type: ignore[arg-type]
        raise Conflict(_("This bulk change is still running. Cancel it first."))
    if job.undoes:
        raise Conflict(_("This is an undo itself. Ask for the change again instead."))
    _require_own(tenant, job)
    if not job.parts:  # it ended before it had listed its tickets
        raise Conflict(_("This bulk change has changed no ticket."))
    return _begin(tenant, by, _new_id(), key, undoes=job_id, plan=job.plan, phase=LISTING)


def cancel(tenant: TenantContext, job_id: str, *, by: Actor) -> None:
    """Have a job end with what it has changed until then. Raises NotFound, Forbidden, and Conflict."""
    job = find(tenant, job_id)
    _require_own(tenant, job)
    if job.state != RUNNING:
        raise Conflict(_("This bulk change has ended already."))
    transaction = Transaction()
    still = (BulkJobItem.state == RUNNING) & (BulkJobItem.job_id == job_id)
    transaction.update(BULKS.of(tenant.tenant_id), [BulkJobItem.state.set(CANCELLING)], condition=still)
    _commit(tenant, transaction, AuditAction.BULK_CANCELLED, by, _("This bulk change has ended already."))


def _require_own(tenant: TenantContext, job: Job) -> None:
    if job.by_id != tenant.user_id and not tenant.is_admin:
        raise Forbidden(_("Only admins, and the person who asked for it, may stop or undo a bulk change."))


def _begin(tenant: TenantContext, by: Actor, job_id: str, key: str, **values: Any) -> str:
    item = BULKS.new(
        tenant,
        job_id=job_id,
        state=RUNNING,
        by_id=tenant.user_id,
        by_key=key,
        acted_by=tenant.acted_by,
        begun_at=clock.stamp(),
        **values,
    )
    transaction = Transaction()
    transaction.put(item, condition=BULKS.free())
    _commit(tenant, transaction, AuditAction.BULK_ASKED, by, _(_BUSY))
    return job_id


def _new_id() -> str:
    return f"{time.time_ns() // 1_000_000:012x}{uuid.uuid4().hex[:8]}"


def _commit(tenant: TenantContext, transaction: Transaction, action: AuditAction, by: Actor, refused: str) -> None:
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry(tenant.tenant_id, action, by, "tickets", "bulk", tenant.name)
    recording.commit(transaction, [entry], refused=Conflict(refused))


# --- looking ---


def count(tenant: TenantContext, listed: ListedTickets) -> tuple[int, bool]:
    """Count the tickets of a list, and tell whether there may be more: a page of the list for each 500 rows, up to
    COUNTED of them."""
    found, looked, after = 0, 0, None
    while looked < COUNTED:
        page = lists.page(
            tenant, status=listed.statuses, resolver=listed.resolver, only=listed.only, after=after, size=_PAGE
        )
        found, looked, after = found + len(page.rows), looked + max(page.looked_at, len(page.rows), 1), page.next
        if after is None:
            return found, False
    return found, True


def running(tenant: TenantContext) -> BulkJobItem | None:
    """Return the desk's job that has not ended, None where there is none: one consistent read."""
    return BULKS.under_way(tenant.tenant_id)


def find(tenant: TenantContext, job_id: str) -> Job:
    """Return a job: one consistent read, and another for one that others have followed. Raises NotFound."""
    last = BULKS.last(tenant.tenant_id)
    if last is not None and last.job_id == job_id:
        return last
    past = None
    if job_id.isalnum() and job_id.isascii():
        past = tenant.repository.get(PastBulkItem, stored.bulk, sort=stored.past_job(job_id), consistent=True)
    if past is None:
        raise NotFound(_("There is no such bulk change, or it was made more than a week ago."))
    return past


def history(tenant: TenantContext) -> list[PastBulkItem]:
    """Return the last jobs that have ended, newest first: one Query."""
    return tenant.repository.query(
        PastBulkItem, stored.bulk, begins_with=stored.PAST_PREFIX, descending=True, limit=SHOWN
    ).items


def outcomes(tenant: TenantContext, job: Job, *, first: int = 1) -> list[PartOutcome]:
    """Return what became of the tickets of up to SHOWN parts of a job, from a part on: one BatchGetItem."""
    if job.phase == LISTING if isinstance(job, BulkJobItem) else not job.parts:
        return []
    last = min(int(job.parts), first + SHOWN - 1)
    wanted = [(stored.bulk, (), stored.part(job.job_id, job.plan, n)) for n in range(max(1, first), last + 1)]
    found = tenant.repository.get_many(BulkPartItem, wanted, consistent=False) if wanted else []
    return [PartOutcome.load(one.outcome) for one in found if one is not None and one.outcome]


# --- parts ---


def put_part(tenant: TenantContext, job_id: str, plan: str, number: int, tickets: list[Any]) -> None:
    """Store a part of a plan: one write."""
    expires_at = int(time.time()) + 2 * KEPT_SECONDS
    pk = tenant.repository.key(stored.bulk)
    key = stored.part(job_id, plan, number)
    tenant.repository.put(BulkPartItem(pk, key, tickets=json.dumps(tickets), expires_at=expires_at))


def part(tenant: TenantContext, job: BulkJobItem, number: int) -> BulkPartItem:
    """Return a part of a job's plan: one consistent read. Raises NotFound."""
    sort = stored.part(job.job_id, job.plan, number)
    found = tenant.repository.get(BulkPartItem, stored.bulk, sort=sort, consistent=True)
    if found is None:
        raise NotFound(_("A part of this bulk change is gone."))
    return found


def all_parts(tenant: TenantContext, job_id: str, plan: str) -> Iterator[BulkPartItem]:
    """Read the parts of a plan in their order: a consistent Query for each megabyte."""
    prefix = stored.parts_prefix(job_id, plan)
    yield from tenant.repository.query_all(BulkPartItem, stored.bulk, begins_with=prefix, consistent=True)
