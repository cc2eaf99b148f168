"""Delete all that is stored for a tenant, by the holdings that the packages declare, look again, and certify it.

    begun       everybody is shut out; what is stored is counted
    stages      what names other things goes after those; behind the tickets their stream is waited for, so that no
                follower writes afterwards, and then nobody follows its own tables any more; the tenant's people, its
                audit trail and its own item go last
    checked     nothing is found any more; its own tables, if it has some, are deleted
    certified   the certificate is stored, and what was noted of the purge goes with it

Each stage is looked through again until nothing is found, before the next one takes away what it is found by. Each step
is right however often it is done, so a purge goes on after a kill at any point.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from django.conf import settings

from portal import clock
from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Store, Transaction
from portal.errors import Conflict
from portal.schema import holdings
from portal.schema.holdings import Holding, Stage
from portal.streams.poller_fleet import LOOK_SECONDS
from tenants.audit_trail import chain
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import certificates
from tenants.tenancy import placements
from tenants.tenancy.placements import CONTEXT_SECONDS
from tickets.counting import stream_barrier
from tickets.jobs.job_follower import JobFollower
from tickets.jobs.leased_job import LeasedJob
from tickets.moving import place_changes
from tickets.purging import erasing, purge_requests
from tickets.purging.erasing import Eraser
from tickets.purging.stored import PurgeItem

# Whoever was let in before may be at work for so long: a request with all its attempts, a delivery with its receiver.
SETTLE_SECONDS: Final = max(2 * CONTEXT_SECONDS, 40.0)
_ROUNDS: Final = 3  # through all stages: what processes note of others minute by minute comes late
_LOOKS: Final = 20  # through a stage, until nothing is found
_LOOK_SECONDS: Final = 0.2  # between two of them: an index lags behind its table
_NOTED: Final = 500  # items that are deleted before that is noted


class TenantPurge(LeasedJob[PurgeItem]):
    """Carries out a purge that has begun. `by` is whoever does it; `certificate` is what has come of it.

    `rate` is in items a second, `advance` gets the number of deleted items, `say` a few words on what is done.
    """

    kind = purge_requests.PURGES

    def __init__(
        self,
        item: PurgeItem,
        *,
        by: Actor,
        rate: float = erasing.RATE,
        settle: float | None = None,
        unfollow: float = 3 * LOOK_SECONDS,
        sleep: Callable[[float], object] = time.sleep,
        caught_up: Callable[[Store], object] | None = None,
        **how: Any,
    ) -> None:
        super().__init__(item, **how)
        self.certificate = b""
        self.counts = purge_requests.counts_of(item)
        self._by, self._settle, self._unfollow = by, SETTLE_SECONDS if settle is None else settle, unfollow
        self._places = [Placement.parse(text) for text in str(item.places).split()]
        self._eraser = Eraser(item.tenant_id, self._places, rate=rate, sleep=sleep, between=self._look_up)
        self._caught_up = caught_up or partial(stream_barrier.wait_until_applied, say=lambda _: self._look_up())
        self._unnoted = 0
        self._goes_on = bool(self.counts)
        self._doing = str(item.phase)

    def _carry_out(self) -> None:
        """Delete what is left, and issue the certificate.

        Raises Conflict where something is found again and again, WorkerAway where nobody follows the tickets' stream,
        and Throttled, Unavailable; run again, it goes on.
        """
        rounds = 0
        while self.item.state == purge_requests.RUNNING:
            rounds += 1
            self._count()
            for stage in Stage:
                if stage > int(self.item.stage):
                    self._clear_stage(stage)
            self._check(is_last=rounds == _ROUNDS)
        for place in self._places:
            if place != POOL:
                provisioning.delete_placed(self.item.tenant_id, place)
        self._certify()

    def _count(self) -> None:
        """Count what there is, the first time."""
        if self.counts:
            return
        self._tell("counting")
        self.counts = {one.name: purge_requests.HoldingCount(self._eraser.count(one)) for one in _purged()}
        self._note()

    def _clear_stage(self, stage: Stage) -> None:
        if stage is Stage.TRAIL and not self.item.chains:
            self._note(chains=json.dumps(chain.ends_of(self.item.tenant_id)))
        if stage is Stage.CONTENT:
            self._tell("waiting for what was begun before")
            self._rest(self._settle)
            self._clear_all(Stage.NAMED)  # and what it has written meanwhile
        if stage is Stage.BESIDE:
            self._follow_no_more()
        self._clear_all(stage)
        if stage is Stage.CONTENT:
            self._wait_for_followers()
        self._note(stage=int(stage))

    def _wait_for_followers(self) -> None:
        """Wait until the streams are applied, but for one that nobody follows any more: its tables go."""
        for place in self._places:
            if place == POOL or placements.is_listed(self.item.tenant_id, place):
                self._tell("waiting for the stream worker")
                self._caught_up(Store("tenant", self.item.tenant_id, place))

    def _follow_no_more(self) -> None:
        """End whoever follows own tables: they would write leases and a watermark as often as those are deleted.

        A process that is slower than this wait causes the stage to be repeated.
        """
        own = [place for place in self._places if place != POOL]
        for place in own:
            place_changes.follow(self.item.tenant_id, place, no_more=True)
        if own:
            self._tell("waiting until nobody follows its own tables")
            self._rest(self._unfollow)

    def _clear_all(self, stage: Stage) -> None:
        """Clear the holdings of a stage until none of them has anything."""
        for look in range(_LOOKS):
            found = 0
            for holding in _purged(stage):
                found += self._clear(holding, is_first=look == 0)
            if not found:
                return
            self._rest(_LOOK_SECONDS)
        raise Conflict(f"Something is written again and again in the stage {stage.name}. Run it again.")

    def _clear(self, holding: Holding, *, is_first: bool) -> int:
        """Delete what a holding has now, and return how many items that were."""
        count = self.counts.setdefault(holding.name, purge_requests.HoldingCount())
        if is_first and self._goes_on:
            # What a killed run has deleted last, it may not have noted.
            count.deleted = max(count.deleted, count.counted - self._eraser.count(holding))

        def deleted(items: int) -> None:
            count.deleted += items
            self._advance(items)
            self._unnoted += items
            if self._unnoted >= _NOTED:
                self._note()
            self._look_up()

        self._tell(f"deleting {holding.name}")
        return self._eraser.clear(holding, deleted=deleted)

    def _check(self, *, is_last: bool) -> None:
        """Look through everything once more. Where anything is found, begin anew, or raise Conflict if `is_last`."""
        self._tell("looking through everything again")
        for holding in _purged():
            self.counts[holding.name].found_after = self._eraser.count(holding)
        left = {name: count.found_after for name, count in self.counts.items() if count.found_after}
        if left:
            self._note(stage=0)  # what came back is deleted from the beginning
            if is_last:
                raise Conflict(f"Something is written again and again: {', '.join(left)}. Run it again.")
            return
        self._note(state=purge_requests.CHECKED)

    def _tell(self, what: str) -> None:
        self._doing = what  # noted with the next heartbeat
        self._say(what)

    def _always_noted(self) -> dict[str, Any]:
        self._unnoted = 0
        counts = {name: asdict(count) for name, count in self.counts.items()}
        return {"counts": json.dumps(counts), "phase": self._doing}

    def _certify(self) -> None:
        transaction = Transaction()
        transaction.delete(self.item, condition=PurgeItem.holder == self.item.holder)  # nobody has taken it over
        self.certificate = certificates.issue(
            _facts(self.item, self.counts, self._by),
            tenant_id=self.item.tenant_id,
            title=self.item.title,
            by=self._by,
            transaction=transaction,
        )


def count(tenant_id: str, places: list[Placement]) -> dict[str, int]:
    """Count what a purge would delete, by holding. Costs the reads of everything that the tenant has."""
    eraser = Eraser(tenant_id, places)
    return {holding.name: eraser.count(holding) for holding in _purged()}


def _purged(stage: Stage | None = None) -> list[Holding]:
    """Return the holdings that go with their tenant, all or those of a stage, in the order in which they can go."""
    return [one for one in holdings.holdings() if not one.keep_on_purge and stage in (None, one.stage)]


def _facts(item: PurgeItem, counts: purge_requests.Counts, by: Actor) -> dict[str, Any]:
    """Return what the certificate says. Times are in UTC."""
    ends = {partition: (end[0], end[1]) for partition, end in json.loads(item.chains).items()}
    return {
        "kind": "deletion of a tenant",
        "installation": settings.PORTAL_BASE_URL or settings.DYNAMODB_TABLE_PREFIX,
        "tenant": {"id": item.tenant_id, "slug": item.slug, "name": item.title},
        "reason": item.reason,
        "asked_by": {"id": item.by_id, "email": item.by_email, "origin": item.by_origin},
        "carried_out_by": {"id": by.id, "email": by.email, "origin": by.origin},
        "asked_at": item.asked_at,
        "begun_at": item.begun_at,
        "grace_until": item.closes_at,
        "placements": str(item.places).split(),
        "audit_fingerprint": chain.fingerprint(ends),
        "audit_chain": [{"partition": name, "rows": rows, "hash": digest} for name, (rows, digest) in ends.items()],
        "holdings": [
            {
                "name": one.name,
                "tables": sorted(table.name for table in one.tables),
                "counted": counts[one.name].counted,
                "deleted": counts[one.name].deleted,
                "found_after": counts[one.name].found_after,
            }
            for one in _purged()
        ],
        "kept": [{"name": one.name, "because": one.keep_on_purge} for one in holdings.holdings() if one.keep_on_purge],
    }


# --- the kind of job ---


_BY: Final = Actor(origin="worker")


def follower(**how: Any) -> JobFollower[PurgeItem]:
    """Return what carries out the purges that nobody carries out. It needs the rights of the lifecycle role."""
    return JobFollower(purge_requests.PURGES, partial(_job, **how), look=_due)


def _due() -> list[PurgeItem]:
    now = clock.now()
    return [
        item
        for item in purge_requests.PURGES.all_last()
        if item.state != purge_requests.ORDERED or purge_requests.begins_at(item) <= now
    ]


def _job(item: PurgeItem, **how: Any) -> TenantPurge:
    begun = purge_requests.begin_ordered(item, by=_BY)
    if begun is None:
        raise Conflict("The tenant was reopened since: its order is dropped.")
    return TenantPurge(begun, by=_BY, **how)
