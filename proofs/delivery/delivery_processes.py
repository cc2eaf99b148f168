"""Be a process that a torture of deliveries kills.

A writer changes tickets as people's requests do, by the same rules. A consumer takes messages from the queues and
delivers them to the torture's receiver.
"""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from django.core.management import call_command

DESTINATION: Final = "torture_receiver"
SLOTS: Final = 8  # deliveries of one consumer at a time
_VISIBLE_AGAIN: Final = 12  # seconds after which what a killed consumer had is seen by another


def write(*, seed: int, number: int, tenants: list[str], events: int, journal: str) -> None:
    """Change tickets of these tenants until so many have been changed, all of it told to the receiver."""
    from delivery.events import event_types
    from proofs.counting import load
    from proofs.counting.journal import Journal

    told = {kind.name: (DESTINATION,) for kind in event_types.declared()}
    desks = load.desks(tenants)
    for desk in desks:
        desk.customer, desk.agent = (replace(who, subscriptions=told) for who in (desk.customer, desk.agent))
    rng = random.Random(f"{seed} writer {number}")  # noqa: S311  # it has to be repeatable
    writer, said = load.Writer(rng, desks), Journal(journal)
    writer.run(events, lambda: said.write(events=writer.events))


def consume(*, address: str, **_: Any) -> None:
    """Deliver what the queues bring, until it is killed."""
    from delivery.consuming import receipts
    from delivery.consuming.consumer import Consumer
    from delivery.consuming.message_handling import MessageHandler
    from delivery.outbox import destinations
    from delivery.queues.queue_transport import QueueTransport

    receipts.VISIBILITY_SECONDS = _VISIBLE_AGAIN  # type: ignore[misc]  # a killed consumer is missed sooner
    destinations.declare_destination(DESTINATION, _deliver_to(address))
    transport = QueueTransport()
    consumer = Consumer(transport, MessageHandler().handle, range(transport.queues), slots=SLOTS, poll_seconds=1)
    consumer.start()
    consumer.failed.wait()


def _deliver_to(address: str) -> Callable[[Any], Any]:
    from delivery.outbox import telling
    from delivery.outbox.destinations import Outcome, Work

    def deliver(work: Work) -> Outcome:
        body = json.dumps(telling.envelope(work.row, work.index)).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310  # ours
        try:
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
        except (urllib.error.URLError, OSError) as error:
            return Outcome("failed", retry_after=1.0, note=str(error))
        return Outcome("answered")

    return deliver


def dispatch(**_: Any) -> None:
    """Send what the outbox holds to the queues, until it is killed."""
    from proofs.counting.experiment import LEASE_SECONDS

    call_command("run_dispatch", "--lease", str(LEASE_SECONDS), "--metrics", "0")


def main(role: str, specification: str) -> None:
    """Work in this role, as the specification, in JSON, has it."""
    roles: dict[str, Callable[..., None]] = {"writer": write, "dispatcher": dispatch, "consumer": consume}
    roles[role](**json.loads(specification))
