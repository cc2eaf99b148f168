"""Run a poller until somebody asks it to end: signals, draining, and a line of metrics now and then."""

from __future__ import annotations

import json
import signal
import time
from argparse import ArgumentTypeError
from contextlib import AbstractContextManager, nullcontext, suppress
from types import FrameType
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from portal import clock
from portal.management.command import PortalCommand
from portal.streams import leases
from portal.streams.poller import Poller

METRICS_SECONDS = 10.0


class FollowCommand(PortalCommand):
    """A command that follows a stream. A subclass says with what poller, and what else it does."""

    counts: ClassVar[dict[str, float]]  # what the metrics say before the first batch

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end when everything until now has been done")
        parser.add_argument(
            "--drain",
            type=_seconds,
            default=0.0,
            metavar="SECONDS",
            help="after the signal, go on until the stream is empty, at most so long (0); a second signal ends that",
        )
        parser.add_argument(
            "--lease",
            type=_lease_seconds,
            default=leases.LEASE_SECONDS,
            metavar="SECONDS",
            help="after which a shard is taken from a poller that gives no sign of life (%(default)g); the same in all",
        )
        parser.add_argument(
            "--metrics",
            type=_seconds,
            default=METRICS_SECONDS,
            metavar="SECONDS",
            help="between two lines of metrics (%(default)g); 0 for none at all",
        )

    def poller(self, *, lease_seconds: float) -> Poller:
        """Return the poller to run."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Tell whether, with --once, there is nothing left to do beside the stream."""
        return True

    def beside(self) -> AbstractContextManager[None]:
        """Return what goes on while the poller runs."""
        return nullcontext()

    def work(self, options: dict[str, Any]) -> None:
        self._signals = 0
        self._poller = self.poller(lease_seconds=options["lease"])
        self._asked_at, self._said_at = 0.0, time.monotonic()
        self._options, self._started = options, time.monotonic()
        before = {number: signal.signal(number, self._note_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with self.beside():
                self._poller.run(self._again)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _again(self) -> bool:
        """Tell whether to go on. Say the metrics when it is time to, and once more while the shards are still held."""
        done = self._options["once"] and self._poller.caught_up(self._started) and self.is_done()
        again = self._drains() if self._signals else not done
        if not again or time.monotonic() - self._said_at >= self._options["metrics"]:
            self._say()
        return again

    def _drains(self) -> bool:
        self._poller.taking = False
        if not self._asked_at:
            self._asked_at = time.monotonic()
            self._drain_until = self._asked_at + self._options["drain"]
        if self._signals > 1 or time.monotonic() >= self._drain_until:
            return False
        return not self._poller.drained(self._asked_at)

    def _say(self) -> None:
        if self._options["metrics"]:
            self._said_at = time.monotonic()
            line = {
                "at": clock.stamp(),
                "seconds": round(self._said_at - self._started, 1),
                **self.counts,
                **self._poller.report(),
            }
            with suppress(OSError):  # whoever read it is gone: that must not keep the leases from being released
                self.stdout.write(json.dumps(line))
                self.stdout.flush()

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError("must be a number of seconds")
    return value


def _lease_seconds(text: str) -> float:
    value = _seconds(text)
    if value < 1:
        raise ArgumentTypeError("must be 1 or more")
    return value
