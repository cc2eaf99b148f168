"""Follow the streams of all tenants that have tables of their own, each by a small poller, beside the one of the pool.

Which tenants those are is looked up again every few seconds: a poller begins where a placement is listed, and ends
where it is listed no more. Then what was kept of its streams is removed. Each works in a thread of its own, so one
whose site is away keeps nobody else waiting.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from portal.errors import PortalError
from portal.schema.registry import Table
from portal.streams import background, positions, stream_source
from portal.streams.poller import Poller
from portal.streams.stream_source import StreamSource

log = logging.getLogger("pooldesk.poller")

LOOK_SECONDS: Final = 3.0  # between looks at which placements are listed; each is a Query
THREADS: Final = 2  # of each poller: one tenant's stream has few shards
IDLE_SECONDS: Final = 1.0  # between reads of a shard that bring nothing: each is paid for, and tenants may be many


class _Following:
    """One source, its poller and the thread in which that works. The poller is asked in that thread alone."""

    def __init__(self, source: StreamSource, table: Table, make: Callable[[], Poller]) -> None:
        self.source, self._table = source, table
        with source.entered():
            self.poller = make()
        self.ending = threading.Event()
        self.is_over = False  # its tables are listed no more
        self._asked: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name=f"poller of {source}")
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join()

    def holds(self, question: str, since: float) -> bool:
        """Tell whether a question to the poller, the name of its method, was answered with yes for this moment."""
        self._asked[question] = since
        return self._answered.get(question) == since

    def _run(self) -> None:
        with self.source.entered():
            try:
                self.poller.run(self._again)
                if self.is_over and self.poller.stream_arn:
                    positions.forget_stream(self.source.name(self._table), self.poller.stream_arn)
            except PortalError as error:
                log.warning("What is kept of the streams of %s stays: %s", self.source, error.message)
            except Exception:  # the other tenants' streams go on, and this one soon
                log.exception("The poller of %s failed, and is begun again.", self.source)

    def _again(self) -> bool:
        for question, since in list(self._asked.items()):
            if self._answered.get(question) != since and getattr(self.poller, question)(since):
                self._answered[question] = since
        return not self.ending.is_set()


class PollerFleet:
    """Holds the pollers of the streams of one table. `make` returns a poller; it is called inside of the source.

    With `taking` off no poller is begun, and those that there are take no more shards.
    """

    def __init__(self, table: Table, make: Callable[[], Poller], *, look_seconds: float = LOOK_SECONDS) -> None:
        self._table, self._make, self._look_seconds = table, make, look_seconds
        self._following: dict[StreamSource, _Following] = {}
        self._looked_at = float("-inf")
        self._taking = True

    @contextmanager
    def running(self) -> Iterator[None]:
        """Follow while the context lasts."""
        try:
            with background.working(lambda _: self.look(), pause=self._pause, name="look at placements", log=log):
                yield
        finally:
            self._end(list(self._following))

    def look(self) -> None:
        """Begin to follow what is listed, and end what is listed no more. Raises Unavailable."""
        began, listed = time.monotonic(), stream_source.placed()
        gone = [source for source in self._following if source not in listed]
        for source in gone:
            self._following[source].is_over = True
        self._end(gone)
        for source in listed:
            if self._taking and not (source in self._following and self._following[source].is_alive):
                self._begin(source)
        self._looked_at = began

    def stop_taking(self) -> None:
        """Begin nothing any more, and keep what there is."""
        self._taking = False
        for one in list(self._following.values()):
            one.poller.taking = False

    def caught_up(self, since: float) -> bool:
        """Tell whether all of these streams are applied up to a moment of the monotonic clock; see `Poller`."""
        return self._looked_at >= since and self._all_hold("caught_up", since)

    def drained(self, since: float) -> bool:
        """Tell whether the shards that are held here were found empty after a moment of the monotonic clock."""
        return self._all_hold("drained", since)

    def reports(self) -> list[dict[str, Any]]:
        found = []
        for one in list(self._following.values()):
            with one.source.entered():
                found.append(one.poller.report())
        return found

    # --- inside ---

    def _pause(self) -> float:
        return self._look_seconds if self._looked_at > float("-inf") else 0.0

    def _all_hold(self, question: str, since: float) -> bool:
        answers = [one.holds(question, since) for one in list(self._following.values())]  # all of them are asked
        return all(answers)

    def _begin(self, source: StreamSource) -> None:
        self._following[source] = _Following(source, self._table, self._make)
        log.info("The stream of %s of %s is followed here.", self._table.name, source)

    def _end(self, sources: list[StreamSource]) -> None:
        for source in sources:
            self._following[source].ending.set()
        for source in sources:
            self._following[source].join()
            del self._following[source]  # until then it may write
            log.info("The stream of %s of %s is followed here no more.", self._table.name, source)


def summed(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up what several pollers report; `lag_ms` is that of the slowest, None where nobody knows one."""
    lags = [report["lag_ms"] for report in reports if report["lag_ms"] is not None]
    names = dict.fromkeys(name for report in reports for name in report if name != "lag_ms")
    total = {name: sum(report.get(name, 0) for report in reports) for name in names}
    return {**total, "lag_ms": max(lags, default=None)}
