"""Keep how far a recount has come, so that one that was killed or stopped is gone on with.

A recount reads tickets in groups of numbers. Before the first, what has touched the aggregates so far is written, and
behind each group its sum, as an item of its own. Nothing that is written is changed, so a process may be killed between
any two calls, or write late beside the one that took its place: each sum is what a group contributed at some moment
after the beginning. Whether a ticket has changed since is told by the aggregates' touches, as in a recount without a
break; see verify.py. No clock decides; TTL clears away.

One group costs a write unit for each KB of its sum, some 3 beside the 800 read units of its tickets. A tenant with a
single group keeps nothing.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from portal.dynamo.repository import TenantRepository
from tickets.counting import coding
from tickets.counting.stored_counts import Group, Stored
from tickets.ticket.stored import TICKETS
from tickets.verification import keys
from tickets.verification.items import RoundItem, SumItem
from tickets.verification.recount import GROUP, Recount

_KEPT_SECONDS: Final = 86400
_LIMIT: Final = 350_000  # bytes; a longer sum, of tags as nobody has them, is not kept

Touches = Mapping[Group, frozenset[tuple[int, int, int]]]


@dataclass
class RecountRound:
    """One recount. `touches` and `correction` are those of its beginning, `reached` is the number behind which it goes
    on, `total` the sum up to it. `id` is "" for one that is not kept."""

    id: str
    touches: Touches
    correction: str
    reached: int = 0
    total: Recount = field(default_factory=Recount)

    @property
    def is_resumed(self) -> bool:
        return self.reached > 0


def begin(repository: TenantRepository, before: Stored, *, last: int) -> RecountRound:
    """Begin a recount of the tickets up to the number `last`: one write where there is more than one group of them."""
    begun = RecountRound(uuid.uuid4().hex if last > GROUP else "", before.touches, before.recent.correction)
    if begun.id:
        touches = [[*group, sorted(stands)] for group, stands in before.touches.items()]
        data = _packed({"touches": touches, "correction": begun.correction})
        _write_round(repository, begun.id, data if len(data) < _LIMIT else b"")
    return begun


def resume(repository: TenantRepository) -> RecountRound | None:
    """Return the recount that was broken off with at least one sum, None where there is none: a read of each sum."""
    item = repository.get(RoundItem, keys.recounting, sort=keys.ROUND, consistent=True)
    if item is None or not item.round or not item.data:
        return None
    begun = _unpacked(item.data)
    touches = {(k, date): frozenset((e, m, n) for e, m, n in stands) for k, date, stands in begun["touches"]}
    found = RecountRound(item.round, touches, begun["correction"])
    for raw in repository.query_all(TICKETS, keys.recounting, begins_with=keys.sums(item.round), consistent=True):
        if keys.end_of(raw["sk"]["S"]) != found.reached + GROUP:
            break  # one before it has expired
        found.reached += GROUP
        found.total.merge(_sum(SumItem.from_raw_data(raw).data))
    return found if found.is_resumed else None


def keep(repository: TenantRepository, of: RecountRound, number: int, part: Recount) -> None:
    """Write the sum of the group that ends with this number."""
    data = _packed({"c": coding.coded(part.counts), "t": part.tickets, "u": part.uncountable})
    if not of.id or len(data) >= _LIMIT:
        return
    item = SumItem(repository.key(keys.recounting), keys.sum_behind(of.id, number))
    repository.update(item, [SumItem.data.set(data), SumItem.expires_at.set(_expiry())])


def end(repository: TenantRepository, of: RecountRound) -> None:
    """Say that there is nothing to go on with."""
    if of.id:
        _write_round(repository, "", b"")


def _write_round(repository: TenantRepository, round_id: str, data: bytes) -> None:
    item = RoundItem(repository.key(keys.recounting), keys.ROUND)
    repository.update(
        item, [RoundItem.round.set(round_id), RoundItem.data.set(data), RoundItem.expires_at.set(_expiry())]
    )


def _expiry() -> int:
    return int(time.time()) + _KEPT_SECONDS


def _sum(data: bytes) -> Recount:
    read = _unpacked(data)
    part = Recount(tickets=read["t"], uncountable=read["u"])
    part.add_counts(coding.decoded(read["c"]))
    return part


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def _unpacked(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
