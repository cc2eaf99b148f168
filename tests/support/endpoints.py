"""Endpoints and events for tests, and what a worker does with them, one after the other."""

from __future__ import annotations

import time
from typing import Any

from delivery.outbox import outbox_rows, publisher
from delivery.outbox.destinations import Outcome, deliver_for
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import Event, EventField, EventType
from delivery.outbox.stored import OUTBOX, OutboxItem
from delivery.webhooks import endpoints
from delivery.webhooks.endpoints import EndpointChoice
from delivery.webhooks.stored import EndpointItem
from portal import clock
from portal.dynamo.store import Transaction
from portal.schema import keys
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.support.commands import everything

PARCEL = publisher.declare_event(
    EventType("parcel.sent", 1, "A parcel was sent.", (EventField("weight", "number", "Its weight in grams.", 250),))
)
LETTER = publisher.declare_event(
    EventType("parcel.lost", 2, "A parcel was lost.", (EventField("weight", "number", "Its weight in grams.", 250),))
)
URL = "https://hooks.example.com/in"
SETTINGS = "/desk/settings/webhooks/"


def endpoint(
    tenant: TenantContext, url: str = URL, *, types: tuple[str, ...] = ("parcel.sent",), name: str = ""
) -> tuple[EndpointItem, str]:
    """A new endpoint of the tenant, and its secret."""
    choice = EndpointChoice(url=url, event_types=types, description=name)
    by = Actor(tenant.user_id)
    return endpoints.add(tenant, choice=choice, request_id=keys.digest(f"{url}{name}{time.time_ns()}"), by=by)


def tell(tenant: TenantContext, *weights: float, kind: EventType = PARCEL) -> None:
    """Tell of one event for each weight, in a transaction of its own. The context is one that was read just now."""
    for number, weight in enumerate(weights, 1):
        transaction = Transaction()
        publisher.publish(tenant, transaction, Event(kind, {"weight": weight}, number), subject=f"parcel/{number}")
        if len(transaction):
            tenant.repository.transact(transaction)


def rows() -> list[OutboxItem]:
    """All rows of the outbox, the oldest first."""
    return sorted(map(OutboxItem.from_raw_data, everything(OUTBOX)), key=lambda row: row.timestamp)


def work_off(tenant: TenantContext) -> list[Outcome]:
    """Deliver once what is open for the tenant, as a worker does, and note the outcome on its row."""
    outcomes = []
    for row in (row for row in rows() if keys.belongs_to(tenant.tenant_id, row.event_id)):
        for member in sorted(row.open or ()):
            outcomes.append(_deliver(tenant, row, member))
    return outcomes


def _deliver(tenant: TenantContext, row: OutboxItem, member: str) -> Outcome:
    index, _, destination = member.partition("/")
    work = Work(tenant.repository, row, int(index), destination)
    outcome = deliver_for(destination)(work)
    if outcome.state == "failed":
        outbox_rows.failed(work, next_at=clock.stamp())
    elif outcome.state == "dead":
        outbox_rows.dead(work, transaction=Transaction())
    else:
        outbox_rows.answered(work)
    return outcome


def log_of(page: Any) -> list[tuple[str, str, str]]:
    """Type, result and answer of each delivery on an endpoint's page."""
    return [(row["event_type"], row["badge"].word, row["answer"]) for row in page.context["rows"]]
