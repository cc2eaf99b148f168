"""Start a demo of its own, as `make run` does, and kill its web server, stream worker and engine at random moments.

People write tickets and comments meanwhile; then all is read back. Linux only.

DynamoDB Local saves each write, so nothing that was acknowledged may be missing whatever is killed, but for what it
answered in the last moments before it was killed. ministack saves when it is stopped: beside it only the web server and
the worker are killed.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from django.conf import settings
from django.core.management.base import CommandError

from portal.engines.endpoint import free_port, point_at
from portal.engines.engine_process import running_engine
from proofs.harness import Torture, count, decimal
from proofs.portal_server import with_descendants
from proofs.scenarios.persistent_people import (
    NothingCameBack,
    PeopleTally,
    PersistentPerson,
    PromiseBroken,
    Written,
    read_back,
    signed_in,
)

# A process is known by a word of its command line.
WEB, WORKER, ENGINE, CHILD = "web server", "stream worker", "engine", "child of the web server"
_WORDS: Final = {WEB: "portal.wsgi", WORKER: "run_stream"}
_ENGINES: Final = {"dynamodb-local": "LoopbackServer", "ministack": "ministack"}
# The supervisor gives up at the fifth death within a minute, and should.
_MOST_A_MINUTE: Final = 3
_LEAST_WRITES: Final = 2  # of each person: a ticket, and a comment on it
_SECONDS: Final = 300  # until the demo has started, stopped, or come back
_COMMITTED_SECONDS: Final = 2.0  # after which DynamoDB Local has written what it answered, on a busy machine too
FILES: Final = {
    "manage.py": "import sys\nfrom django.core.management import execute_from_command_line as run\nrun(sys.argv)\n",
    "outage_settings.py": """
from pathlib import Path
from portal.settings import *
BASE_DIR = Path(__file__).parent
INSTALLED_APPS = ["few_data", *INSTALLED_APPS]
""",
    "few_data/management/commands/seed.py": """
from tickets.management.commands import seed
class Command(seed.Command):
    def work(self, options):
        super().work(options | {"tenants": 2, "users": 1, "tickets": 5})
