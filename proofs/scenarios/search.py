"""Write and search tickets while two workers index the same stream, in batches of any size and many of them twice,
merge all the time, and are killed at any moment.

Each ticket has a word that no other has, and a comment with another one. A word that a search has found once must be
found ever after. In the end the index is compared with the stored texts: nothing may be missing, and nothing may be in
it that no text has.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from portal.errors import Throttled
from portal.streams import shards
from portal.streams.batch import Batch, Record
from proofs.forked import Journal, lines
from proofs.harness import STEP, Torture, TortureFailed, count
from tenants.tenancy import context
from tickets.desk import commenting, creating
from tickets.search import index_check, ticket_search
from tickets.search.index import index_store, indexing, merging
from tickets.search.index.index_store import IndexStore
from tickets.ticket.stored import TICKETS

ROLES: Final = ("one_worker", "other_worker")
_PATIENCE: Final = 120.0  # seconds, for a worker that reads what is left
_LETTERS: Final = "bcdfghjklmnpqrstvwz"
_AGAIN: Final = 0.3  # share of batches that come again
_LARGEST: Final = 12  # records of a batch
_REPEATED: Final = 40  # of the newest records, from which those that come again are taken
_NEW_ITEMS: Final = 4  # and two segments of a class are merged, so that merges are many
_LOCK_SECONDS: Final = 3.0  # so that what somebody was killed over is merged in the same torture


def index(told: Journal, seed: int, *, tenant_id: str, folder: Path, of: str) -> None:
    """Index one tenant's changes until the folder has a file `end`, nothing is left to read, and no merge is due.

    It reads every shard of the stream for itself, so each record is indexed by all workers; in batches of any size,
    some of them again later and in other bounds; and merges at every turn. The journals of its role say where a worker
    that was killed had come to.
    """
    merging.NEW_ITEMS, merging.SEGMENTS = _NEW_ITEMS, 2  # type: ignore[misc]
    index_store.SECONDS = _LOCK_SECONDS  # type: ignore[misc]
    rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
    before = [line for path in sorted(folder.glob(f"{of}-*.jsonl")) for line in lines(path)]
    positions = {line["shard"]: line["sequence"] for line in before if "shard" in line}
    seen: list[Record] = []
    for arn, shard, left in _read(tenant_id, folder / "end", positions):
        while left:
            size = rng.randint(1, _LARGEST)
            some, left = left[:size], left[size:]
            seen = [*seen, *some][-_REPEATED:]
            batches = [some]
            if rng.random() < _AGAIN:
                start = rng.randrange(len(seen))
                batches.append(seen[start : start + rng.randint(1, _LARGEST)])
            for batch in batches:
                indexing._last.clear()  # another process would remember nothing of what it has indexed
                outcome = indexing.index(Batch(arn, shard, tuple(batch)))
                if outcome.failed:
                    raise next(iter(outcome.failed.values()))
            told.write(shard=shard, sequence=some[-1].checkpoint, indexed=len(some), repeated=len(batches) - 1)
            told.write(merges=_merge(tenant_id))
    while merging.plan(merging.read(IndexStore(tenant_id))) is not None:
        told.write(merges=_merge(tenant_id))
        time.sleep(STEP)


def _merge(tenant_id: str) -> int:
    """Merge what is due, and return how many merges were done; one that was overtaken is due still."""
    try:
        return merging.merge_due(IndexStore(tenant_id))
    except Throttled:
        return 0


def _read(tenant_id: str, end: Path, positions: Mapping[str, str]) -> Iterator[tuple[str, str, list[Record]]]:
    """Read what the stream brings of this tenant, shard by shard, until the end."""
    arn = shards.arn(TICKETS)
    iterators: dict[str, str | None] = {}
    while True:
        ends, brought = end.exists(), False
        for shard in shards.listing(arn).shards:
            if shard.id not in iterators:
                iterators[shard.id] = shards.iterator(arn, shard.id, after=positions.get(shard.id, ""))
            if (iterator := iterators[shard.id]) is None:
                continue
            answer = shards.read(iterator)
            iterators[shard.id] = answer.next
            brought |= bool(answer.records)
            if mine := [record for record in answer.records if tenant_id in str(record.keys.get("pk", ""))]:
                yield arn, shard.id, mine
        if ends and not brought:
            return
        time.sleep(0 if brought else STEP)


class SearchTorture(Torture):
    options: ClassVar = {"tickets": count(1000, "N", "to write"), "kills": count(30, "K", "of workers", 0)}
    must_be_empty = ("lost", "ghosts", "unfound", "missing", "foreign", "damage")
    kept = "Everything is found, and was found at every moment since it first was."

    def work(self) -> None:
        self.wanted: dict[str, int] = {}  # ticket by word
        self.found: set[str] = set()
        self.lost: list[str] = []  # words that were found and are not any more
        self.ghosts: list[str] = []  # words that found another ticket
        self.searches = 0
        self.make_tenants()
        self.tenant = context.for_system(self.tenants[0])
        with self.stage("Writing", self.plan.tickets) as progress:
            for _ in self._write():
                progress.advance()
        self._drain()

    def _write(self) -> Iterator[int]:
        """Write tickets and comments and search them, and kill a worker as often as is planned, evenly spread."""
        rng, plan = self.rng(), self.plan
        for role in ROLES:
            self.start(role, index, tenant_id=self.tenant_id, folder=self.folder, of=role)
        due = Counter(round((n + 1) * plan.tickets / (plan.kills + 1)) for n in range(plan.kills))
        for n in range(1, plan.tickets + 1):
            one, other = _word(rng, n), _word(rng, n)
            number = creating.create(self.tenant, title=f"About {one}", description="The printer is offline again.")
            commenting.comment(self.tenant, number, body=f"It has to do with {other}.")
            self.wanted |= {one: number, other: number}
            self._look(rng)
            for _ in range(due[n]):
                self._kill_one(rng)
            yield n

    def _kill_one(self, rng: random.Random) -> None:
        """Kill a worker that has begun to work, at any moment."""
        (worker,) = self.running[rng.choice(ROLES)]
        self.wait_until(lambda: any(lines(worker.journal)) or self._look(rng), *ROLES, seconds=_PATIENCE)
        time.sleep(rng.random() * STEP)
        self.kill(worker)

    def _look(self, rng: random.Random) -> bool:
        """Search a word: one that was found before, mostly. Returns False, so that it can be done while waiting."""
        word = rng.choice(sorted(self.found) if self.found and rng.random() < 0.7 else sorted(self.wanted))
        numbers = self._numbers(word)
        self.searches += 1
        if self.wanted[word] in numbers:
            self.found.add(word)
        elif word in self.found:
            self.lost.append(word)
        if numbers - {self.wanted[word]}:
            self.ghosts.append(word)
        return False

    def _numbers(self, word: str) -> set[int]:
        return {int(hit.summary.number) for hit in ticket_search.find(self.tenant, word).hits}

    def _drain(self) -> None:
        """Let the workers read to the end, killed no more, and search meanwhile. Raises TortureFailed."""
        (self.folder / "end").touch()
        rng, workers = self.rng(), [worker for role in ROLES for worker in self.running[role]]
        self.wait_until(lambda: all(w.poll() is not None for w in workers) or self._look(rng), seconds=_PATIENCE)
        if any(worker.poll() for worker in workers):
            raise TortureFailed(f"A worker failed: {self.printed(*ROLES)}")

    def figures(self) -> dict[str, Any]:
        verdict = index_check.check(self.tenant.repository, settle=1)
        done: Counter[str] = Counter()
        for line in self.told(*ROLES):
            done.update({name: value for name, value in line.items() if isinstance(value, int)})
        return {
            "searches": self.searches,
            "kills": self.kills.total(),
            "indexed": done["indexed"],
            "merges": done["merges"],
            "repeated": done["repeated"],
            "segments": index_check.report(self.tenant.repository).segments,
            "lost": self.lost,
            "ghosts": self.ghosts,
            "unfound": [word for word, number in self.wanted.items() if number not in self._numbers(word)],
            "missing": [str(one) for one in verdict.missing],
            "foreign": [str(one) for one in verdict.foreign],
            "damage": verdict.damage + ([verdict.why] if verdict.why else []),
        }


def _word(rng: random.Random, number: int) -> str:
    """Return a word that nothing else begins with, and that no language has forms of."""
    return "".join(rng.choice(_LETTERS) for _ in range(9)) + "q" + "".join(_LETTERS[int(c)] for c in f"{number:05}")
