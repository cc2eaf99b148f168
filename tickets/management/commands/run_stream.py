"""`manage.py run_stream`: keeps the aggregates, one of any number of pollers."""

from __future__ import annotations

import json
import signal
import time
from argparse import ArgumentTypeError
from contextlib import suppress
from types import FrameType
from typing import Any

from django.core.management.base import CommandParser

from portal import clock
from portal.management.command import PortalCommand
from portal.streams import leases
from portal.streams.poller import Poller
from tickets.counting.stream_handler import handle
from tickets.ticket.tables import TICKETS

METRICS_SECONDS = 10.0
_COUNTS = {"events": 0, "applied": 0, "dead": 0, "write_units": 0}  # before the first batch


class Command(PortalCommand):
    help = (
        "Follow the tickets' stream and keep the aggregates, until Ctrl-C or SIGTERM; then finish the batch, write how "
        "far it came, and release the shards. Any number of these may run, on any machines: they share the shards, and "
        "take over from one that died. It waits while the database cannot be reached, and never ends for that. A line "
        "of JSON on stdout says every ten seconds, and at the end, what was done since the start: records read, events "
        "among them that concern tickets, changes applied, dead letters, batches, write units, the shards held, errors "
        "of reading and writing, and lag_ms, by how much the aggregates are behind. "
        "Exit status: 0 stopped as asked; 1 refused or failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end when everything until now has been counted")
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

    def work(self, options: dict[str, Any]) -> None:
        self._signals = 0
        self._poller = Poller(TICKETS, handle, lease_seconds=options["lease"])
        self._asked_at, self._said_at = 0.0, time.monotonic()
        self._options, self._started = options, time.monotonic()
        before = {number: signal.signal(number, self._note_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._poller.run(self._again)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _again(self) -> bool:
        """Tell whether to go on. Say the metrics when it is time to, and once more while the shards are still held."""
        done = self._options["once"] and self._poller.caught_up(self._started)
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
                **_COUNTS,
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
