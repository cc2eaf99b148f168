"""Read one ticket with its timeline: one round trip, whatever the size of the tenant. Lists are in lists.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.dynamo import paging
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Page
from portal.errors import NotFound
from tenants.tenancy.context import TenantContext
from tickets.ticket import stored
from tickets.ticket.fields import DESCRIPTION
from tickets.ticket.stored import TICKETS, SummaryItem

ACTIVITY_PAGE = 50
_READ_ON = 200  # entries that are read at once for a viewer's page that notes have left short
NEWS_READ = 10  # entries that an open page is shown at most; it says that there are more
CHANGES_READ = 60  # items of a ticket that are read to tell what was changed since a version


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field's change, as text."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Activity:
    """An entry of a ticket's history under the names that the stored item has.

    Read from the raw item: PynamoDB's deserialisation of a page of them takes longer than the Query.
    """

    sk: str
    kind: str
    at: str
    author: str
    author_name: str
    body: str
    verb: str
    changes: tuple[FieldChange, ...]

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Activity:
        sk, kind, at, author, author_name, body, verb = (raw.get(name, _NOTHING)["S"] for name in _ACTIVITY_TEXTS)
        changes = (c["M"] for c in raw["changes"]["L"]) if "changes" in raw else ()
        return cls(
            sk,
            kind,
            at,
            author,
            author_name,
            body,
            verb,
            tuple(FieldChange(*(c.get(name, _NOTHING)["S"] for name in ("field", "before", "after"))) for c in changes),
        )


_ACTIVITY_TEXTS = ("sk", "kind", "at", "author", "author_name", "body", "verb")
_NOTHING = {"S": ""}


@dataclass(frozen=True)
class TicketTimeline:
    """A ticket as its page shows it. `activity` is oldest first; `earlier` is a cursor to what came before it."""

    summary: SummaryItem
    description: str
    activity: list[Activity]
    earlier: str | None


def ticket(tenant: TenantContext, number: int, *, before: str | None = None) -> TicketTimeline:
    """Return a ticket with its latest activity: one Query. Raises NotFound, Invalid.

    With a cursor: with what came before it; summary and description then come by a Query of their own, sent at
    the same time. Internal notes are left out for viewers, for whom more Queries fill the page, so that neither a short
    page nor a link to nothing tells of them.
    """
    more_than_a_page = ACTIVITY_PAGE + 1  # one more, to know whether there is something earlier
    if before is None:
        found = _collection(tenant, number, more_than_a_page + 2)  # the summary and the detail come first
        heads = [i for i in found.items if not _is_activity(i)]
        rows = [i for i in found.items if _is_activity(i)]
    else:
        (sort,) = paging.load(before, tenant_id=tenant.tenant_id, query=("activity", number)) or [""]
        head, found = fan_out(
            [
                lambda: _collection(tenant, number, 2),
                lambda: _collection(tenant, number, more_than_a_page, before=sort),
            ]
        )
        heads, rows = head.items, found.items
    by_sort_key = {i["sk"]["S"]: i for i in heads}
    if stored.SUMMARY not in by_sort_key:
        raise NotFound(f"There is no ticket {number}.")
    detail = by_sort_key.get(stored.DETAIL)
    # A Query also ends after 1 MB, which long comments reach before the page is full.
    while not tenant.is_agent:
        rows = [i for i in rows if i["kind"]["S"] != "note"]
        if len(rows) > ACTIVITY_PAGE or found.last_key is None:
            break
        found = _collection(tenant, number, _READ_ON, before=found.last_key["sk"]["S"])
        rows += [i for i in found.items if _is_activity(i)]
    more = len(rows) > ACTIVITY_PAGE or found.last_key is not None
    rows = rows[:ACTIVITY_PAGE]
    activity = [Activity.of(i) for i in reversed(rows)]
    earlier = [rows[-1]["sk"]["S"]] if more and rows else None
    return TicketTimeline(
        summary=SummaryItem.from_raw_data(by_sort_key[stored.SUMMARY]),
        description=detail.get("description", _NOTHING)["S"] if detail else "",
        activity=activity,
        earlier=paging.dump(earlier, tenant_id=tenant.tenant_id, query=("activity", number)) if earlier else None,
    )


def head(tenant: TenantContext, number: int) -> tuple[SummaryItem, str]:
    """Return a ticket and its description without its activity: one Query of two items. Raises NotFound."""
    items = {i["sk"]["S"]: i for i in _collection(tenant, number, 2).items}
    if stored.SUMMARY not in items:
        raise NotFound(f"There is no ticket {number}.")
    detail = items.get(stored.DETAIL, {})
    return SummaryItem.from_raw_data(items[stored.SUMMARY]), detail.get("description", _NOTHING)["S"]


def news(tenant: TenantContext, number: int, *, seen: str) -> list[Activity]:
    """Return the latest entries after the moment `seen` that this caller may read, oldest first: one Query."""
    rows = [i for i in _collection(tenant, number, NEWS_READ + 2).items if _is_activity(i) and i["at"]["S"] > seen]
    return [Activity.of(i) for i in reversed(rows) if tenant.is_agent or i["kind"]["S"] != "note"]


@dataclass(frozen=True)
class ChangesSince:
    """Hold what was changed after a version of a ticket: each field with its text at that version, and the entries.

    `is_known` is False where the timeline does not reach back that far, where a person was erased since, or where there
    never was such a version.
    """

    is_known: bool
    before: Mapping[str, str]
    entries: tuple[Activity, ...]  # newest first


def changes_since(tenant: TenantContext, summary: SummaryItem, version: int) -> ChangesSince:
    """Return what was changed in a ticket after this version: nothing is read where it is the latest, else one Query.

    Every version beyond the first has one event in the timeline, written in the same transaction, but for those that
    an erasure made: what it replaced is not known, so that nobody brings it back without having seen the ticket.
    """
    missing = int(summary.version) - version
    if missing == 0:
        return ChangesSince(True, {}, ())
    if any(made > version for made in summary.erased_versions or ()):
        return ChangesSince(False, {}, ())
    raw = _collection(tenant, int(summary.number), CHANGES_READ, consistent=True).items
    stored = [i for i in raw if _is_activity(i) and "changes" in i]
    events = [(a, i) for a, i in ((Activity.of(i), i) for i in stored) if a.changes]
    if missing < 0 or missing > len(events):
        return ChangesSince(False, {}, tuple(a for a, _ in events[:1]))
    before: dict[str, str] = {}
    for entry, item in events[:missing]:
        before |= {c.field: c.before for c in entry.changes}
        if DESCRIPTION.kept_as in item:  # of a description the changes tell the length
            before[DESCRIPTION.name] = item[DESCRIPTION.kept_as]["S"]
    return ChangesSince(True, before, tuple(a for a, _ in events[:missing]))


def _collection(
    tenant: TenantContext, number: int, limit: int, *, before: str | None = None, consistent: bool = False
) -> Page[dict[str, Any]]:
    """Return a ticket's item collection, newest first. Consistent reading doubles the price; pages can do without."""
    pk = tenant.repository.key(stored.ticket, number)
    start = {"pk": {"S": pk}, "sk": {"S": before}} if before is not None else None
    return tenant.repository.query(
        TICKETS, stored.ticket, number, descending=True, limit=limit, start=start, consistent=consistent
    )


def _is_activity(raw: dict[str, Any]) -> bool:
    return str(raw["sk"]["S"]).startswith(stored.ACTIVITY_PREFIX)
