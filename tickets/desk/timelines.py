"""Read one ticket with its timeline: one round trip, whatever the size of the tenant. Lists are in lists.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from portal.dynamo import paging
from portal.dynamo.client import fan_out
from portal.dynamo.store import Item, Page
from portal.errors import NotFound
from tenants.tenancy.context import TenantContext
from tickets.ticket import stored
from tickets.ticket.fields import DESCRIPTION
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, DetailItem, FileMap, SummaryItem

ACTIVITY_PAGE = 50
_READ_ON = 200  # entries that are read at once for a viewer's page that notes have left short
NEWS_READ = 10  # entries that an open page is shown at most; it says that there are more
CHANGES_READ = 60  # items of a ticket that are read to tell what was changed since a version


@dataclass(frozen=True)
class TicketTimeline:
    """A ticket as its page shows it. `activity` is oldest first; `earlier` is a cursor to what came before it, and
    `files` are those of the description, `letter` what it keeps of the letter that it came as."""

    summary: SummaryItem
    description: str
    activity: list[ActivityItem]
    earlier: str | None
    files: tuple[FileMap, ...] = ()
    letter: Any = None


def ticket(tenant: TenantContext, number: int, *, before: str | None = None) -> TicketTimeline:
    """Return a ticket with its latest activity: one Query. Raises NotFound, Invalid.

    With a cursor: with what came before it; summary and description then come by a Query of their own, sent at
    the same time. Internal notes are left out for viewers, for whom more Queries fill the page, so that neither a short
    page nor a link to nothing tells of them.
    """
    more_than_a_page = ACTIVITY_PAGE + 1  # one more, to know whether there is something earlier
    if before is None:
        found = _collection(tenant, number, more_than_a_page + 2)  # the summary and the detail come first
        summary, detail, rows = _parts(number, found.items)
    else:
        (sort,) = paging.load(before, tenant_id=tenant.tenant_id, query=("activity", number)) or [""]
        reads: list[Callable[[], Any]] = [
            lambda: described(tenant, number),
            lambda: _collection(tenant, number, more_than_a_page, before=sort),
        ]
        (summary, detail), found = fan_out(reads)
        rows = _entries(found.items)
    # A Query also ends after 1 MB, which long comments reach before the page is full.
    while not tenant.is_agent:
        rows = [row for row in rows if row.kind != "note"]
        if len(rows) > ACTIVITY_PAGE or found.last_key is None:
            break
        found = _collection(tenant, number, _READ_ON, before=found.last_key["sk"]["S"])
        rows += _entries(found.items)
    more = len(rows) > ACTIVITY_PAGE or found.last_key is not None
    rows = rows[:ACTIVITY_PAGE]
    earlier = [rows[-1].sk] if more and rows else None
    return TicketTimeline(
        summary=summary,
        description=detail.description,
        files=tuple(detail.files or ()),
        letter=detail.letter,
        activity=rows[::-1],
        earlier=paging.dump(earlier, tenant_id=tenant.tenant_id, query=("activity", number)) if earlier else None,
    )


def parted(number: int, items: Iterable[Item]) -> tuple[SummaryItem, str, list[ActivityItem]]:
    """Return summary, description and entries among the items of a ticket. Raises NotFound where it has no summary."""
    summary, detail, entries = _parts(number, items)
    return summary, detail.description, entries


def _parts(number: int, items: Iterable[Item]) -> tuple[SummaryItem, DetailItem, list[ActivityItem]]:
    found = list(items)
    summary = next((item for item in found if isinstance(item, SummaryItem)), None)
    if summary is None:
        raise NotFound(f"There is no ticket {number}.")
    detail = next((item for item in found if isinstance(item, DetailItem)), None)
    return summary, detail or DetailItem(summary.pk, stored.DETAIL), _entries(found)


def _entries(items: Iterable[Item]) -> list[ActivityItem]:
    return [item for item in items if isinstance(item, ActivityItem)]


def head(tenant: TenantContext, number: int) -> tuple[SummaryItem, str]:
    """Return a ticket and its description without its activity: one Query of two items. Raises NotFound."""
    summary, detail = described(tenant, number)
    return summary, detail.description


def described(tenant: TenantContext, number: int) -> tuple[SummaryItem, DetailItem]:
    """Return a ticket and the item of its description, with its files: one Query of two items. Raises NotFound."""
    summary, detail, _ = _parts(number, _collection(tenant, number, 2).items)
    return summary, detail


def news(tenant: TenantContext, number: int, *, seen: str) -> list[ActivityItem]:
    """Return the latest entries after the moment `seen` that this caller may read, oldest first: one Query."""
    rows = [row for row in _entries(_collection(tenant, number, NEWS_READ + 2).items) if row.at > seen]
    return [row for row in reversed(rows) if tenant.is_agent or row.kind != "note"]


@dataclass(frozen=True)
class ChangesSince:
    """Hold what was changed after a version of a ticket: each field with its text at that version, and the entries.

    `is_known` is False where the timeline does not reach back that far, where a person was erased since, or where there
    never was such a version.
    """

    is_known: bool
    before: Mapping[str, str]
    entries: tuple[ActivityItem, ...]  # newest first


NOTHING_SINCE: Final = ChangesSince(True, {}, ())


def changes_since(tenant: TenantContext, summary: SummaryItem, version: int) -> ChangesSince:
    """Return what was changed in a ticket after this version: nothing is read where it is the latest, else one Query.

    Every version beyond the first has one event in the timeline, written in the same transaction, but for those that
    an erasure made: what it replaced is not known, so that nobody brings it back without having seen the ticket.
    """
    missing = int(summary.version) - version
    if missing == 0:
        return NOTHING_SINCE
    if any(made > version for made in summary.erased_versions or ()):
        return ChangesSince(False, {}, ())
    found = _collection(tenant, int(summary.number), CHANGES_READ, consistent=True).items
    events = [entry for entry in _entries(found) if entry.changes]
    if missing < 0 or missing > len(events):
        return ChangesSince(False, {}, tuple(events[:1]))
    before: dict[str, str] = {}
    for entry in events[:missing]:
        before |= {change.field: change.before for change in entry.changes}
        if entry.former_description is not None:  # of a description the changes tell the length
            before[DESCRIPTION.name] = entry.former_description
    return ChangesSince(True, before, tuple(events[:missing]))


def _collection(
    tenant: TenantContext, number: int, limit: int, *, before: str | None = None, consistent: bool = False
) -> Page[SummaryItem | DetailItem | ActivityItem]:
    """Return a ticket's item collection, newest first. Consistent reading doubles the price; pages can do without."""
    pk = tenant.repository.key(stored.ticket, number)
    start = {"pk": {"S": pk}, "sk": {"S": before}} if before is not None else None
    return tenant.repository.query(
        TICKET_ITEMS, stored.ticket, number, descending=True, limit=limit, start=start, consistent=consistent
    )
