"""Declare facades over tickets and dead letters for the operators' admin, and how each can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import models

from portal import clock
from portal.dynamo.paging import Pager
from portal.dynamo.platform import PLATFORM
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import CustomListing, Get, Query, ResultPage
from portal.schema import keys
from tenants.tenancy import context, placements, tenant_directory
from tenants.tenancy.context import Role
from tickets.counting import dead_letters
from tickets.counting import stored as counting_keys
from tickets.counting.stored import DeadLetterItem
from tickets.desk import lists
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import CHANNEL, PRIORITY, RATING, STATUS
from tickets.ticket.stored import SummaryItem


def _of_tenant(values: dict[str, Any], *, after: str | None, size: int) -> ResultPage:
    """List tickets of one status as a viewer of the tenant: a GetItem for its shards, then one Query for each."""
    tenant = replace(context.for_system(tenant_directory.get(values["tenant_id"]), name=""), role=Role.VIEWER)
    page = lists.page(tenant, status=STATUS.clean(values["status"]), after=after, size=size)
    return ResultPage([Ticket.from_item(row) for row in page.rows], page.looked_at, page.next, page.previous)


class Ticket(Facade):
    """A ticket as lists show it. Operators read; tickets are changed by the tenant's own people."""

    id = models.CharField(primary_key=True, max_length=60)
    tenant_id = models.CharField("tenant", max_length=32)
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=10, choices=STATUS.choices)
    priority = models.CharField(max_length=10, choices=PRIORITY.choices)
    kind = models.CharField(max_length=10, blank=True)
    group = models.CharField(max_length=10, blank=True)
    channel = models.CharField(max_length=10, choices=CHANNEL.choices)
    rating = models.CharField(max_length=10, blank=True, choices=RATING.choices)
    requester_name = models.CharField("requester", max_length=100)
    resolver_name = models.CharField("assignee", max_length=100)
    created_at = models.DateTimeField("created")
    updated_at = models.DateTimeField("updated")
    comment_count = models.PositiveIntegerField("comments")
    version = models.PositiveIntegerField()

    patterns = (
        Get(
            SummaryItem,
            ("tenant_id", "number"),
            ticket_keys.ticket,
            sort=ticket_keys.SUMMARY,
            name="by tenant and number",
            repository=placements.repository,
        ),
        CustomListing("by tenant and status", ("tenant_id", "status"), "updated_at", _of_tenant, newest_first=True),
    )
    content = ("title", "requester_name", "resolver_name")

    class Meta(Facade.Meta):
        app_label = "tickets"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        ticket = super().from_item(item)
        ticket.tenant_id, _ = ticket_keys.owner_of(item.pk) or ("", 0)
        ticket.pk = f"{ticket.tenant_id}/{ticket.number}"
        return ticket

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"


def _dead_letters(values: dict[str, Any], *, after: str | None, size: int) -> ResultPage:
    """List the dead letters of all tenants from a signed cursor on: one Query for each tenant that had any."""
    pager = Pager("", ("dead letters of all tenants",))
    last = str(pager.place(after, size=1).position[0]) if after else ""
    owner, _, sequence = last.partition("/")
    owners = PLATFORM.query(DeadLetterItem, counting_keys.DEAD_LETTER_TENANTS).items
    listed: list[Any] = []
    for one in sorted(item.sequence for item in owners):
        if one < owner or len(listed) > size:
            continue
        start = {"owner": {"S": owner}, "sequence": {"S": sequence}} if one == owner else None
        page = PLATFORM.query(DeadLetterItem, one, limit=size + 1 - len(listed), start=start)
        listed += [DeadLetter.from_item(item) for item in page.items]
    if len(listed) <= size:
        return ResultPage(listed, len(listed))
    links = pager.links(None, begin=[""], end=[listed[size - 1].pk], more=True)
    return ResultPage(listed[:size], size, links.next)


class DeadLetter(Facade):
    """A record of the tickets' stream that could not be counted."""

    id = models.CharField(primary_key=True, max_length=200)
    owner = models.CharField(max_length=32)
    sequence = models.CharField(max_length=60)
    tenant_id = models.CharField("tenant", max_length=32)
    reason = models.TextField()
    record = models.TextField()
    at = models.DateTimeField("put aside")
    dead_letter: DeadLetterItem  # what replaying and dropping take

    patterns = (
        Get(DeadLetterItem, ("owner", "sequence"), str),
        Query("by tenant", DeadLetterItem, ("tenant_id",), str, order="sequence"),
        CustomListing("tenant by tenant", (), "sequence", _dead_letters),
    )
    content = ("reason", "record")

    class Meta(Facade.Meta):
        app_label = "tickets"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        dead_letter = super().from_item(item)
        dead_letter.at = clock.parse(item.at)
        dead_letter.pk = f"{item.owner}/{item.sequence}"
        dead_letter.dead_letter = item
        return dead_letter

    def __str__(self) -> str:
        return dead_letters.id_of(self.dead_letter)

    def entity(self) -> tuple[str, str, str]:
        return self.tenant_id or keys.PLATFORM, "dead_letter", keys.anonymous(self.sequence)
