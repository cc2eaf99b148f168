"""A torture: two workers index the same stream, and are killed, while tickets are written and searched all the time.

Each ticket has a word that no other has, and a comment with another one. What a search has found once it must find
ever after, whatever is merged, repeated or killed meanwhile. In the end the index is held against the stored texts:
nothing may be missing, and nothing may be in it that no text has.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from portal.engines.processes import Child
from portal.errors import PortalError
from proofs import cleanup
from proofs.counting import journal
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tickets.desk import commenting, creating
from tickets.search import ticket_search
from tickets.search.care import index_check, index_state
from tickets.search.care.index_check import IndexVerdict

WORKERS: Final = 2
_PATIENCE: Final = 120.0  # seconds, for a worker that reads what is left
_STEP: Final = 0.05
_LETTERS: Final = "bcdfghjklmnpqrstvwz"


class SearchTortureFailed(PortalError):
    """It could not be carried out: nothing is said about the search."""


@dataclass(frozen=True)
class SearchTorturePlan:
    seed: int
    tickets: int
    kills: int


@dataclass
class SearchTorture:
    """A running torture: its workers, and what has been found so far."""

    plan: SearchTorturePlan
    folder: Path
    tenant: TenantContext
    workers: dict[Path, Child] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)  # ticket by word
    found: set[str] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)  # words that were found and are not any more
    ghosts: list[str] = field(default_factory=list)  # words that found another ticket
    searches: int = 0
    kills: int = 0
    verdict: IndexVerdict | None = None

    def start(self, path: Path) -> None:
        """Start a worker that goes on where the journal ends."""
        how = {"tenant_id": self.tenant.tenant_id, "journal": str(path), "folder": str(self.folder)}
        how["seed"] = f"{self.plan.seed} {path.name} {self.kills}"
        environ = {**os.environ, "PYTHONPATH": str(settings.BASE_DIR), "LOG_LEVEL": "ERROR"}
        with path.with_suffix(".log").open("ab") as log:
            command = [sys.executable, "-m", "proofs.search.index_worker", json.dumps(how)]
            self.workers[path] = Child("worker", command, env=environ, output=log)

    def look(self, rng: random.Random) -> None:
        """Search a word: one that was found before, mostly."""
        word = rng.choice(sorted(self.found) if self.found and rng.random() < 0.7 else sorted(self.wanted))
        numbers = {int(hit.summary.number) for hit in ticket_search.find(self.tenant, word).hits}
        self.searches += 1
        if self.wanted[word] in numbers:
            self.found.add(word)
        elif word in self.found:
            self.lost.append(word)
        if numbers - {self.wanted[word]}:
            self.ghosts.append(word)


@contextmanager
def torture(plan: SearchTorturePlan) -> Iterator[SearchTorture]:
    """Give a torture whose processes and tenant are gone in the end. Raises Forbidden as `cleanup` does."""
    cleanup.refuse_in_production()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, ExitStack() as stack:
        slug = f"torture-{uuid.uuid4().hex[:8]}"
        item = tenant_lifecycle.create(name="Torture", slug=slug, shards=1, by=SYSTEM)
        run = SearchTorture(plan, Path(folder), context.for_system(item))
        stack.callback(_remove, run)
        yield run


def write(run: SearchTorture, advance: Callable[[int], object]) -> None:
    """Write tickets and comments and search them, and kill a worker as often as is planned, evenly spread."""
    rng = random.Random(run.plan.seed)  # noqa: S311  # it has to be repeatable
    for n in range(WORKERS):
        run.start(run.folder / f"worker-{n}.jsonl")
    due = [round((n + 1) * run.plan.tickets / (run.plan.kills + 1)) for n in range(run.plan.kills)]
    for n in range(1, run.plan.tickets + 1):
        one, other = _word(rng, n), _word(rng, n)
        number = creating.create(run.tenant, title=f"About {one}", description="The printer is offline again.")
        commenting.comment(run.tenant, number, body=f"It has to do with {other}.")
        run.wanted |= {one: number, other: number}
        run.look(rng)
        advance(1)
        while due and due[0] <= n:
            _kill(run, rng)
            due.pop(0)


def drain(run: SearchTorture) -> None:
    """Let the workers read to the end, killed no more, and search everything. Raises SearchTortureFailed."""
    (run.folder / "end").touch()
    rng = random.Random(run.plan.seed + 1)  # noqa: S311
    until = time.monotonic() + _PATIENCE
    while any(child.poll() is None for child in run.workers.values()):
        run.look(rng)
        if time.monotonic() > until:
            raise SearchTortureFailed("The workers came to no end.")
        time.sleep(_STEP)
    if failed := [path for path, child in run.workers.items() if child.poll()]:
        raise SearchTortureFailed(f"A worker failed: {failed[0].with_suffix('.log').read_text()[-600:]}")
    run.verdict = index_check.check(run.tenant.repository, settle=1)


def figures(run: SearchTorture) -> dict[str, Any]:
    """Return what happened, and what is wrong by name."""
    verdict = run.verdict or IndexVerdict()
    unfound = [word for word, number in run.wanted.items() if number not in _numbers(run, word)]
    done: Counter[str] = Counter()
    for path in run.workers:
        for line in journal.lines(path):
            done.update({name: value for name, value in line.items() if isinstance(value, int)})
    return {
        "plan": asdict(run.plan),
        "searches": run.searches,
        "kills": run.kills,
        "indexed": done["indexed"],
        "merges": done["merges"],
        "repeated": done["repeated"],
        "segments": index_state.report(run.tenant.repository).segments,
        "lost": run.lost,
        "ghosts": run.ghosts,
        "unfound": unfound,
        "missing": [str(one) for one in verdict.missing],
        "foreign": [str(one) for one in verdict.foreign],
        "damage": verdict.damage + ([verdict.why] if verdict.why else []),
    }


def is_broken(found: dict[str, Any]) -> list[str]:
    """Name the figures that are wrong."""
    return [name for name in ("lost", "ghosts", "unfound", "missing", "foreign", "damage") if found[name]]


def _numbers(run: SearchTorture, word: str) -> set[int]:
    return {int(hit.summary.number) for hit in ticket_search.find(run.tenant, word).hits}


def _kill(run: SearchTorture, rng: random.Random) -> None:
    """Kill a worker that has begun to work, at any moment, and start another one in its place."""
    path = rng.choice(sorted(run.workers))
    until = time.monotonic() + _PATIENCE
    while not path.exists() or run.workers[path].poll() is not None:
        if time.monotonic() > until or run.workers[path].poll():
            raise SearchTortureFailed(f"A worker failed: {path.with_suffix('.log').read_text()[-600:]}")
        run.look(rng)
        time.sleep(_STEP)
    time.sleep(rng.random() * _STEP)
    run.workers[path].kill()
    run.kills += 1
    run.start(path)


def _remove(run: SearchTorture) -> None:
    for child in run.workers.values():
        child.kill()
    cleanup.delete_tenant(run.tenant.tenant_id)


def _word(rng: random.Random, number: int) -> str:
    """Return a word that nothing else begins with, and that no language has forms of."""
    return "".join(rng.choice(_LETTERS) for _ in range(9)) + "q" + "".join(_LETTERS[int(c)] for c in f"{number:05}")
