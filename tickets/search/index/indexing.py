"""Add what a batch of stream records has brought to the indexes of its tenants.

Per tenant one item is written: the terms of all its texts in the batch. Nothing is ever taken out: what a ticket does
not say any more, its own text denies when somebody searches. So a batch may come twice, in other pieces or late, and
the index is what it was. The item is named for the records in it: the same ones write the same item again.

Tenants are indexed at the same time and fail alone. Throttled tenants get their records back. A record that can never
be indexed, by a bug, is logged and skipped: the counting after it must not wait for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from portal.errors import Throttled, TransactionRefused, Unavailable
from portal.quotas import BoundedCache
from portal.schema.keys import digest
from portal.streams.batch import Batch, Record
from tickets.search import stored, tokenizer
from tickets.search.index import fragments, postings, publishing
from tickets.search.index.fragments import Fragment
from tickets.search.index.index_store import IndexStore
from tickets.search.stored import NewItem
from tickets.ticket.stored import owner_of

log = logging.getLogger("pooldesk.stream")

LARGE: Final = 8 * 1024  # bytes from which on a batch is written as a segment: a search reads all that is new
_DIGEST_BYTES: Final = 12
_NEVER: Final = "%s of tenant %s cannot be indexed. When that is mended, run: manage.py rebuild_search"
_TENANTS: Final = 10_000  # whose last records of a shard a process remembers

_last: BoundedCache[tuple[str, str, str], str] = BoundedCache(_TENANTS)  # sequence by stream, shard and tenant


@dataclass
class Indexed:
    """The outcome of a batch: what failed by tenant, what was added to whose index, and what that has cost."""

    failed: dict[str, Unavailable] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)  # bytes by tenant
    records: int = 0
    write_units: float = 0.0


def index(batch: Batch) -> Indexed:
    """Add a batch to the index of each tenant in it. Throttled tenants are in `failed` and not indexed."""
    outcome = Indexed()
    by_tenant: dict[str, list[Record]] = defaultdict(list)
    for record in batch.records:  # those that name no tenant are nobody's text
        if fragments.concerns_search(record) and (tenant_id := _tenant_of(record)):
            by_tenant[tenant_id].append(record)
    fan_out([partial(_attempt, batch, tenant, some, outcome) for tenant, some in by_tenant.items()])
    return outcome


def add(store: IndexStore, name: str, some: Sequence[Fragment]) -> int:
    """Add fragments to an index, as one item or as a segment, and return its bytes. Raises Throttled, Unavailable.

    `name` tells these fragments from all others: hex digits.
    """
    found = [(term, postings.entries(several)) for term, several in fragments.inverted(some)]
    if not found:
        return 0
    block = postings.pack_block((term, entry) for term, entries in found for entry in entries)
    if len(block) >= LARGE:
        return publishing.write(store, found, tokenizer.VERSION, expected=len(block))
    store.put(store.row(NewItem, stored.new(name), block=block, version=tokenizer.VERSION))
    return len(block)


def _attempt(batch: Batch, tenant_id: str, some: list[Record], outcome: Indexed) -> None:
    try:
        _index(batch, IndexStore(tenant_id), some, outcome)
    except Unavailable as error:
        log.warning("The index of tenant %s has to wait: %s", tenant_id, error.message)
        outcome.failed[tenant_id] = error
    except TransactionRefused:  # it took so long that it was taken for dead
        outcome.failed[tenant_id] = Throttled("A batch was not indexed in time.")
    except Exception:
        log.exception(_NEVER, "Changes", tenant_id)


def _index(batch: Batch, store: IndexStore, some: list[Record], outcome: Indexed) -> None:
    """Add the records that this process has not added before: a shard's come in their order."""
    place = (batch.stream_arn, batch.shard_id, store.tenant_id)
    last = _last.get(place) or ""
    found = [(record.sequence, changed) for record in some if record.sequence > last if (changed := _fragments(record))]
    if found:
        name = digest(" ".join([*place[:2], *(sequence for sequence, _ in found)]), size=_DIGEST_BYTES)
        size = add(store, name, [fragment for _, changed in found for fragment in changed])
        outcome.added[store.tenant_id] = size
        outcome.records += len(found)
        outcome.write_units += store.write_units
    if some[-1].sequence > last:
        _last.put(place, some[-1].sequence)


def _fragments(record: Record) -> list[Fragment]:
    """Return the fragments of a text, none of one that cannot be taken apart: the others of the batch are found."""
    try:
        return fragments.of_change(record)
    except Exception:
        log.exception(_NEVER, record.keys.get("pk"), _tenant_of(record))
        return []


def _tenant_of(record: Record) -> str:
    owner = owner_of(str(record.keys.get("pk", "")))
    return owner[0] if owner else ""
