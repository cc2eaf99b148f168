"""`manage.py event_document`: the page that tells receivers of the types of events."""

from __future__ import annotations

from typing import Any

from delivery.outbox import event_types
from delivery.webhooks import endpoints  # noqa: F401  # declares a type of its own
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost


class Command(PortalCommand):
    costs = cost()
    help = f"Print the types of events and their fields, as declared: event_document > {event_types.PATH}"

    def work(self, options: dict[str, Any]) -> None:
        self.stdout.write(event_types.document(), ending="")
