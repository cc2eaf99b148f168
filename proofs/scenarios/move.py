"""Move a desk under load to tables of its own, kill the process that moves it at step after step, and look for
everything that was acknowledged.

Writers open, change and comment on tickets, and readers look at them. In the end all that was acknowledged must be at
the new place once, no read may have failed, both copies must be equal, and a recount must find the dashboards exact.
Waits for processes are shortened; its worker takes the streams from others.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any, ClassVar, Final

from django.core.management import call_command

from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.errors import PortalError
from portal.management.command import placement
from proofs import stored
from proofs.forked import Journal, repeat
from proofs.harness import Say, Torture, count, decimal, patiently
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import context, placements, tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, commenting, creating, lists
from tickets.jobs.leased_job import TakenOver
from tickets.moving import copy_check, move_requests, place_changes
from tickets.moving.discarding import CopyDiscard
from tickets.moving.stored import MoveItem
from tickets.moving.tenant_mover import PHASES, TenantMover
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import ActivityItem, SummaryItem
from tickets.verification import verify

CONTEXT_SECONDS: Final = 0.5  # for which a process trusts what it knows of a tenant
SETTLE_SECONDS: Final = 1.5
_ALIVE: Final = ("reader", "writer", "follower")
_POINTS: Final = ("copying", "holding", "announcing", "verifying", "catching")  # of kills, those that matter most first


def current(tenant_id: str) -> TenantContext:
    """Return the tenant as it is stored now."""
    return context.for_system(tenant_directory.get(tenant_id))


def forget_soon() -> None:
    """Trust what this process knows of a tenant for half a second only; for a process that the torture started."""
    placements.CONTEXT_SECONDS = CONTEXT_SECONDS


def write(told: Journal, seed: int, *, tenant_id: str, pause: float, tickets: int) -> None:
    """Open tickets, comment and change; note each acknowledged write. Some are sent with the knowledge of the one
    before."""
    forget_soon()
    tenant = current(tenant_id)

    def turn(rng: random.Random) -> None:
        nonlocal tenant
        text, number, kind = uuid.uuid4().hex, rng.randint(1, tickets), rng.choice(["ticket", "comment", "change"])
        try:
            if rng.random() < 0.7:
                tenant = current(tenant_id)
            if kind == "ticket":
                number = creating.create(tenant, title=text)
            elif kind == "comment":
                commenting.comment(tenant, number, body=text)
            else:
                changing.change(tenant, number, changing.Wishes(title=text, priority=rng.choice(list(Priority))))
        except PortalError as error:
            told.write(kind="refused", why=f"{type(error).__name__}: {error.message}")
        else:
            told.write(kind=kind, number=number, text=text)

    repeat(turn, seed, pause=pause)


def read(told: Journal, seed: int, *, tenant_id: str, pause: float, tickets: int) -> None:
    """Read lists and tickets that are there for certain; note each read that failed."""
    forget_soon()

    def turn(rng: random.Random) -> None:
        failed = ""
        try:
            tenant = current(tenant_id)
            changing.read(tenant, rng.randint(1, tickets))
            if not lists.page(tenant, status=[Status.OPEN, Status.PENDING], size=20).rows:
                failed = "a list was empty"
        except PortalError as error:
            failed = f"{type(error).__name__}: {error.message}"
        told.write(failed=failed)

    repeat(turn, seed, pause=pause)


def carry_out(told: Journal, seed: int, *, tenant_id: str, rate: float) -> None:
    """Carry the tenant's move out; the process that held it before is dead. Note each step."""
    forget_soon()
    if item := place_changes.MOVES.last(tenant_id):
        TenantMover(item, rate=rate, settle_seconds=SETTLE_SECONDS, say=lambda phase: told.write(phase=phase)).run()


def follow(told: Journal, seed: int) -> None:
    call_command("run_stream")


