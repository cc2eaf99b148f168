"""Kill the web server, the stream worker and the engine at random moments while people write, then read all back.

DynamoDB Local saves each write, so nothing that was acknowledged may be missing whatever is killed. ministack saves
when it is stopped: beside it only the web server and the worker are killed.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from proofs.outages.own_demo import ENGINE, WEB, WORKER, OwnDemo, own_demo
from proofs.outages.persistent_people import PeopleTally, PersistentPerson, PromiseBroken, Written, read_back, signed_in
from proofs.outages.plain_browser import NothingCameBack

ENGINES: Final = ("dynamodb-local", "ministack")
PASSWORD: Final = "demo-pass-123"  # noqa: S105  # of the sample accounts of a demo on this machine
WRITER: Final = "bob@example.com"  # of one desk alone, so that signing in leads there
CHILD: Final = "child of the web server"
# The supervisor gives up at the fifth death within a minute, and should.
_MOST_A_MINUTE: Final = 3
_LEAST_WRITES: Final = 2  # of each person: a ticket, and a comment on it
_BACK_SECONDS: Final = 300
_COMMITTED_SECONDS: Final = 2.0  # after which DynamoDB Local has written what it answered, on a busy machine too
Say = Callable[[str], object]


@dataclass(frozen=True)
class TrialOptions:
    """Say what is to be done. `seconds` is the time over which the kills are spread."""

    engine: str
    seconds: float
    kills: int
    people: int
    seed: int


@dataclass
class TrialOutcome:
    """Hold what came of it. `broken` has a sentence for each promise that did not hold."""

    options: TrialOptions
    kills: Counter[str] = field(default_factory=Counter)
    tickets: int = 0
    comments: int = 0
    error_pages: int = 0
    unanswered: int = 0
    restarts: int = 0
    broken: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {**vars(self), "options": vars(self.options), "kills": dict(self.kills)}


def run(options: TrialOptions, folder: Path, say: Say) -> TrialOutcome:
    """Do it, and judge. Raises CommandError where the demo does not start."""
    outcome, tally, stop = TrialOutcome(options), PeopleTally(), threading.Event()
    with own_demo(folder, options.engine, say) as demo:
        say(f"{options.people} people write at {demo.port} while {options.kills} processes are killed ...")
        people = [PersistentPerson(demo.port, f"P{n}", WRITER, PASSWORD, tally, stop) for n in range(options.people)]
        for person in people:
            person.start()
        try:
            engine_killed_at = _kill(options, demo, outcome)
            outcome.broken += _wait_until_back(demo, people)
        finally:
            stop.set()
        for person in people:
            person.join()
        say("Reading everything back ...")
        outcome.broken += tally.broken + _lost_or_doubled(demo, tally, engine_killed_at) + _counted_wrong(demo)
        if demo.stop():
            outcome.broken.append("the demo did not stop in order: " + " ".join(demo.said[-3:]))
    outcome.tickets = sum(written.is_ticket for written in tally.acknowledged)
    outcome.comments = len(tally.acknowledged) - outcome.tickets
    outcome.error_pages, outcome.unanswered = tally.error_pages, tally.unanswered
    outcome.restarts = sum("runs again" in line for line in demo.said)
    return outcome


def _kill(options: TrialOptions, demo: OwnDemo, outcome: TrialOutcome) -> list[float]:
    """Send SIGKILL to so many processes, to each kind in turn, in an order and at moments that follow from the seed.

    Return when the engine was killed, by the monotonic clock.
    """
    rng = random.Random(options.seed)  # noqa: S311  # it has to be repeatable
    kinds = [WEB, WORKER, CHILD] + [ENGINE] * (options.engine == "dynamodb-local")
    moments = sorted(rng.uniform(0.1, 1) * options.seconds for _ in range(options.kills))
    todo: list[str] = []
    done: dict[str, list[float]] = {kind: [] for kind in kinds}
    started = time.monotonic()
    for moment in moments:
        todo = todo or rng.sample(kinds, len(kinds))
        kind = todo.pop()
        while time.monotonic() - started < moment or _too_often(done[kind]) or not (pid := _victim(rng, demo, kind)):
            if not demo.runs:
                return done.get(ENGINE, [])
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        done[kind].append(time.monotonic())
        outcome.kills[kind] += 1
    return done.get(ENGINE, [])


def _too_often(times: list[float]) -> bool:
    return sum(time.monotonic() - then < 60 for then in times) >= _MOST_A_MINUTE


def _victim(rng: random.Random, demo: OwnDemo, kind: str) -> int | None:
    """Return a process of that kind; None while none runs."""
    found = demo.pids(WEB)[1:] if kind == CHILD else demo.pids(kind)[:1]
    return rng.choice(found) if found else None


def _wait_until_back(demo: OwnDemo, people: list[PersistentPerson]) -> list[str]:
    """Wait until all processes run and each person has had a write acknowledged; what did not come back."""
    until, before = time.monotonic() + _BACK_SECONDS, None
    while time.monotonic() < until and demo.runs:
        time.sleep(0.2)
        if not all(demo.pids(kind) for kind in (WEB, WORKER, ENGINE)):
            continue
        before = before or [max(person.acknowledged, _LEAST_WRITES - 1) for person in people]
        if all(p.acknowledged > count or not p.is_alive() for p, count in zip(people, before, strict=True)):
            return []
    return ["not all came back by itself: " + " ".join(demo.said[-5:])]


def _lost_or_doubled(demo: OwnDemo, tally: PeopleTally, engine_killed_at: list[float]) -> list[str]:
    """Return what was acknowledged and is not there once, in the ticket that the acknowledgement named.

    DynamoDB Local answers a transaction a moment before it has committed it: what it answered last before it was killed
    may be lost by it, whatever the portal does, and is not judged.
    """
    if not demo.runs:
        return ["the demo has ended, and nothing could be read back"]
    try:
        pages = read_back(signed_in(demo.port, WRITER, PASSWORD))
    except (NothingCameBack, PromiseBroken) as error:
        return [f"after the kills nothing could be read back: {error}"]
    uncertain = {
        written
        for written in tally.acknowledged
        if any(killed - _COMMITTED_SECONDS <= written.at <= killed for killed in engine_killed_at)
    }
    return misplaced([written for written in tally.acknowledged if written not in uncertain], pages)


def misplaced(acknowledged: Iterable[Written], pages: dict[int, str]) -> list[str]:
    """Return a sentence for each text that is not there exactly once, in the ticket that its answer named.

    `pages` are those of all tickets by number. The title of a ticket counts where it is the page's heading.
    """
    wrong = []
    headings = {number: " ".join(re.findall(r"<h1[^>]*>(.*?)</h1>", p, re.DOTALL)) for number, p in pages.items()}
    for written in acknowledged:
        where = headings if written.is_ticket else pages
        found = [number for number, text in where.items() for _ in range(text.count(written.marker))]
        if found != [written.number]:
            what = "ticket" if written.is_ticket else "comment"
            wrong.append(f"the {what} {written.marker} of #{written.number} is in {found or 'no ticket'}")
    return wrong


def _counted_wrong(demo: OwnDemo) -> list[str]:
    """Return what a recount finds wrong with the aggregates, once the demo's own verification has ended."""
    until, said = time.monotonic() + _BACK_SECONDS, ""
    while demo.runs and time.monotonic() < until:
        done = demo.command("verify_aggregates", "--all")
        if not done.returncode:
            return []
        said = f"{done.stdout[-500:]}{done.stderr[-500:]}"
        time.sleep(2)
    return [f"the numbers do not become right: {said}"]
