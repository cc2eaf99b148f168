"""See from the stream which index partitions are written most, and ask for more shards where one is getting hot.

DynamoDB takes 1,000 write units a second for one partition key, and each index is written on its own. A record's cost
for a partition follows from its images, so nothing is read for this. Time is that of the records and not of their
arrival, or a worker that catches up would see a flood where there was none.

Pollers share the stream, and each sees a part of it. A worker that sees a warm partition writes it down for the others,
and the counts are added up one window later. Where nothing is warm nothing is written and nothing is read.

A tenant whose partitions are hot gets more shards, never fewer: that is for an operator to decide.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from portal import clock
from portal.errors import ConditionFailed, NotFound
from portal.heat_sketch import HeatSketch
from portal.streams.batch import Record
from portal.streams.worker import WORKER
from tenants.tenancy.placements import ShardLayout
from tenants.tenancy.stored import MOST_SHARDS
from tickets.sharding import reshard_job, reshard_requests, stored
from tickets.sharding.stored import HeatItem, ReshardItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import SUMMARY

WINDOW_SECONDS: Final = 10
WINDOWS: Final = 3  # one after the other in which a partition is hot
_WINDOW_DIGITS: Final = 18  # of a stamp: all but the last digit of the seconds
_OPEN: Final = 2  # windows that records may still come for: stream shards are not read in step
_WARM: Final = 1 / 8  # of what is hot: who sees less does not tell, so that up to 8 pollers miss nothing
_TOLD: Final = 20  # partitions that one worker tells of
_FORGOTTEN: Final = timedelta(hours=1)
_INDEX_KB: Final = 1024

Windows = Mapping[str, Mapping[str, float]]  # by the beginning of a window, write units a second by partition


@dataclass(frozen=True)
class Heat:
    """A partition that was hot for some windows: its tenant, and the write units a second that it took at least."""

    tenant_id: str
    status: str
    shard: int
    units: float


class HeatWatch:
    """Counts what the records of this process have cost each partition. `hot` is in write units a second."""

    def __init__(self, *, hot: float, counters: int | None = None) -> None:
        self.me = uuid.uuid4().hex
        self._hot, self._counters = hot, counters
        self._lock = threading.Lock()
        self._open: dict[str, HeatSketch] = {}
        self._closed: dict[str, dict[str, float]] = {}  # the warm partitions of the last windows
        self._untold = False

    def add(self, records: Sequence[Record]) -> None:
        """Count the records of a batch."""
        costs: dict[str, Counter[str]] = {}
        for record in records:
            if record.keys.get("sk") == SUMMARY and record.created_at:
                costs.setdefault(record.created_at[:_WINDOW_DIGITS], Counter()).update(_costs(record))
        with self._lock:
            for window, counted in sorted(costs.items()):
                self._count(window, counted)

    def _count(self, window: str, counted: Counter[str]) -> None:
        if window not in self._open:
            if len(self._open) >= _OPEN and window < min(self._open):
                return  # of a shard that is far behind: its windows are over
            self._open[window] = HeatSketch() if self._counters is None else HeatSketch(self._counters)
            for old in sorted(self._open)[:-_OPEN]:
                self._close(old, self._open.pop(old))
        for partition, units in counted.items():
            self._open[window].add(partition, units)

    def _close(self, window: str, sketch: HeatSketch) -> None:
        warm = sketch.at_least(self._hot * _WARM * WINDOW_SECONDS)
        kept = dict(sorted(warm.items(), key=lambda pair: -pair[1])[:_TOLD])
        if kept:
            self._closed[window] = {name: round(units / WINDOW_SECONDS, 1) for name, units in kept.items()}
            self._untold = True
        for old in sorted(self._closed)[: -WINDOWS - 1]:
            del self._closed[old]

    def hot(self) -> list[Heat]:
        """Tell the others what is warm here, and return what is hot with all of them added up.

        An UpdateItem and a Query where a window has just ended in which something was warm. Raises Unavailable.
        """
        if not (news := self.news()):
            return []
        heat = HeatItem(stored.HEAT, self.me)
        WORKER.update(heat, [HeatItem.windows.set(json.dumps(news)), HeatItem.told_at.set(clock.stamp())])
        told: list[Windows] = []
        for item in list(WORKER.query_all(HeatItem, stored.HEAT, consistent=True)):
            if clock.parse(item.told_at) < clock.now() - _FORGOTTEN:
                WORKER.delete(item)
            else:
                told.append(json.loads(item.windows))
        return lasting(told, hot=self._hot)

    def news(self) -> Windows:
        """Return what was warm here in the last windows, and nothing where this has been asked since one ended."""
        with self._lock:
            if not self._untold:
                return {}
            self._untold = False
            return dict(self._closed)


def lasting(told: Iterable[Windows], *, hot: float) -> list[Heat]:
    """Add up what everybody has told, and return what was hot in the last windows but the newest, of which not
    everybody has told yet."""
    windows: dict[str, Counter[str]] = {}
    for one in told:
        for window, warm in one.items():
            windows.setdefault(window, Counter()).update(warm)
    known = sorted(windows)[:-1][-WINDOWS:]
    if len(known) < WINDOWS or _second(known[-1]) - _second(known[0]) != (WINDOWS - 1) * WINDOW_SECONDS:
        return []
    found = []
    for name in windows[known[-1]]:
        units = min(windows[window][name] for window in known)
        tenant_id, status, shard = json.loads(name)[:3]
        if units >= hot:
            found.append(Heat(tenant_id, status, shard, units))
    return sorted(found, key=lambda heat: -heat.units)


def _second(window: str) -> float:
    return clock.parse(f"{window}0.000000Z").timestamp()


def _costs(record: Record) -> dict[str, float]:
    """Return the write units that a change has cost the partitions of one index: one per KB for a row that goes, and
    one for a row that comes."""
    old, new = record.typed_old or {}, record.typed_new or {}
    units = max(1.0, record.size / max(1, bool(old) + bool(new)) / _INDEX_KB)
    costs: dict[str, float] = {}
    for image in (old, new):
        key: Any = image.get("tenant_status", {}).get("S", "")
        parts = ticket_keys.shelf_of(key)
        owner = ticket_keys.owner_of(str(record.keys.get("pk", "")))
        if parts and owner:
            name = json.dumps([owner[0], *parts])
            costs[name] = costs.get(name, 0.0) + units
    return costs


# --- more shards ---


log = logging.getLogger("pooldesk.stream")

COOL_DOWN: Final = timedelta(minutes=10)  # after a resharding of the same tenant has ended
_FULL: Final = 900  # write units a second: some are refused from here on, and the stream does not say how many
_ROOM: Final = 2  # times the heat that is seen: a tenant that grows should not be resharded again at once


def ask(heats: Sequence[Heat], last: Iterable[ReshardItem], *, hot: float) -> list[str]:
    """Begin a resharding for each tenant that is hot and may have more shards. Return their ids.

    `last` are the last reshardings as they are known. Raises Unavailable.
    """
    resting = {item.tenant_id for item in last if not _has_cooled(item)}
    worst = {heat.tenant_id: heat for heat in sorted(heats, key=lambda heat: heat.units)}
    return [tenant_id for tenant_id, heat in worst.items() if tenant_id not in resting and _begin(heat, hot)]


def wanted_shards(shards: int, units: float, hot: float) -> int:
    """Return how many shards make a partition cool that takes so many units a second: a power of two, at least the
    next one, and at most MOST_SHARDS.

    Writes that a full partition refuses leave no record. So of a full one nobody knows how hot it would be: it gets
    all.
    """
    if units >= _FULL:
        return MOST_SHARDS
    wanted = 1
    while wanted <= shards or wanted * hot < _ROOM * shards * units:
        wanted *= 2
    return min(wanted, MOST_SHARDS)


def _has_cooled(item: ReshardItem) -> bool:
    if reshard_requests.RESHARDINGS.goes_on(item):
        return False
    return clock.parse(item.ended_at) + COOL_DOWN < clock.now()


def _begin(heat: Heat, hot: float) -> bool:
    try:
        tenant = reshard_job.stored(heat.tenant_id)
    except NotFound:
        return False
    if tenant.move or tenant.arriving:  # a resharding can wait, and what an import writes is hot for a while only
        return False
    layout = ShardLayout.of(tenant)
    to_shards = wanted_shards(layout.writers, heat.units, hot)
    if to_shards <= layout.readers:
        return False
    reason = (
        f"Partition {heat.shard} of {heat.status.lower()} tickets took {heat.units:,.0f} write units a second, "
        f"and {hot:,.0f} count as hot."
    )
    item, actions, free = reshard_requests.begun(tenant=tenant, to_shards=to_shards, reason=reason, by="", holder="")
    try:
        WORKER.update(item, actions, condition=free)
    except ConditionFailed:
        return False
    log.warning("%s is resharded to %d: %s", tenant.slug, to_shards, reason)
    return True