class DeskMove(Torture):
    options: ClassVar = {
        "tickets": count(300, "N", "that the desk has before"),
        "to": {
            "type": placement, "nargs": "+", "default": [Placement("bridge")], "metavar": "PLACE",
            "help": "one after the other: bridge, pool, silo/NAME (bridge)",
        },
        "writers": count(2, "W", "at a time"),
        "readers": count(1, "R", "at a time"),
        "kills": count(5, "K", "of movers, in each move", 0),
        "writes": decimal(20, "WRITES", "a second, of all writers together", 0.1, 1000),
        "reads": decimal(20, "READS", "a second, of all readers together: as many of lists as of tickets", 0.1, 1000),
        "rate": decimal(200, "TICKETS", "to copy in a second, at most", 0.1, 100_000),
    }  # fmt: skip
    must_be_empty = ("refused", "failed_reads", "lost", "doubled", "missing_changes", "different")
    must_be: ClassVar = {"moved": True, "same_digest": True, "dashboards": verify.OK}
    kept = "0 lost, 0 doubled, 0 failed reads, both copies equal, dashboards exact."
    follower = "follower"

    def work(self) -> None:
        plan, self.legs, self.killed_at = self.plan, list[MoveItem](), list[str]()
        self.make_tenants()
        self.start("follower", follow)
        self.open_tickets(plan.tickets)
        known = {"tenant_id": self.tenant_id, "tickets": plan.tickets}
        self.start_all(
            writer=(plan.writers, write, known | {"pause": plan.writers / plan.writes}),
            reader=(plan.readers, read, known | {"pause": 2 * plan.readers / plan.reads}),
        )
        self.wait_for_more("writer", plan.writers, *_ALIVE)
        with self.stage("Moving", None) as progress:
            for to in plan.to:
                self._discard_what_is_in_the_way(to)
                self._move(to, progress.label)
            progress.label("looking for what was written")
            self.wait_for_more("writer", 5 * plan.writers, *_ALIVE)
            self.end("writer", "reader", seconds=30)
            self.drain()

    def _last(self) -> MoveItem | None:
        return patiently(lambda: place_changes.MOVES.last(self.tenant_id))

    def _discard_what_is_in_the_way(self, to: Placement) -> None:
        """Delete the old copy, unless the stream worker is faster, and return when it is gone."""
        tenant = patiently(lambda: tenant_directory.get(self.tenant_id))
        if tenant.former_placement in (None, str(to)):
            return
        move_requests.discard(tenant, early=True, by=SYSTEM)

        def is_gone() -> bool:
            item = self._last()
            if item is None or item.state != place_changes.DISCARDING:
                return True
            with suppress(TakenOver):
                CopyDiscard(item).run()
            return False

        self.wait_until(is_gone)

    def _move(self, to: Placement, say: Say) -> None:
        """Move the desk, and kill its mover as often as is planned, at steps that come in turn."""
        points = [_POINTS[kill % len(_POINTS)] for kill in range(self.plan.kills)]
        # A holder's name keeps it from the stream worker, which waits 40 seconds where this waits less than two.
        move_requests.begin(tenant_directory.get(self.tenant_id), to=to, by=SYSTEM, holder="torture")

        def is_over() -> bool:
            return (item := self._last()) is not None and item.state not in place_changes.MOVES.unfinished

        self.killed_at += self.carry_out(
            carry_out, PHASES, points, is_over=is_over, alive=_ALIVE, say=lambda phase: say(f"to {to}: {phase}")
        )
        self.legs += [item] if (item := self._last()) else []

    def remove(self) -> None:
        super().remove()
        for to in {*self.plan.to} - {POOL} if self.tenants else ():
            provisioning.delete_placed(self.tenant_id, to)
            place_changes.follow(self.tenant_id, to, no_more=True)

    # --- what came of it ---

    def figures(self) -> dict[str, Any]:
        """Look for each acknowledged write at the last place, compare both copies, and recount the aggregates."""
        lines, reads, last = self.told("writer"), self.told("reader"), self.legs[-1]
        writes = [line for line in lines if line["kind"] != "refused"]
        stored_texts, missing = self._stored(writes)
        acknowledged = Counter(line["text"] for line in writes if line["kind"] != "change")
        checked = copy_check.check(self.tenant_id, left=Placement.parse(last.from_place), present=self.plan.to[-1])
        return {
            "writes": len(writes),
            "refused": [line["why"] for line in lines if line["kind"] == "refused"],
            "killed_at": self.killed_at,
            "reads": 2 * len(reads),
            "failed_reads": [line["failed"] for line in reads if line["failed"]],
            "lost": sorted(acknowledged - stored_texts),
            "doubled": sorted(text for text, times in stored_texts.items() if times > 1),
            "missing_changes": missing,
            "different": [item.trouble for item in self.legs if item.trouble] + checked.wrong,
            "same_digest": checked.digest == last.digest,
            "legs": [
                {"left": item.from_place, "to": item.to_place, "changes": int(item.changes), "holds": int(item.holds)}
                for item in self.legs
            ],
            "moved": all(item.state == place_changes.KEPT for item in self.legs),
            "dashboards": verify.verify(self.repository()).state,
        }

    def _stored(self, writes: list[dict[str, Any]]) -> tuple[Counter[str], list[str]]:
        """Count the titles that tickets were opened with and the texts of comments, at the last place, and name the
        titles that somebody gave to a ticket whose history does not say so exactly once.
        """
        found, missing, given = Counter[str](), list[str](), defaultdict[int, list[str]](list)
        for line in writes:
            if line["kind"] == "change":
                given[line["number"]].append(line["text"])
        first_title = {line["number"]: line["text"] for line in writes if line["kind"] == "ticket"}
        for number, items in stored.collections(self.repository()):
            entries = [item for item in items if isinstance(item, ActivityItem)]
            titles = [item.title for item in items if isinstance(item, SummaryItem)]
            found.update(first_title.get(number, one) if one in given[number] else one for one in titles)
            found.update(entry.body for entry in entries if entry.body)
            history = [change.after for entry in entries for change in entry.changes]
            missing += [title for title in given[number] if history.count(title) != 1]
        return found, missing
