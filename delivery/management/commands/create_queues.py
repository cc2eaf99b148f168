"""Create the queues. Run again, it does nothing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from delivery.queues import queue_readers
from delivery.queues.queue_transport import QueueTransport
from portal.management.command import PortalCommand
from portal.plain_text import amount
from portal.schema.access_patterns import cost


class Command(PortalCommand):
    costs = cost()
    help = "Create the queues that what leaves the desk goes through. Existing ones are left as they are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--wait", action="store_true", help="return when every queue can be used")

    def work(self, options: dict[str, Any]) -> None:
        outcome = QueueTransport().create_all(wait=options["wait"]) | queue_readers.create_missing()
        for name, is_new in outcome.items():
            if options["verbosity"] > 1:
                self.stdout.write(f"{name}: {'created' if is_new else 'exists'}")
        created = sum(outcome.values())
        self.stdout.write(f"{amount(created, 'queue')} created, {len(outcome) - created} there before.")