""",
}


class OwnDemo:
    """A demo with its data in a temporary folder, as `make run` starts one. `said` grows by what it prints."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder, self._engine = folder, engine
        self.port = free_port()
        self.said: list[str] = []
        self._is_up = threading.Event()
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        self._running = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--engine", engine, "--port", str(self.port)],
            cwd=folder,
            env=self._environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self) -> None:
        """Wait until it says where it is. Raises CommandError."""
        if not self._is_up.wait(_SECONDS) or not self.runs:
            raise CommandError("The demo did not start: " + " ".join(self.said[-5:]))

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a management command on the engine that runs, to its end; it fails where none does."""
        environ = self._environ()
        point_at(running_engine(self._folder / "var" / self._engine) or "http://127.0.0.1:9", environ)
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=self._folder, env=environ, capture_output=True, text=True, check=False)

    @property
    def runs(self) -> bool:
        return self._running.poll() is None

    def pids(self, kind: str) -> list[int]:
        """Return the process of a kind, and behind it the children that do the same work."""
        word = _WORDS.get(kind) or _ENGINES[self._engine]
        _, *started = with_descendants(self._running.pid)
        return [pid for pid in started if _is(pid, word)]

    def stop(self) -> int:
        """Stop it as Ctrl-C does; its exit status."""
        if self.runs:
            os.killpg(self._running.pid, signal.SIGINT)
        return self._running.wait(_SECONDS)

    def _listen(self) -> None:
        for line in self._running.stdout or ():
            self.said.append(line.strip())
            if "Ctrl-C stops it" in line:
                self._is_up.set()
        self._is_up.set()

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DYNAMODB_"))}
        ours = {"PYTHONPATH": str(settings.BASE_DIR), "DJANGO_SETTINGS_MODULE": "outage_settings", "DEBUG": "1"}
        # Nothing is delivered here, and these people never pause.
        return kept | ours | {"DELIVERY_WORKERS": "0", "TENANT_RATES": "off"}


def _is(pid: int, word: str) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    # The watch on the parent is a shell whose command line holds that of the process it stands beside.
    return not line.startswith("/bin/sh") and word in line


class Outage(Torture):
    options: ClassVar = {
        "engine": {"choices": [*_ENGINES], "default": "dynamodb-local", "help": "of the demo (%(default)s)"},
        "seconds": decimal(240, "S", "of killing", 0, 86_400),
        "kills": count(24, "K", "of processes", 0),
        "people": count(6, "P", "who write"),
    }
    must_be_empty = ("broken",)
    kept = "Nothing that was acknowledged is lost or doubled."
    needs_engine = False
    demo: OwnDemo | None = None

    def work(self) -> None:
        self.tally, stop = PeopleTally(), threading.Event()
        with self.stage("Writing and killing", None):
            demo = self.demo = OwnDemo(self.folder, self.plan.engine)
            demo.wait()
            people = [PersistentPerson(demo.port, f"P{n}", self.tally, stop) for n in range(self.plan.people)]
            for person in people:
                person.start()
            try:
                engine_killed_at = self.kill_in_turn(demo)
                broken = _wait_until_back(demo, people)
            finally:
                stop.set()
            for person in people:
                person.join()
        with self.stage("Reading everything back", None):
            self.found_broken = [
                *broken, *self.tally.broken, *lost_or_doubled(demo, self.tally, engine_killed_at),
                *_counted_wrong(demo),
            ]  # fmt: skip
        if demo.stop():
            self.found_broken.append("the demo did not stop in order: " + " ".join(demo.said[-3:]))

    def remove(self) -> None:
        if self.demo:
            self.demo.stop()

    def kill_in_turn(self, demo: OwnDemo) -> list[float]:
        """Send SIGKILL to so many processes, each kind in turn, in an order and at moments that follow from the seed.

        Return when the engine was killed, by the monotonic clock.
        """
        rng, plan = random.Random(self.plan.seed), self.plan  # noqa: S311  # it has to be repeatable
        kinds = [WEB, WORKER, CHILD] + [ENGINE] * (plan.engine == "dynamodb-local")
        todo: list[str] = []
        done: dict[str, list[float]] = {kind: [] for kind in (*kinds, ENGINE)}
        started = time.monotonic()
        for moment in sorted(rng.uniform(0.1, 1) * plan.seconds for _ in range(plan.kills)):
            todo = todo or rng.sample(kinds, len(kinds))
            kind = todo.pop()
            while (
                time.monotonic() - started < moment or _too_often(done[kind]) or not (pid := _victim(rng, demo, kind))
            ):
                if not demo.runs:
                    return done[ENGINE]
                time.sleep(0.05)
            os.kill(pid, signal.SIGKILL)
            done[kind].append(time.monotonic())
            self.kills[kind] += 1
        return done[ENGINE]

    def figures(self) -> dict[str, Any]:
        tickets = sum(written.is_ticket for written in self.tally.acknowledged)
        return {
            "kills": dict(self.kills),
            "tickets": tickets,
            "comments": len(self.tally.acknowledged) - tickets,
            "error_pages": self.tally.counted["error_pages"],
            "unanswered": self.tally.counted["unanswered"],
            "restarts": sum("runs again" in line for line in self.demo.said) if self.demo else 0,
            "broken": self.found_broken,
        }


def _too_often(times: list[float]) -> bool:
    return sum(time.monotonic() - then < 60 for then in times) >= _MOST_A_MINUTE


def _victim(rng: random.Random, demo: OwnDemo, kind: str) -> int | None:
    """Return a process of that kind; None while none runs."""
    found = demo.pids(WEB)[1:] if kind == CHILD else demo.pids(kind)[:1]
    return rng.choice(found) if found else None


def _wait_until_back(demo: OwnDemo, people: list[PersistentPerson]) -> list[str]:
    """Wait until all processes run and each person has had a write acknowledged; what did not come back."""
    until, before = time.monotonic() + _SECONDS, None
    while time.monotonic() < until and demo.runs:
        time.sleep(0.2)
        if not all(demo.pids(kind) for kind in (WEB, WORKER, ENGINE)):
            continue
        before = before or [max(person.acknowledged, _LEAST_WRITES - 1) for person in people]
        if all(p.acknowledged > many or not p.is_alive() for p, many in zip(people, before, strict=True)):
            return []
    return ["not all came back by itself: " + " ".join(demo.said[-5:])]


def lost_or_doubled(demo: OwnDemo, tally: PeopleTally, engine_killed_at: list[float]) -> list[str]:
    """Return what was acknowledged and is not there once, in the ticket that the acknowledgement named.

    DynamoDB Local answers a transaction a moment before it has committed it: its last answers before it was killed may
    be lost by it, whatever the portal does, and are not judged.
    """
    if not demo.runs:
        return ["the demo has ended, and nothing could be read back"]
    try:
        pages = read_back(signed_in(demo.port))
    except (NothingCameBack, PromiseBroken) as error:
        return [f"after the kills nothing could be read back: {error}"]
    certain = [
        written
        for written in tally.acknowledged
        if not any(killed - _COMMITTED_SECONDS <= written.at <= killed for killed in engine_killed_at)
    ]
    return misplaced(certain, pages)


def misplaced(acknowledged: Iterable[Written], pages: Mapping[int, str]) -> list[str]:
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
    until, said = time.monotonic() + _SECONDS, ""
    while demo.runs and time.monotonic() < until:
        done = demo.command("verify_aggregates", "--all")
        if not done.returncode:
            return []
        said = f"{done.stdout[-500:]}{done.stderr[-500:]}"
        time.sleep(2)
    return [f"the numbers do not become right: {said}"]
