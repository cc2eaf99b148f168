"""Hold what a move has left against what is at its destination, ticket by ticket.

A ticket is either the same at both places, or it was changed at the new one since: then it has all entries that it had,
and a later version, or it stands in another shard and is the same otherwise. Entries change by an erasure alone.
Anything else is told, and keeps the old copy from being discarded: something that was written late, by a process that
stood still for longer than the move waits, is in the old copy alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.placement import Placement
from portal.dynamo.store import chunked
from portal.dynamo.tenant_reader import lifecycle_store
from tickets.moving.ticket_copies import Raw, raw_collection
from tickets.ticket import stored
from tickets.ticket.fields import BY_NAME
from tickets.ticket.stored import TICKETS, CounterItem

_AT_ONCE: Final = 8
NAMED: Final = 20  # tickets that are named in a sentence
_GROWING: Final = ("version", "comment_count", "updated_at", "noted_at", "epoch")
_OF_VERSION: Final = (*BY_NAME, "requester", "created_at")  # of a summary
_SHARD: Final = "tenant_status"  # all that a resharding changes
_ERASED: Final = "erased_versions"
_NEVER_ERASED: Final = ("kind", "at", "verb", "request")  # of an entry of the history


@dataclass
class CopyCheck:
    """Hold what a comparison has found up to the ticket `last`, from which it can go on later.

    `digest` is that of what was left: of the digest up to the ticket before, and the ticket's own. `wrong` has the
    numbers of tickets that the new place lacks something of.
    """

    digest: str = ""
    last: int = 0
    tickets: int = 0
    changed: int = 0  # at the new place since
    wrong: list[int] = field(default_factory=list)

    def trouble(self) -> str:
        """Return a sentence that names what is wrong, "" where nothing is."""
        if not self.wrong:
            return ""
        named = ", ".join(map(str, self.wrong[:NAMED])) + (" and others" if len(self.wrong) > NAMED else "")
        return f"The old copy has something that the new place has not, in tickets: {named}. The old copy stays."


def check(
    tenant_id: str,
    *,
    left: Placement,
    present: Placement,
    found: CopyCheck | None = None,
    advance: Callable[[int], object] = lambda tickets: None,
) -> CopyCheck:
    """Compare the tickets of the place that was left with those of the place where they are: two Queries for each.

    With what was `found` before it goes on behind that, and adds to it before each call of `advance`.
    """
    places = [lifecycle_store(tenant_id, place) for place in (left, present)]
    counter = places[0].get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET, consistent=True)
    found, last = found or CopyCheck(), int(counter.last) if counter else 0
    for numbers in chunked(range(found.last + 1, last + 1), _AT_ONCE):
        partitions = [stored.ticket(tenant_id, number) for number in numbers]
        collections = fan_out([partial(raw_collection, place, one) for one in partitions for place in places])
        for number, here, there in zip(numbers, collections[::2], collections[1::2], strict=True):
            _compare(found, number, here, there)
            found.digest = hashlib.sha256(f"{found.digest}{digest_of(here)}".encode()).hexdigest()
        found.last = numbers[-1]
        advance(len(numbers))
    return found


def _compare(found: CopyCheck, number: int, here: list[Raw], there: list[Raw]) -> None:
    found.tickets += bool(here)
    if here == there:
        return
    if is_later(here, there):
        found.changed += 1
    else:
        found.wrong.append(number)


def is_later(here: list[Raw], there: list[Raw]) -> bool:
    """Tell whether a ticket is there as it was here and was changed since: all entries, and a later version.

    Without anything later, it may stand in another shard.
    """
    left, present = ({raw[str(TICKETS.range)]["S"]: raw for raw in items} for items in (here, there))
    if not left.keys() <= present.keys():
        return False
    before, after = left.get(stored.SUMMARY, {}), present.get(stored.SUMMARY, {})
    if any(_stands(after, name) < _stands(before, name) for name in _GROWING):
        return False
    if not any(_stands(after, name) > _stands(before, name) for name in _GROWING):
        return {**left, stored.SUMMARY: {**before, _SHARD: {}}} == {**present, stored.SUMMARY: {**after, _SHARD: {}}}
    return _is_kept(left, present)


def _is_kept(left: dict[str, Raw], present: dict[str, Raw]) -> bool:
    """Tell whether nothing differs, of what a ticket had, that cannot have been changed since: an entry of its history
    but by an erasure, and at the same version what a version is made for."""
    before, after = left.get(stored.SUMMARY, {}), present.get(stored.SUMMARY, {})
    entries = [sort for sort in left if sort.startswith(stored.ACTIVITY_PREFIX)]
    if after.get(_ERASED) == before.get(_ERASED):
        is_same = all(left[sort] == present[sort] for sort in entries)
    else:
        is_same = all(left[sort].get(name) == present[sort].get(name) for sort in entries for name in _NEVER_ERASED)
    if _stands(after, "version") > _stands(before, "version"):
        return is_same
    is_same = is_same and left.get(stored.DETAIL) == present.get(stored.DETAIL)
    return is_same and all(before.get(name) == after.get(name) for name in _OF_VERSION)


def _stands(summary: Raw, name: str) -> Any:
    value = summary.get(name, {})
    return (
        int(value["N"]) if "N" in value else 0 if name in ("version", "comment_count", "epoch") else value.get("S", "")
    )


def digest_of(collection: list[Raw]) -> str:
    ordered = sorted(collection, key=lambda raw: raw[str(TICKETS.range)]["S"])
    text = json.dumps(ordered, sort_keys=True, ensure_ascii=False, default=lambda value: bytes(value).hex())
    return hashlib.sha256(text.encode()).hexdigest()
