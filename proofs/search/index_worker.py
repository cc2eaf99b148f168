"""Index as one of two workers of a torture: `python -m proofs.search.index_worker SPECIFICATION`.

It reads every shard of the tickets' stream for itself, so each record is indexed by both; hands records on in batches
of any size, and some of them again later, in other bounds; and merges at every turn. The journal says how far it is, so
that whoever comes in its place begins there or a little before. Told to end, it does so when nothing is left
to read and nothing to merge.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import django

if TYPE_CHECKING:
    from portal.streams.batch import Record

_AGAIN: Final = 0.3  # share of batches that come again
_LARGEST: Final = 12  # records of a batch
_REPEATED: Final = 40  # of the newest records, from which those that come again are taken
_PAUSE: Final = 0.05  # seconds
_NEW_ITEMS: Final = 4  # and two segments of a class are merged, so that merges are many
_LOCK_SECONDS: Final = 3.0  # so that what somebody was killed over is merged in the same torture


def main(specification: str) -> None:
    django.setup()
    how: dict[str, Any] = json.loads(specification)
    run(tenant_id=how["tenant_id"], journal_path=Path(how["journal"]), folder=Path(how["folder"]), seed=how["seed"])


def run(*, tenant_id: str, journal_path: Path, folder: Path, seed: int) -> None:
    """Index one tenant's changes until the file `end` is in the folder, nothing is left, and no merge is due."""
    from portal.streams.batch import Batch  # its models want a Django that is set up
    from proofs.counting import journal
    from tickets.search.index import index_lock, indexing, merging

    merging.NEW_ITEMS, merging.SEGMENTS = _NEW_ITEMS, 2  # type: ignore[misc]
    index_lock.SECONDS = _LOCK_SECONDS  # type: ignore[misc]
    rng, mine = random.Random(seed), journal.Journal(str(journal_path))  # noqa: S311  # it has to be repeatable
    seen: list[Record] = []
    for arn, shard, records in _read(tenant_id, folder, _position(journal_path)):
        left = list(records)
        while left:
            size = rng.randint(1, _LARGEST)
            some, left = left[:size], left[size:]
            seen = [*seen, *some][-_REPEATED:]
            batches = [some]
            if rng.random() < _AGAIN:
                start = rng.randrange(len(seen))
                batches.append(seen[start : start + rng.randint(1, _LARGEST)])
            for batch in batches:
                # Another process would remember nothing of what it has indexed.
                indexing._last.clear()
                outcome = indexing.index(Batch(arn, shard, tuple(batch)))
                if outcome.failed:
                    raise next(iter(outcome.failed.values()))
            mine.write(shard=shard, sequence=some[-1].checkpoint, indexed=len(some), repeated=len(batches) - 1)
            mine.write(merges=_merge(tenant_id))
    while _is_due(tenant_id):
        mine.write(merges=_merge(tenant_id))
        time.sleep(_PAUSE)


def _merge(tenant_id: str) -> int:
    """Merge what is due, and return how many merges were done; one that was overtaken is due still."""
    from portal.errors import Throttled
    from tickets.search.index import merging
    from tickets.search.index.index_store import IndexStore

    try:
        return merging.merge_due(IndexStore(tenant_id))
    except Throttled:
        return 0


def _is_due(tenant_id: str) -> bool:
    from tickets.search.index import merging
    from tickets.search.index.index_store import IndexStore

    stored = merging.StoredIndex.of(IndexStore(tenant_id))
    return merging.plan(stored.new, stored.headers) is not None


def _read(tenant_id: str, folder: Path, positions: dict[str, str]) -> Iterator[tuple[str, str, list[Record]]]:
    """Read what the stream brings of this tenant, shard by shard, and nothing now and then, until the end."""
    from portal.streams import shards
    from tickets.ticket.tables import TICKETS

    arn = shards.arn(TICKETS)
    iterators: dict[str, str | None] = {}
    while True:
        ends, brought = (folder / "end").exists(), False
        for shard in shards.listing(arn).shards:
            if shard.id not in iterators:
                iterators[shard.id] = shards.iterator(arn, shard.id, after=positions.get(shard.id, ""))
            if (iterator := iterators[shard.id]) is None:
                continue
            answer = shards.read(iterator)
            iterators[shard.id] = answer.next
            mine = [record for record in answer.records if tenant_id in str(record.keys.get("pk", ""))]
            brought |= bool(answer.records)
            if mine:
                yield arn, shard.id, mine
        if ends and not brought:
            return
        time.sleep(0 if brought else _PAUSE)


def _position(path: Path) -> dict[str, str]:
    """Return by shard the last record that who was here before has indexed."""
    from proofs.counting import journal

    return {line["shard"]: line["sequence"] for line in journal.lines(path) if "shard" in line}


if __name__ == "__main__":
    main(*sys.argv[1:])
