"""Read a list of tickets to its end, as a table of it needs them: each ticket once, whatever changes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.desk import lists
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.desk.shard_merge import MergedList
from tickets.desk.ticket_rows import TicketRow
from tickets.ticket.fields import ASSIGNEE, FIELDS, Status

_LISTED: Final = [field for field in FIELDS if field.is_listed and field is not ASSIGNEE]
COLUMNS: Final = (
    "number",
    *(field.name for field in _LISTED),
    "requester",
    "assignee",
    "comments",
    "opened (UTC)",
    "updated (UTC)",
    "resolved (UTC)",
)
_PAGE: Final = 500  # rows, some 200 KB
_LATE: Final = 10_000  # tickets that change while a file is made; a Query brings some 2,500 of each partition


def everything(
    tenant: TenantContext,
    *,
    statuses: Sequence[Status],
    resolver: str | None = None,
    only: TicketFilter = EVERYTHING,
) -> Iterator[TicketRow]:
    """Return the rows of a list, newest change first, read page by page while they are taken.

    A ticket that is changed meanwhile moves to the beginning, which was read already. So those that changed since then
    come last, where they have not come before. Raises Invalid for a bad resolver, at once.
    """
    late = MergedList(tenant, statuses, resolver, only, newer_than=clock.stamp())

    def pages() -> Iterator[list[TicketRow]]:
        after, more = None, True
        while more:
            page = lists.page(tenant, status=statuses, resolver=resolver, only=only, after=after, size=_PAGE)
            yield page.rows
            after, more = page.next, page.next is not None
        yield late.read(None, _LATE, ()).matches

    return _each_once(pages())


def _each_once(pages: Iterator[list[TicketRow]]) -> Iterator[TicketRow]:
    sent = set[int]()
    for row in (row for rows in pages for row in rows):
        if row.number not in sent:
            sent.add(row.number)
            yield row


def cells(row: TicketRow) -> tuple[str, ...]:
    """Return a row of the table, in the order of COLUMNS."""
    return (
        str(row.number),
        *(field.text(getattr(row, field.name)) for field in _LISTED),
        row.requester_name,
        row.resolver_name,
        str(row.comment_count),
        row.created_at,
        row.updated_at,
        row.resolved_at,
    )
