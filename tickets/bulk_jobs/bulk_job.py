"""Carry out a bulk job: list the tickets first, then change them part by part, each in one transaction.

The outcome of a part is written in the transaction of its changes. So a part is changed once, whoever is killed in
between and however many carry the job out for a moment; and what the outcomes say is what has happened.

A list is read to its end before anything changes, because a ticket that changes moves in the list. Tickets that moved
to its front while it was read are read again at the end. A ticket that has left the list by its turn is refused.

Fairness: a job changes PER_SECOND tickets a second at most. It pauses after SLICE_SECONDS, so that one process
carries out the jobs of several desks by turns.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final

from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Store, Transaction, chunked
from portal.errors import ConditionFailed, Conflict, Invalid, NotFound, TransactionRefused
from tenants.api_keys import key_authentication, key_changes
from tenants.membership import members
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tickets.bulk_jobs import bulk_requests, stored
from tickets.bulk_jobs.bulk_requests import CANCELLED, CHANGING, DONE, FAILED, KEPT_SECONDS, ListedTickets, PartOutcome
from tickets.bulk_jobs.stored import BulkJobItem, BulkPartItem, PastBulkItem
from tickets.desk import lists, many
from tickets.desk.many import TicketEdit
from tickets.jobs.job_follower import Again, JobFollower
from tickets.jobs.leased_job import EndAsked, LeasedJob

PER_SECOND: Final = 100.0  # tickets: about half of the write units that one partition of an index takes
SLICE_SECONDS: Final = 5.0
PAGE: Final = 500  # rows of a list that are read together
MOST: Final = 50_000  # tickets of one job
_PART: Final = "part"  # the name of the part in a transaction
_COPIED: Final = tuple(PastBulkItem.get_attributes().keys() & BulkJobItem.get_attributes().keys())


class BulkJob(LeasedJob[BulkJobItem]):
    """Carries out one job in the name of who asked for it. It needs the rights of tenants and of the platform."""

    kind = bulk_requests.BULKS

    def __init__(
        self,
        item: BulkJobItem,
        *,
        again: Again = lambda: True,
        per_second: float = PER_SECOND,
        slice_seconds: float = SLICE_SECONDS,
        on_pause: Callable[[], object] = lambda: None,
        **how: Any,
    ) -> None:
        self._slice, self._until = slice_seconds, float("inf")  # a list is read to its end

        def is_our_turn() -> bool:
            if time.monotonic() >= self._until:
                on_pause()
                return False
            return again()

        super().__init__(item, again=is_our_turn, **how)
        self._per_second = per_second
        self._met = int(item.met)
        self._counts = {did: int(getattr(item, did)) for did in (many.CHANGED, many.UNCHANGED, many.REFUSED)}

    @cached_property
    def _tenant(self) -> TenantContext:
        """The context of who asked for it, as it is now. Raises Invalid where they may not change tickets any more."""
        tenant = tenant_directory.get(self.item.tenant_id)
        system = context.for_system(tenant)
        if system.suspended or system.closes_at:
            raise Conflict(gettext_noop("The desk is suspended, or is being closed."))
        who = self._key(system.repository) if self.item.by_key else self._member(system.repository)
        if who is None:
            raise Invalid(gettext_noop("The person who asked for it may no longer change tickets of this desk."))
        role, name = who
        return context.of_tenant(
            tenant, role=role, user_id=self.item.by_id, user_name=name, acted_by=self.item.acted_by
        )

    def _member(self, repository: Store) -> tuple[Role, str] | None:
        found = members.member(repository, self.item.by_id)
        return (found.role, found.name) if found and found.role.at_least(Role.AGENT) else None

    def _key(self, repository: Store) -> tuple[Role, str] | None:
        try:
            key = key_changes.find(repository, self.item.by_key)
        except NotFound:
            return None
        is_same = key.key_id == self.item.by_id and key_changes.works(key)
        return (Role.AGENT, key_authentication.name_of(key)) if is_same else None

    def _carry_out(self) -> None:
        try:
            self._heed()
            self._go_through((bulk_requests.LISTING, CHANGING))
            self._finish(DONE)
        except EndAsked:
            self._finish(CANCELLED)
        except Invalid as error:
            self._finish(FAILED, why=error.message)

    # --- which tickets ---

    def _listing(self) -> None:
        """Store the parts of a plan of this process's own; the plan counts once it is noted with the next phase."""
        plan, parts, total = uuid.uuid4().hex[:8], 0, 0
        found = self._undoing() if self.item.undoes else chunked(self._found(), bulk_requests.PART)
        for tickets in found:
            parts += 1
            total += len(tickets) - (2 if self.item.undoes else 0)  # what `many.packed` puts before them
            bulk_requests.put_part(self._tenant, self.item.job_id, plan, parts, tickets)
            self._look_up()
        self._note(phase=CHANGING, plan=plan, parts=parts, total=total)

    def _found(self) -> list[list[Any]]:
        listed = ListedTickets.of(self._tenant, json.loads(self.item.listed))
        begun, met = clock.stamp(), dict[int, None]()
        for row_number, _ in self._rows(listed):
            met[row_number] = None
            if len(met) > MOST:
                raise Invalid(bulk_requests.TOO_MANY % {"most": f"{MOST:,}"})
        # What changed meanwhile has moved to the front, perhaps past the place that was being read.
        for row_number, updated_at in self._rows(listed):
            if updated_at < begun:
                break
            met[row_number] = None
        return [[number, None] for number in met]

    def _rows(self, listed: ListedTickets) -> Iterator[tuple[int, str]]:
        after: str | None = None
        while True:
            page = lists.page(
                self._tenant,
                status=listed.statuses,
                resolver=listed.resolver,
                only=listed.only,
                after=after,
                size=PAGE,
            )
            yield from ((int(row.number), row.updated_at) for row in page.rows)
            after = page.next
            self._look_up()
            if after is None:
                return

    def _undoing(self) -> Iterator[list[Any]]:
        """Yield the changes of another job, newest part last. Its plan is this job's until it has its own."""
        for part in bulk_requests.all_parts(self._tenant, self.item.undoes, self.item.plan):
            outcome = PartOutcome.load(part.outcome) if part.outcome else PartOutcome()
            if outcome.entries:
                yield many.packed(outcome.entries)

    # --- changing them ---

    def _changing(self) -> None:
        self._until = time.monotonic() + self._slice
        for number in range(self._met + 1, int(self.item.parts) + 1):
            part = bulk_requests.part(self._tenant, self.item, number)
            outcome = PartOutcome.load(part.outcome) if part.outcome else self._change(part)
            self._met = number
            self._count(outcome)
            self._advance(len(outcome.entries))
            self._rest(len(outcome.entries) / self._per_second)

    def _count(self, outcome: PartOutcome) -> None:
        for did, of in (
            (many.CHANGED, outcome.entries),
            (many.UNCHANGED, outcome.unchanged),
            (many.REFUSED, outcome.refused),
        ):
            self._counts[did] += len(of)

    def _change(self, part: BulkPartItem) -> PartOutcome:
        """Change the tickets of a part; return what another process has made of them, where one was faster."""

        def join(transaction: Transaction, outcomes: Sequence[many.TicketOutcome]) -> None:
            is_new = BulkPartItem.pk.exists() & BulkPartItem.outcome.does_not_exist()
            told = BulkPartItem.outcome.set(PartOutcome.of(outcomes).dump())
            transaction.update(BulkPartItem(part.pk, part.sk), [told], name=_PART, condition=is_new)

        tickets = json.loads(part.tickets)
        try:
            if self.item.undoes:
                return PartOutcome.of(many.take_back(self._tenant, many.unpacked(tickets), join=join))
            edit = TicketEdit.load(self.item.edit)
            numbers = {int(number): version for number, version in tickets}
            return PartOutcome.of(many.edit(self._tenant, numbers, edit, join=join, belongs=self._belongs))
        except TransactionRefused as refused:
            reason = refused.reason(_PART)
            item = reason.stored(BulkPartItem) if reason else None
            if item is None or not item.outcome:
                raise
            return PartOutcome.load(item.outcome)

    @cached_property
    def _belongs(self) -> Callable[[Any], bool]:
        if not self.item.listed:
            return lambda summary: True
        return ListedTickets.of(self._tenant, json.loads(self.item.listed)).has

    # --- the end ---

    def _finish(self, state: str, *, why: str = "") -> None:
        """Keep the job in the desk's history, and end it. Done again, it writes the same."""
        system = context.for_system(tenant_directory.get(self.item.tenant_id))
        repository = system.repository
        self.item = self.kind.note(self.item, me=self.me)  # or somebody else has ended it
        if state != DONE and self.item.phase == CHANGING:
            self._close_parts(system)
        values = {"state": state, "why": why, **self._always_noted()}
        kept = {name: getattr(self.item, name) for name in _COPIED} | {n: v for n, v in values.items() if n in _COPIED}
        past = PastBulkItem(
            repository.key(stored.bulk),
            stored.past_job(self.item.job_id),
            ended_at=clock.stamp(),
            expires_at=int(time.time()) + KEPT_SECONDS,
            **kept,
        )
        repository.put(past)
        self.item = self.kind.note(self.item, me=self.me, holder="", trouble="", **values)

    def _close_parts(self, system: TenantContext) -> None:
        """Count what a killed process has changed behind its last heartbeat, and keep one that still runs from
        changing more: its part has an outcome already, and its next heartbeat is refused."""
        for number in range(self._met + 1, int(self.item.parts) + 1):
            part = bulk_requests.part(system, self.item, number)
            if not part.outcome:
                is_new = BulkPartItem.pk.exists() & BulkPartItem.outcome.does_not_exist()
                nothing = BulkPartItem.outcome.set(PartOutcome().dump())
                with suppress(ConditionFailed):
                    system.repository.update(BulkPartItem(part.pk, part.sk), [nothing], condition=is_new)
                    return
                part = bulk_requests.part(system, self.item, number)
            self._count(PartOutcome.load(part.outcome or ""))
            self._met = number

    def _is_to_end(self) -> bool:
        return bool(self.item.state == bulk_requests.CANCELLING)

    def _always_noted(self) -> dict[str, Any]:
        return {**self._counts, "met": self._met}


class BulkFollower(JobFollower[BulkJobItem]):
    """Carries out the jobs of all desks by turns, a slice of each."""

    def __init__(self, **how: Any) -> None:
        self._paused = 0
        super().__init__(bulk_requests.BULKS, partial(BulkJob, on_pause=self._note_pause, **how))

    def _note_pause(self) -> None:
        self._paused += 1

    def turn(self, again: Again = lambda: True) -> int:
        """Carry jobs out while there are any and `again` says so. Return how many have ended."""
        ended = 0
        while True:
            self._paused = 0
            ended += super().turn(again)
            if not self._paused or not again():
                return ended


def follower(**how: Any) -> BulkFollower:
    """Return what carries out the bulk jobs that nobody carries out."""
    return BulkFollower(**how)
