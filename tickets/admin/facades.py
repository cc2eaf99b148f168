"""What the operators' admin shows of tickets and of the stream behind them, and how each can be read."""

from __future__ import annotations

from typing import Any, Final

from django.db import models

from portal import clock
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import CustomListing, Get, Query, ResultPage
from portal.schema import keys
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.counting.items import DeadLetterItem
from tickets.desk import lists
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Priority, Status, status
from tickets.ticket.items import SummaryItem
from tickets.ticket.tables import TICKETS

_STATUSES: Final = [(s.value, s.label) for s in Status]
_PRIORITIES: Final = [(p.value, p.label) for p in Priority]


def _of_tenant(values: dict[str, Any], *, after: str | None, size: int) -> ResultPage:
    """List tickets of one status as a viewer of the tenant: a GetItem for its shards, then one Query for each."""
    stored = tenant_directory.get(values["tenant_id"])
    tenant = TenantContext(
        tenant_id=stored.tenant_id,
        name=stored.name,
        slug=stored.slug,
        role=Role.VIEWER,
        user_id="",
        user_name="",
        shards=int(stored.shards),
        shard_epoch=int(stored.shard_epoch),
    )
    page = lists.page(tenant, status=status(values["status"]), after=after, size=size)
    return ResultPage([Ticket.from_item(row) for row in page.rows], page.looked_at, page.next, page.previous)


class Ticket(Facade):
    """A ticket as lists show it. Operators read; tickets are changed by the tenant's own people."""

    id = models.CharField(primary_key=True, max_length=60)
    tenant_id = models.CharField("tenant", max_length=32)
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=10, choices=_STATUSES)
    priority = models.CharField(max_length=10, choices=_PRIORITIES)
    requester_name = models.CharField("from", max_length=100)
    resolver_name = models.CharField("assignee", max_length=100)
    created_at = models.DateTimeField("created")
    updated_at = models.DateTimeField("changed")
    comment_count = models.PositiveIntegerField("comments")
    version = models.PositiveIntegerField()

    patterns = (
        Get(
            SummaryItem,
            ("tenant_id", "number"),
            ticket_keys.ticket,
            sort=ticket_keys.SUMMARY,
            name="by tenant and number",
        ),
        CustomListing("by tenant and status", ("tenant_id", "status"), "updated_at", _of_tenant, newest_first=True),
    )

    class Meta(Facade.Meta):
        app_label = "tickets"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        made = super().from_item(item)
        made.tenant_id, _ = ticket_keys.owner_of(item.pk) or ("", 0)
        made.pk = f"{made.tenant_id}/{made.number}"
        return made

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"


class DeadLetter(Facade):
    """A record of the tickets' stream that could not be counted."""

    sequence = models.CharField(primary_key=True, max_length=200)
    tenant_id = models.CharField("tenant", max_length=32)
    aggregate = models.CharField(max_length=80)
    reason = models.TextField()
    record = models.TextField()
    at = models.DateTimeField("put aside")

    patterns = (
        Get(DeadLetterItem, ("sequence",), lambda: TICKETS.name),
        Query("in the order of the stream", DeadLetterItem, (), lambda: TICKETS.name, order="sequence"),
    )
    filters = ("tenant_id",)

    class Meta(Facade.Meta):
        app_label = "tickets"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        made = super().from_item(item)
        made.at = clock.parse(item.at)
        made.letter = item  # what replaying and dropping take
        return made

    def __str__(self) -> str:
        return self.sequence.lstrip("0")

    def entity(self) -> tuple[str, str, str]:
        return self.tenant_id or keys.PLATFORM, "dead_letter", keys.anonymous(self.sequence)
