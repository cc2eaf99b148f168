"""`manage.py run_delivery`: delivers what the queues bring, one of any number of workers."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from delivery.queues import limits
from delivery.queues.consumer import STOP_SECONDS, Consumer
from delivery.queues.message_handling import MessageHandler
from delivery.queues.queue_readers import QueueReaders
from delivery.queues.queue_transport import QueueTransport
from portal.management.command import whole_number
from portal.management.worker_command import LOOK_SECONDS, WorkerCommand
from portal.schema.access_patterns import cost
from portal.schema.registry import Role


class Command(WorkerCommand):
    costs = cost(per="delivery", get="*", query="*", write="*")
    help = (
        "Deliver what leaves the desks, and file the letters that come in, until Ctrl-C or SIGTERM; then finish what "
        "runs, and give back what has not "
        "begun. Any number of these may run, on any machines: worker I of W serves the queues that its number says, "
        "and with 8 or more of them no tenant reaches more than half. Give all of them the same W; each number may run "
        "more than once. It waits while the queues or the database cannot be reached, and never ends for that. A line "
        "of JSON on stdout says every ten seconds, and at the end, what was done since the start. "
        "Exit status: 0 stopped as asked; 1 refused, failed, or stopped with deliveries that did not end in time."
    )

    noise: ClassVar[tuple[str, Role] | None] = ("delivery worker", "delivery")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--worker", type=int, default=1, metavar="I", help="the number of this worker, from 1 (1)")
        parser.add_argument(
            "--of",
            type=whole_number(1),
            default=settings.DELIVERY_WORKERS,
            metavar="W",
            help="how many workers there are (DELIVERY_WORKERS, %(default)s)",
        )
        super().add_arguments(parser)

    def work(self, options: dict[str, Any]) -> None:
        if not options["of"]:
            raise CommandError("DELIVERY_WORKERS=0 says that Lambda delivers. Set it to how many workers there are.")
        transport = QueueTransport()
        queues = limits.queues_of(options["worker"], of=options["of"], queues=transport.queues)
        if not queues:
            raise CommandError(f"{transport.queues} queues leave nothing to do for worker {options['worker']}.")
        consumer = Consumer(transport, MessageHandler().handle, queues, slots=settings.DELIVERY_SLOTS)
        readers = QueueReaders()
        with self.working(options):
            try:
                consumer.start()
                readers.start()
                self._run(consumer)
            finally:
                ended = _stop(consumer, readers)
        self.say(consumer.report())
        if consumer.failed.is_set():
            raise CommandError("A part of the worker ended by an error; the log has it.")
        if not ended:
            raise CommandError(f"Some deliveries did not end within {STOP_SECONDS:g} s; they are tried again.")

    def _run(self, consumer: Consumer) -> None:
        while not self.signals and not consumer.failed.is_set():
            time.sleep(LOOK_SECONDS)
            if self.must_speak:
                self.say(consumer.report())


def _stop(consumer: Consumer, readers: QueueReaders) -> bool:
    """Stop both at the same time. Return whether all that they did has ended within STOP_SECONDS."""
    deadline = time.monotonic() + STOP_SECONDS
    readers.stop(seconds=0)
    ended = consumer.stop(seconds=STOP_SECONDS)
    return readers.stop(seconds=deadline - time.monotonic()) and ended
