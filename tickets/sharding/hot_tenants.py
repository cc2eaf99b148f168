"""Ask for more shards for a tenant whose partitions are hot. Never for fewer: that is an operator's to decide."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from portal import clock
from portal.errors import ConditionFailed, NotFound
from portal.streams import worker
from tenants.tenancy.shard_layout import MOST_SHARDS, ShardLayout
from tickets.sharding import layout_changes, reshard_notes
from tickets.sharding.hot_partitions import Heat
from tickets.sharding.items import ReshardItem

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

    What a full partition refuses leaves no record. So of a full one nobody knows how hot it would be: it gets all.
    """
    if units >= _FULL:
        return MOST_SHARDS
    wanted = 1
    while wanted <= shards or wanted * hot < _ROOM * shards * units:
        wanted *= 2
    return min(wanted, MOST_SHARDS)


def _has_cooled(item: ReshardItem) -> bool:
    if item.state in reshard_notes.UNFINISHED:
        return False
    return clock.parse(item.ended_at) + COOL_DOWN < clock.now()


def _begin(heat: Heat, hot: float) -> bool:
    try:
        tenant = layout_changes.stored(heat.tenant_id)
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
    item, actions, free = reshard_notes.begun(tenant=tenant, to_shards=to_shards, reason=reason, by="", holder="")
    try:
        worker.change(item, actions, condition=free)
    except ConditionFailed:
        return False
    log.warning("%s is resharded to %d: %s", tenant.slug, to_shards, reason)
    return True
