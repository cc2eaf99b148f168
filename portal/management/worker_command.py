"""Work until somebody asks for an end: note the signals, and say now and then in a line of JSON what was done.

A command that follows a stream drains it before it ends, where that is wanted: that is the stream of the table of all,
and with it those of the tenants that have this table to themselves.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from types import FrameType
from typing import Any, ClassVar, Final

from django.core.management.base import CommandParser

from portal import clock
from portal.load import reporting
from portal.management.command import PortalCommand, number, seconds
from portal.schema.registry import Role, Table
from portal.streams import poller as polling
from portal.streams import poller_fleet
from portal.streams.poller import Poller
from portal.streams.poller_fleet import PollerFleet

METRICS_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.2  # between two looks at whether to end
STOP_SECONDS: Final = 19.0  # within which a process has ended, whatever it does; service managers wait for 20 to 30


class WorkerCommand(PortalCommand):
    """A command that runs until Ctrl-C or SIGTERM. `signals` is how many of them have come."""

    signals = 0
    started = said_at = 0.0  # by the monotonic clock
    metrics_seconds = METRICS_SECONDS
    _giving_up: threading.Timer | None = None
    drain_seconds = 0.0  # that the command goes on for after a signal, because somebody wants it to
    # What such a process is called among those that tell who is noisy, and as what it writes that; none tells nothing.
    noise: ClassVar[tuple[str, Role] | None] = None

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--metrics",
            type=seconds,
            default=METRICS_SECONDS,
            metavar="SECONDS",
            help="between two lines of metrics (%(default)g); 0 for none at all",
        )

    @contextmanager
    def working(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Note the signals, instead of ending by them, while the context lasts."""
        self.signals, self.metrics_seconds = 0, options.get("metrics", 0.0)
        self.started = self.said_at = time.monotonic()
        before = {number: signal.signal(number, self._note_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        if self.noise:
            reporting.start(*self.noise, gauges=self.gauges)
        try:
            yield
        finally:
            if self.noise:
                reporting.stop()
            if self._giving_up is not None:
                self._giving_up.cancel()
            for number, handler in before.items():
                signal.signal(number, handler)

    def gauges(self) -> Mapping[str, float]:
        """Return what is measured each minute, in seconds, by the name of a metric."""
        return {}

    def wait_for_signal(self) -> None:
        """Return when somebody has asked for an end."""
        while not self.signals:
            time.sleep(LOOK_SECONDS)

    @property
    def must_speak(self) -> bool:
        """Tell whether the next line of metrics is due."""
        return time.monotonic() - self.said_at >= self.metrics_seconds

    def say(self, report: Mapping[str, Any]) -> None:
        """Print what was done since the start as a line of JSON, unless no metrics are wanted."""
        if self.metrics_seconds:
            self.said_at = time.monotonic()
            line = {"at": clock.stamp(), "seconds": round(self.said_at - self.started, 1), **report}
            with suppress(OSError):  # whoever read it is gone: that must not keep the worker from ending well
                self.stdout.write(json.dumps(line))
                self.stdout.flush()

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if self.signals == 1:
            self._giving_up = threading.Timer(self.drain_seconds + STOP_SECONDS, self._give_up)
            self._giving_up.daemon = True
            self._giving_up.start()

    def _give_up(self) -> None:
        """End though something is at work that does not end. It is done again, as after a kill."""
        self.stderr.write(f"Something did not end within {STOP_SECONDS:g} s of the signal; it is done again.")
        self.stderr.flush()
        os._exit(1)


class FollowCommand(WorkerCommand):
    """A command that follows the stream of a table. A subclass says with what pollers, and what else it does."""

    table: ClassVar[Table]
    counts: ClassVar[dict[str, float]]  # what the metrics say before the first batch

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end when everything until now has been done")
        parser.add_argument(
            "--drain",
            type=seconds,
            default=0.0,
            metavar="SECONDS",
            help="after the signal, go on until the stream is empty, at most so long (0); a second signal ends that",
        )
        parser.add_argument(
            "--lease",
            type=number(1, 3600, "a number of seconds from 1 to 3,600"),
            default=polling.LEASE_SECONDS,
            metavar="SECONDS",
            help="after which another poller goes on for one that gives no sign of life (%(default)g); the same in all",
        )
        super().add_arguments(parser)

    def poller(self, *, lease_seconds: float, **size: Any) -> Poller:
        """Return a new poller, for the source in which this is called; `size` is as `Poller` takes it."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Tell whether, with --once, there is nothing left to do beside the stream."""
        return True

    def background_work(self) -> AbstractContextManager[None]:
        """Return a context that lasts as long as the poller runs, for work in threads of its own."""
        return nullcontext()

    def work(self, options: dict[str, Any]) -> None:
        self._options, self._asked_at, self.drain_seconds = options, 0.0, options["drain"]
        self._poller = self.poller(lease_seconds=options["lease"])
        small = {"threads": poller_fleet.THREADS, "idle_seconds": poller_fleet.IDLE_SECONDS}
        self._fleet = PollerFleet(self.table, partial(self.poller, lease_seconds=options["lease"], **small))
        with self.working(options), self.background_work(), self._fleet.running():
            self._poller.run(self._again)

    def gauges(self) -> Mapping[str, float]:
        lag = self._report()["lag_ms"]
        return {} if lag is None else {reporting.LAG: lag / 1000}

    def _again(self) -> bool:
        """Tell whether to go on. Say the metrics when it is time to, and once more while the shards are still held."""
        done = self._options["once"] and self._caught_up() and self.is_done()
        again = self._drains() if self.signals else not done
        if not again or self.must_speak:
            self.say(self.counts | self._report())
        return again

    def _caught_up(self) -> bool:
        pooled = self._poller.caught_up(self.started)
        return self._fleet.caught_up(self.started) and pooled

    def _report(self) -> dict[str, Any]:
        return poller_fleet.summed([self._poller.report(), *self._fleet.reports()])

    def _drains(self) -> bool:
        self._poller.taking = False
        self._fleet.stop_taking()
        if not self._asked_at:
            self._asked_at = time.monotonic()
            self._drain_until = self._asked_at + self._options["drain"]
        if self.signals > 1 or time.monotonic() >= self._drain_until:
            return False
        pooled = self._poller.drained(self._asked_at)
        return not (self._fleet.drained(self._asked_at) and pooled)
