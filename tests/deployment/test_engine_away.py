"""The engine goes away while people write, silent or gone: pages say so, nothing that was typed is lost, and all goes
on when it is back, without a restart of anything.

A real engine, web server and workers. OUTAGE_SECONDS=60 makes it longer; the figures are printed (`pytest -s`).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings

from portal.engines.endpoint import LOOPBACK, free_port, point_at
from proofs.scenarios import outage
from proofs.scenarios.persistent_people import PeopleTally, PersistentPerson, read_back, signed_in
from tests.engine_plugin import QuickMinistack
from tests.support.deployed import Version, begin
from tests.support.waiting import wait_until

SECONDS: Final = float(os.environ.get("OUTAGE_SECONDS", "3"))
NAMES: Final = ("ada", "eve", "joe")
PAGES: Final = 3  # of an outage, that each person sees at least while it lasts
AS_DEPLOYED: Final = {"DYNAMODB_CONNECT_TIMEOUT": "1", "DYNAMODB_READ_TIMEOUT": "1.5"}  # without an engine of its own


class Way:
    """The way to the engine: a port whose connections lead to it, while it is open."""

    def __init__(self, engine: QuickMinistack) -> None:
        self.engine, self.port = engine, free_port()
        self._sockets: set[socket.socket] = set()
        self.open()

    def open(self) -> None:
        self._listening = socket.create_server((LOOPBACK, self.port), backlog=100)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def close(self) -> None:
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):  # it was closed
            while True:
                near, _ = listening.accept()
                far = socket.create_connection((LOOPBACK, self.engine.port))
                self._sockets |= {near, far}
                for way in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=way, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65536):
                target.sendall(some)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            self._sockets.discard(one)
            one.close()


@pytest.fixture
def way() -> Iterator[Way]:
    with QuickMinistack() as engine:
        way = Way(engine)
        yield way
        way.close()


@pytest.fixture
def portal(way: Way, tmp_path: Path) -> Iterator[Version]:
    environ = os.environ | AS_DEPLOYED
    point_at(f"http://{LOOPBACK}:{way.port}", environ)
    version = Version("today", Path(settings.BASE_DIR), dict(environ), tmp_path)
    yield version
    version.close()


class TimedPerson(PersistentPerson):
    """Somebody who looks at the clock: `waits` are the seconds until each page of an outage."""

    def __init__(self, port: int, name: str, tally: PeopleTally, stop: threading.Event) -> None:
        super().__init__(port, name, tally, stop)
        self.waits: list[float] = []
        ask = self._browser.ask

        def timed(path: str, form: dict[str, str] | None = None) -> object:
            began = time.monotonic()
            answer = ask(path, form)
            if answer.status == 503:
                self.waits.append(time.monotonic() - began)
            return answer

        self._browser.ask = timed  # type: ignore[assignment,method-assign]


def silent(way: Way) -> Callable[[], object]:
    """Let the engine take connections and answer nothing; return what ends that."""
    os.kill(way.engine.pid or 0, signal.SIGSTOP)
    return lambda: os.kill(way.engine.pid or 0, signal.SIGCONT)


def gone(way: Way) -> Callable[[], object]:
    """Break all connections to the engine and let nobody make another one; return what ends that."""
    way.close()
    return way.open


def test_while_the_engine_is_away_nothing_is_lost_and_all_goes_on_when_it_is_back(way: Way, portal: Version) -> None:
    begin(portal)
    port = portal.start()
    wait_until(lambda: is_answering(port))
    for go_away in (silent, gone):
        lose_the_engine(go_away, way, port)
    portal.run(*([command, "--tenant", "acme"] for command in ("verify_aggregates", "verify_search", "verify_audit")))


def lose_the_engine(go_away: Callable[[Way], Callable[[], object]], way: Way, port: int) -> None:
    """Let people write before, while and after the engine is away, and look for all that they were told is stored."""
    tally, stop = PeopleTally(), threading.Event()
    people = [TimedPerson(port, f"{name}-{go_away.__name__}", tally, stop) for name in NAMES]
    with ExitStack() as ending:
        ending.callback(stop.set)
        for person in people:
            person.start()
        wait_until(lambda: tally.broken or all(person.acknowledged >= 3 for person in people))
        come_back = go_away(way)
        over = time.monotonic() + SECONDS
        wait_until(lambda: tally.broken or all(len(person.waits) >= PAGES for person in people))
        written = len(tally.acknowledged)
        time.sleep(max(0.0, over - time.monotonic()))
        assert len(tally.acknowledged) == written, "nothing is acknowledged that nobody stored"
        come_back()
        back = time.monotonic()
        before = [person.acknowledged for person in people]
        wait_until(lambda: tally.broken or all(p.acknowledged > n for p, n in zip(people, before, strict=True)))
        again = time.monotonic() - back
        wait_until(lambda: tally.broken or all(p.acknowledged > n + 3 for p, n in zip(people, before, strict=True)))
    for person in people:
        person.join()
    waits = [wait for person in people for wait in person.waits]
    sys.stdout.write(
        f"{go_away.__name__.capitalize()} for {SECONDS:g} s: "
        f"{len(waits)} pages said so, the slowest after {max(waits):.1f} s; "
        f"everybody's text was stored {again:.1f} s after it was back.\n"
    )
    assert tally.broken == []
    assert outage.misplaced(tally.acknowledged, read_back(signed_in(port))) == []


def is_answering(port: int) -> bool:
    try:
        signed_in(port)
    except Exception:
        return False
    return True
