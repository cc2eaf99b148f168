"""Torture the workers that count, with hostile pollers, kills and thefts; then ask whether every number is right.

Writers in processes of their own change the tickets of temporary tenants. Pollers get batches again, in parts and
overlapping, are killed at any moment and between two writes, lose their leases and go on without, and take the stream
from others. Then all is recounted, and recounted once more when every ticket has been deleted. The seed
decides what each writer does, and not how the processes meet. Records of idempotency stay until their TTL.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Final

from portal.dynamo.client import fan_out
from portal.dynamo.store import Store
from portal.streams import positions, shards
from proofs import cleanup
from proofs.forked import Process, lines
from proofs.harness import LEASE_SECONDS, STEP, Torture, TortureFailed, count, decimal, signalled
from proofs.scenarios import hostile_poller, load
from tickets.ticket.stored import TICKETS
from tickets.verification import verify
from tickets.verification.verify import Verdict

FROZEN: Final = LEASE_SECONDS + 1.0  # seconds; a poller sleeps so long that another one follows the stream
_PATIENCE: Final = 10.0  # for a poller that was told to die between two writes


class Stream(Torture):
    options: ClassVar = {
        "events": count(20_000, "N", "to write"),
        "redeliver": decimal(0.3, "P", "share of batches that come again", 0, 1),
        "kills": count(10, "K", "of pollers", 0),
        "tenants": count(12, "T", "to write in"),
        "writers": count(3, "W", "at a time"),
        "pollers": count(3, "P", "at a time"),
    }
    must_be_empty = ("taken_away_or_called_wrong", "drift")
    kept = "No drift."
    follower = "poller"

    def work(self) -> None:
        plan, self.killed_between_writes, self.thefts = self.plan, 0, 0
        self.left: dict[str, Verdict] = {}  # after everything was deleted
        self.make_tenants(plan.tenants)
        # The tenant that is throttled now and then is the last one, so that others can be seen to go on.
        self.hostile = {"redeliver": plan.redeliver, "throttled": self.tenants[-1].tenant_id}
        with self.stage("Writing", plan.events) as progress:
            self._write(progress.advance)
        with self.stage("Recounting", len(self.tenants)) as progress:
            self._drain(progress.label)
            self.verdicts = self._check()
        with self.stage("Removing", len(self.tenants)):
            fan_out([partial(cleanup.delete_content, one) for one in self.ids])
        self._drain(lambda _: None)
        self.left = self._check()

    def _write(self, advance: Callable[[int], object]) -> None:
        """Let the writers write and the pollers follow, and inject the faults that are due, until all is written."""
        plan, ids = self.plan, self.ids
        rest = plan.events % plan.writers
        self.start_all(
            poller=(plan.pollers, hostile_poller.poll, self.hostile),
            repairs=(1, hostile_poller.repair, {"tenants": ids}),
        )
        for n in range(plan.writers):
            self.start("writer", load.write, tenants=ids, events=plan.events // plan.writers + (n < rest))
        faults: list[Callable[[], object]] = [(self._kill_between_writes, self._kill)[n % 2] for n in range(plan.kills)]
        faults += [(self._freeze, self._start_zombie)[n % 2] for n in range((plan.kills + 1) // 3)]
        self.inject(faults, "writer", plan.events, advance, replace=("poller",))
        (repairs,) = self.running["repairs"]
        signalled(repairs, signal.SIGTERM)  # the rebuild that is going on ends; it needs pollers for that
        while repairs.poll() is None:
            self.replace_dead("poller")
            time.sleep(STEP)
        self.end("repairs")
        if any(writer.poll() for writer in self.running["writer"]) or self.last_told("writer", "events") < plan.events:
            raise TortureFailed(f"A writer failed: {self.printed('writer')}")

    def _drain(self, say: Callable[[str], object]) -> None:
        """Wait until everything written so far is counted."""

        def waiting(sentence: str) -> None:
            say(sentence)
            self.replace_dead("poller")

        self.drain(waiting)
        self.end("zombie", seconds=30)

    def _check(self) -> dict[str, Verdict]:
        return {tenant.slug: verify.verify(Store("tenant", tenant.tenant_id)) for tenant in self.tenants}

    # --- faults: kills, and a third as many thefts of the stream ---

    def _holder(self) -> Process | None:
        """Return the poller of ours that holds a shard. One that was killed just now is waited for."""
        end = time.monotonic() + 4 * LEASE_SECONDS
        while time.monotonic() < end:
            owners = {shard.owner for shard in positions.unfinished(shards.arn(TICKETS))}
            for poller in self.running["poller"]:
                if next(lines(poller.journal), {}).get("me") in owners and poller.poll() is None:
                    return poller
            self.replace_dead("poller")
            time.sleep(2 * STEP)
        return None

    def _kill(self) -> None:
        if poller := self._holder():
            time.sleep(self.rng().uniform(0, 0.3))
            self.kill(poller)

    def _kill_between_writes(self) -> None:
        """Kill behind one of the writes of a batch, so that some aggregates have it and others do not."""
        if poller := self._holder():
            end = time.monotonic() + _PATIENCE
            signalled(poller, signal.SIGUSR1)
            while poller.poll() is None and time.monotonic() < end:
                time.sleep(STEP / 2)
            self.killed_between_writes += poller.poll() is not None
            self.kill(poller)

    def _freeze(self) -> None:
        """Let the holder sleep until another one has its shards, and go on as if nothing had happened."""
        if poller := self._holder():
            signalled(poller, signal.SIGSTOP)
            time.sleep(FROZEN)
            signalled(poller, signal.SIGCONT)
            self.thefts += 1

    def _start_zombie(self) -> None:
        """Work at the same time as the poller that follows the stream."""
        self.start("zombie", hostile_poller.haunt, **self.hostile)
        self.thefts += 1

    # --- what came of it ---

    def figures(self) -> dict[str, Any]:
        batches = [line for line in self.told("poller", "zombie") if "way" in line]
        repaired = self.told("repairs")
        first = [b for b in batches if b["way"] == "first"]
        again = [b for b in batches if b["way"] not in ("first", "zombie")]
        verdicts = {**self.verdicts, **{f"{slug} (emptied)": v for slug, v in self.left.items()}}
        return {
            "tickets": sum(v.tickets for v in self.verdicts.values()),
            "events": self.last_told("writer", "events"),
            "events_applied": sum(b["events"] for b in batches),
            "batches": len(first),
            "redeliveries": len(again),
            "events_redelivered": sum(b["events"] for b in again),
            "batches_of_zombies": sum(b["way"] == "zombie" for b in batches),
            "kills": self.kills["poller"],
            "killed_between_writes": self.killed_between_writes,
            "thefts": self.thefts,
            "rebuilds": sum("removed" in line for line in repaired),
            "verifications": sum("state" in line for line in repaired),
            "repairs_that_gave_up": [line["failed"] for line in repaired if "failed" in line],
            "taken_away_or_called_wrong": [
                one for line in repaired for one in (*line.get("removed", ()), *line.get("differences", ()))
            ],
            "dead_letters": sum(b["dead"] for b in first),
            "cannot_be_told": {slug: v.why for slug, v in verdicts.items() if v.state == verify.UNKNOWN},
            "drift": {s: [asdict(d) for d in v.differences] for s, v in verdicts.items() if v.state == verify.DRIFT},
        }
