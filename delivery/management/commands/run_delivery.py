"""`manage.py run_delivery`: delivers what the queues bring, one of any number of workers."""

from __future__ import annotations

import json
import signal
import threading
import time
from argparse import ArgumentTypeError
from contextlib import suppress
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from delivery.consuming.consumer import STOP_SECONDS, Consumer
from delivery.consuming.handling import MessageHandler
from delivery.queues import assignment
from delivery.queues.queue_transport import QueueTransport
from portal import clock
from portal.management.command import PortalCommand

METRICS_SECONDS = 10.0
_LOOK_SECONDS = 0.2


class Command(PortalCommand):
    help = (
        "Deliver what leaves the desks, until Ctrl-C or SIGTERM; then finish what runs, and give back what has not "
        "begun. Any number of these may run, on any machines: worker I of W serves the queues that its number says, "
        "and with 8 or more of them no tenant reaches more than half. Give all of them the same W; each number may run "
        "more than once. It waits while the queues or the database cannot be reached, and never ends for that. A line "
        "of JSON on stdout says every ten seconds, and at the end, what was done since the start. "
        "Exit status: 0 stopped as asked; 1 refused, failed, or stopped with deliveries that did not end in time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--worker", type=int, default=1, metavar="I", help="the number of this worker, from 1 (1)")
        parser.add_argument(
            "--of",
            type=_positive,
            default=settings.DELIVERY_WORKERS,
            metavar="W",
            help="how many workers there are (DELIVERY_WORKERS, %(default)s)",
        )
        parser.add_argument(
            "--metrics",
            type=float,
            default=METRICS_SECONDS,
            metavar="SECONDS",
            help="between two lines of metrics (%(default)g); 0 for none at all",
        )

    def work(self, options: dict[str, Any]) -> None:
        transport = QueueTransport()
        queues = assignment.queues_of(options["worker"], of=options["of"], queues=transport.queues)
        if not queues:
            raise CommandError(f"{transport.queues} queues leave nothing to do for worker {options['worker']}.")
        self._asked = threading.Event()
        self._metrics, self._started = options["metrics"], time.monotonic()
        consumer = Consumer(transport, MessageHandler().handle, queues, slots=settings.DELIVERY_SLOTS)
        before = {number: signal.signal(number, self._note_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            consumer.start()
            self._run(consumer)
        finally:
            ended = consumer.stop()
            for number, handler in before.items():
                signal.signal(number, handler)
        self._say(consumer)
        if consumer.failed.is_set():
            raise CommandError("A part of the worker ended by an error; the log has it.")
        if not ended:
            raise CommandError(f"Some deliveries did not end within {STOP_SECONDS:g} s; they are tried again.")

    def _run(self, consumer: Consumer) -> None:
        said_at = time.monotonic()
        while not self._asked.wait(_LOOK_SECONDS) and not consumer.failed.is_set():
            if self._metrics and time.monotonic() - said_at >= self._metrics:
                said_at = time.monotonic()
                self._say(consumer)

    def _say(self, consumer: Consumer) -> None:
        if self._metrics:
            seconds = round(time.monotonic() - self._started, 1)
            with suppress(OSError):  # whoever read it is gone: that must not keep the rest from being given back
                self.stdout.write(json.dumps({"at": clock.stamp(), "seconds": seconds, **consumer.report()}))
                self.stdout.flush()

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked.set()


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError("must be a whole number from 1")
    return int(text)
