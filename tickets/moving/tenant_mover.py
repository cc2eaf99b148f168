"""Carry a move out, step by step, so that nothing is lost or doubled and anybody can go on after a kill.

    preparing    tables at the destination, followed from their beginning; fences, open, at the place that is left
    announcing   the tenant's item says so, and everybody has read it: each change is logged from now on
    copying      ticket by ticket, then what was changed meanwhile
    catching     the destination's stream has counted and indexed what was copied
    holding      fences closed, the rest of the log copied, the tenant's item says the new place
    verifying    what was left and what is there now are the same, but for what was changed since

Each step is right however often it is done. Until the switch a move can be cancelled and nobody has moved; afterwards
the old copy is kept, and going back is another move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Move, Placement
from portal.dynamo.store import Store, chunked
from portal.dynamo.tenant_reader import lifecycle_store
from portal.errors import Conflict, PortalError, Throttled, TransactionRefused, Unavailable
from tenants.tenancy import placements
from tenants.tenancy.placements import CONTEXT_SECONDS
from tickets.counting import stored as counting_keys
from tickets.counting import stream_barrier
from tickets.counting.stored import VerifiedItem, VerifyLeaseItem
from tickets.jobs.job_follower import JobFollower
from tickets.jobs.leased_job import EndAsked, LeasedJob, TakenOver
from tickets.moving import copy_check, discarding, place_changes, write_hold
from tickets.moving.copy_check import CopyCheck
from tickets.moving.discarding import CopyDiscard
from tickets.moving.stored import MoveItem
from tickets.moving.ticket_copies import GateClosed, TicketCopies
from tickets.moving.write_hold import PAGE, WriteHold
from tickets.sharding import reshard_requests
from tickets.verification import recount

SETTLE_SECONDS: Final = 2 * CONTEXT_SECONDS  # what began without knowing of the move may take as long again
RATE: Final = 200.0  # tickets a second
BLOCK: Final = 40  # tickets that are copied before the progress is written
SHORT: Final = 20  # entries of the log that a hold has time for
_AT_ONCE: Final = 40  # changed collections that are copied between two looks at whether to go on
_LEAST_ROUNDS: Final = 5
_ROUNDS: Final = 200  # of copying the log, before it is said not to get short
_HOLDS: Final = 20
_PAUSE: Final = 1.0  # seconds between two holds

PHASES: Final = ("preparing", "announcing", "copying", "catching", "holding", "verifying")


class TenantMover(LeasedJob[MoveItem]):
    """Carries one move out. `rate` is in tickets a second; `advance` gets the number of those copied or compared.

    `caught_up` waits until the destination's stream has been applied.
    """

    kind = place_changes.MOVES

    def __init__(
        self,
        item: MoveItem,
        *,
        rate: float = RATE,
        settle_seconds: float | None = None,
        caught_up: Callable[[Store], object] | None = None,
        **how: Any,
    ) -> None:
        super().__init__(item, **how)
        self._rate = rate
        self._settle_seconds = SETTLE_SECONDS if settle_seconds is None else settle_seconds
        self._caught_up = caught_up or partial(stream_barrier.wait_until_applied, say=lambda _: self._look_up())
        self._changes, self._cancelling = int(item.changes), False
        self._from, self._to = Placement.parse(item.from_place), Placement.parse(item.to_place)
        source, self._destination = (lifecycle_store(item.tenant_id, place) for place in (self._from, self._to))
        self._hold = WriteHold(source, item.move_id)
        self._copies = TicketCopies(source, self._destination, item.move_id, self._look_up)

    def _is_to_end(self) -> bool:
        return self.item.state == place_changes.CANCELLING and not self._cancelling

    def _carry_out(self) -> None:
        try:
            self._heed()
            if self.item.phase in PHASES[2:-1]:
                self._open()
            self._go_through(PHASES, done=0)
        except EndAsked:
            self._cancel()
        except GateClosed as closed:
            raise TakenOver from closed

    # --- steps ---

    def _preparing(self) -> None:
        self._refuse_loss()
        if self._to != POOL:
            provisioning.create_placed(self.item.tenant_id, self._to)
        self._forget_verifications()
        place_changes.follow(self.item.tenant_id, self._to)
        self._hold.fence()

    def _forget_verifications(self) -> None:
        """Delete what an old copy at the destination says of who verified its numbers: they are those of before, and
        the name may be that of somebody who was erased since."""
        partition = counting_keys.aggregate(self.item.tenant_id)
        for model, sort in ((VerifiedItem, counting_keys.VERIFIED), (VerifyLeaseItem, counting_keys.VERIFYING)):
            self._destination.delete(model(partition, sort))

    def _refuse_loss(self) -> None:
        """End the move with Conflict where it goes back to an old copy that has something which is nowhere else."""
        if placements.stored_location(self.item.tenant_id).former == self._to:
            checked = copy_check.check(self.item.tenant_id, left=self._to, present=self._from, advance=self._checked)
            if checked.wrong:
                self._hold.tear_down()
                self._note(state=place_changes.CANCELLED, ended_at=clock.stamp(), trouble=checked.trouble())
                raise Conflict(checked.trouble())

    def _announcing(self) -> None:
        place_changes.announce(self.item)
        self._rest(self._settle_seconds)
        while reshard_requests.RESHARDINGS.under_way(self.item.tenant_id):
            self._note(trouble="A resharding that had begun before has to end first.")
            self._rest(_PAUSE)
        self._note(trouble="")
        self._open()

    def _open(self) -> None:
        move = place_changes.move_of(self.item, place_changes.seen(self.item))
        try:
            self._copies.open(move.attempt)
        except GateClosed:
            # Whoever closed them has not switched, and may be dead: with the next attempt that switch cannot come.
            self._give_up(move)
            self._copies.open(place_changes.move_of(self.item, place_changes.seen(self.item)).attempt)

    def _copying(self) -> None:
        last = recount.last_number(Store("tenant", self.item.tenant_id, self._from))
        self._note(last_number=last)
        self._sync(place_changes.other_partitions(self.item.tenant_id, self._from))
        began, first = time.monotonic(), int(self.item.done) + 1
        for start in range(first, last + 1, BLOCK):
            end = min(start + BLOCK - 1, last)
            self._copies.sync_tickets(range(start, end + 1))
            self._note(done=end)
            self._advance(end + 1 - start)
            self._rest(began + (end + 1 - first) / self._rate - time.monotonic())
        self._follow_up()

    def _catching(self) -> None:
        self._look_up()
        self._caught_up(Store("tenant", self.item.tenant_id, self._to))
        self._follow_up()

    def _holding(self) -> None:
        for turn in range(_HOLDS):
            self._follow_up()
            if self._attempt():
                return
            self._note(trouble=f"Writes were held {int(self.item.holds)} times, and somebody had to wait too long.")
            self._rest(_PAUSE * turn)
            self._open()
        raise Unavailable("Writes were held, and each time somebody had to wait for too long. Run it again.")

    def _verifying(self) -> None:
        found = CopyCheck(self.item.digest, last=int(self.item.done), wrong=[int(one) for one in self.item.wrong])

        def advance(tickets: int) -> None:
            self._checked(tickets)
            if found.last - int(self.item.done) >= BLOCK:
                self._note(done=found.last, digest=found.digest, wrong=found.wrong[: copy_check.NAMED + 1])

        checked = copy_check.check(self.item.tenant_id, left=self._from, present=self._to, found=found, advance=advance)
        kept_until = clock.stamp(clock.now() + timedelta(days=int(self.item.grace_days)))
        self._note(
            state=place_changes.KEPT, holder="", done=checked.last, digest=checked.digest, trouble=checked.trouble(),
            kept_until=kept_until, ended_at=clock.stamp(),
        )  # fmt: skip

    def _checked(self, tickets: int) -> None:
        self._advance(tickets)
        self._look_up()

    # --- what they are made of ---

    def _follow_up(self) -> None:
        """Copy what was changed meanwhile, until what is left is short."""
        before = 0
        for turn in range(_ROUNDS):
            drained = self._drain_once(hurried=before >= PAGE)
            # What comes meanwhile may be more than that, and no less the next time: a hold then ends it.
            if drained < SHORT or (turn >= _LEAST_ROUNDS and before <= drained < PAGE):
                return
            before = drained
            self._note(changes=self._changes)
        raise Unavailable("Tickets are changed faster than they can be copied. Run it again.")

    def _drain_once(self, *, hurried: bool) -> int:
        """Copy the first page of the log. Where one page was full already, people may write faster than this copies."""
        if entries := self._hold.changes():
            self._sync(write_hold.partitions(entries), hurried=hurried)
            self._hold.forget(entries)
            self._changes += len(entries)
        return len(entries)

    def _sync(self, partitions: list[str], *, hurried: bool = False) -> None:
        for some in chunked(partitions, _AT_ONCE):
            self._copies.sync(some, hurried=hurried)
            self._look_up()

    def _attempt(self) -> bool:
        """Hold the writes, copy what is left, and switch. Tell whether that came about before somebody broke it."""
        seen = place_changes.seen(self.item)
        move = place_changes.move_of(self.item, seen)
        self._note(holds=int(self.item.holds) + 1)
        began = time.monotonic()
        try:
            self._hold.close(move.attempt)
            entries = self._hold.changes(limit=None)
            self._copies.sync([self._hold.counter, *write_hold.partitions(entries)], hurried=True)
            self._copies.close()
            self._changes += len(entries)
            values = {"switched_at": clock.stamp(), "phase": "verifying", "done": 0, "changes": self._changes}
            place_changes.switch(self.item, seen, me=self.me, values=values)
        except (Throttled, TransactionRefused):
            return self._give_up(move)
        except PortalError:
            with suppress(PortalError):
                self._give_up(move)
            raise
        self._note(phase="verifying", trouble="", held_ms=round((time.monotonic() - began) * 1000))
        return True

    def _give_up(self, move: Move) -> bool:
        placements.break_hold(self.item.tenant_id, move)
        return False

    def _cancel(self) -> None:
        """Bring everything back to as it was: nobody has moved."""
        self._cancelling = True
        self._say("cancelling")
        place_changes.call_off(self.item, self._hold)
        self._rest(self._settle_seconds)
        self._hold.tear_down()
        if placements.stored_location(self.item.tenant_id).former != self._to:
            if not self.item.lost:
                discarding.clear(self.item.tenant_id, self._to, caught_up=self._caught_up)
            place_changes.follow(self.item.tenant_id, self._to, no_more=True)
        self._note(state=place_changes.CANCELLED, holder="", ended_at=clock.stamp(), trouble="")


# --- the kind of job ---


_LOOK_SECONDS: Final = 5.0  # each look reads the last move of each tenant that was ever moved


def job_of(item: MoveItem, *, mover: dict[str, Any] | None = None, **how: Any) -> LeasedJob[MoveItem]:
    """Return what carries a move out, or its end, or the end of its old copy. `mover` is for the first two alone."""
    if item.state == place_changes.DISCARDING:
        return CopyDiscard(item, **how)
    return TenantMover(item, **(mover or {}), **how)


def follower(**how: Any) -> JobFollower[MoveItem]:
    """Return what carries out the moves that nobody carries out. It needs the rights of the lifecycle role."""
    return JobFollower(place_changes.MOVES, partial(job_of, **how), look_seconds=_LOOK_SECONDS)
