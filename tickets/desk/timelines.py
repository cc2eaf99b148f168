"""Read one ticket with its timeline: one round trip, whatever the size of the tenant. Lists are in lists.py.

Tickets that were merged into this one keep their items; their entries are read at the same time and sorted in. Which
they are the ticket itself says, so a process remembers it of the tickets that it has read: where it did not know, or
where that has changed, a second round trip reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from django.utils.translation import gettext, gettext_noop

from portal.dynamo import paging
from portal.dynamo.client import fan_out
from portal.dynamo.store import Item, Page
from portal.errors import NotFound
from portal.quotas import BoundedCache
from portal.web.locales import declare_stored, stored_text
from tenants.tenancy.context import TenantContext
from tickets.ticket import stored
from tickets.ticket.fields import DESCRIPTION, MERGED_INTO, Channel
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, DetailItem, FileMap, LinkMap, SummaryItem

ACTIVITY_PAGE = 50
_MORE_THAN_A_PAGE: Final = ACTIVITY_PAGE + 1  # to know whether there is something beyond it
_READ_ON = 200  # entries that are read at once for a viewer's page that notes have left short
NEWS_READ = 10  # entries that an open page is shown at most; it says that there are more
CHANGES_READ = 60  # items of a ticket that are read to tell what was changed since a version


@dataclass(frozen=True)
class TicketTimeline:
    """A ticket as its page shows it. `activity` is oldest first; `earlier` is a cursor to what came before it, `later`
    says that there is more after it. `files` are those of the description, `letter` what it keeps of the letter that it
    came as. `latest` are the entries of the latest page, of an older one where they were asked for."""

    summary: SummaryItem
    description: str
    activity: list[ActivityItem]
    earlier: str | None
    files: tuple[FileMap, ...] = ()
    letter: Any = None
    links: tuple[LinkMap, ...] = ()
    later: bool = False
    latest: Sequence[ActivityItem] = ()


def ticket(
    tenant: TenantContext,
    number: int,
    *,
    before: str | None = None,
    around: str | None = None,
    with_latest: bool = False,
) -> TicketTimeline:
    """Return a ticket with its latest activity: one Query. Raises NotFound, Invalid.

    With a cursor: with what came before it; summary and description then come by a Query of their own, sent at the
    same time, and `with_latest` also the latest entries, on which an answer follows. `around` is the sort key of an
    entry: a page up to it and a page after it, by one Query more. Internal notes are left out for viewers, for whom
    more Queries fill the page, so that neither a short page nor a link to nothing tells of them. They get the latest
    page where `around` names a note or nothing, at the same price, by one GetItem. Each of these is read once more
    for each ticket that was merged into this one.
    """
    purpose = ("activity", number)
    cursor = paging.load(before, tenant_id=tenant.tenant_id, query=purpose) if before is not None else None
    sort, *sources = cursor or ("",)
    place = _Place(sort if cursor else None, with_latest=with_latest)
    if around is not None:
        place = _Place.around(around, with_latest=with_latest) if tenant.is_agent else _Place(asked=around)
    parts, sources = _with_merged(tenant, number, sources, place)
    if place.asked and any(_may_be_read(one, place.asked) for one in parts):
        place = _Place.around(place.asked)
        parts, sources = _with_merged(tenant, number, sources, place)
    every = [*parts[0].rows, *(row for one in parts[1:] for row in one.with_opening())]
    rows = sorted(every, key=_sort_key, reverse=True)
    # Below the last row of a part that has more, rows of that part would be missing.
    floor = max((one.rows[-1].sk for one in parts if one.more and one.rows), default="")
    shown = [row for row in rows if _sort_key(row) >= floor][:ACTIVITY_PAGE]
    more = len(rows) > len(shown) or any(one.more for one in parts)
    later, has_later = _after(parts, place)
    shown = [*reversed(later), *shown]
    earlier = [shown[-1].sk, *sources] if shown and more else None
    detail = parts[0].detail
    return TicketTimeline(
        parts[0].head(number),
        detail.description,
        shown[::-1],
        paging.dump(earlier, tenant_id=tenant.tenant_id, query=purpose) if earlier else None,
        files=tuple(detail.files or ()),
        letter=detail.letter,
        links=tuple(detail.links or ()),
        later=has_later or (before is not None and around is None),
        latest=shown[::-1] if place.before is None else _latest(parts),
    )


_NEXT: Final = "\0"  # after a sort key, the next one there can be


@dataclass(frozen=True)
class _Place:
    """Where a page is: `before` a sort key, None for the latest page, and with `after` also what follows that.

    `asked` is the sort key of an entry that is read beside the page; `with_latest` asks for the latest entries.
    """

    before: str | None = None
    after: str | None = None
    asked: str | None = None
    with_latest: bool = False

    @classmethod
    def around(cls, entry: str, *, with_latest: bool = False) -> Self:
        return cls(entry + _NEXT, entry, with_latest=with_latest)


def _after(parts: Sequence[_Part], place: _Place) -> tuple[list[ActivityItem], bool]:
    """Return the page of entries after a place, oldest first, and whether more follow."""
    if place.after is None:
        return [], False
    openings = [opening for opening in _openings(parts) if opening.sk > place.after]
    rows = sorted([*openings, *(row for part in parts for row in part.later)], key=_sort_key)
    # Above the last row of a part that has more, rows of that part would be missing.
    ceiling = min((part.later[-1].sk for part in parts if part.has_later), default=None)
    shown = [row for row in rows if ceiling is None or _sort_key(row) <= ceiling][:ACTIVITY_PAGE]
    return shown, len(rows) > len(shown) or ceiling is not None


def _latest(parts: Sequence[_Part]) -> list[ActivityItem]:
    """Return the entries of the latest page, oldest first."""
    rows = [*_openings(parts), *(row for part in parts for row in part.newest)]
    return sorted(rows, key=_sort_key)[-ACTIVITY_PAGE:]


def _openings(parts: Sequence[_Part]) -> list[ActivityItem]:
    return [opening for part in parts[1:] if (opening := part.opening())]


def before(tenant: TenantContext, number: int, sort: str) -> str:
    """Return the cursor to what came before the entry with this sort key."""
    return paging.dump([sort], tenant_id=tenant.tenant_id, query=("activity", number))


# The numbers of the tickets that were merged into a ticket, by tenant and number: no more than a hint.
_merged: Final[BoundedCache[tuple[str, int], list[int]]] = BoundedCache(10_000)


@dataclass
class _Part:
    """The items of one ticket: `rows` are the newest entries of a page, newest first, and `more` says that others came
    before them. `later` are those that follow the place, oldest first, and `has_later` says that there are more.
    `newest` are the latest of all, and `asked` is the entry that was asked for, as far as the place wants them."""

    summary: SummaryItem | None
    detail: DetailItem
    rows: list[ActivityItem]
    more: bool
    before: str | None
    later: Sequence[ActivityItem] = ()
    has_later: bool = False
    newest: Sequence[ActivityItem] = ()
    asked: ActivityItem | None = None

    def head(self, number: int) -> SummaryItem:
        if self.summary is None:
            raise NotFound(gettext("There is no ticket %(number)s.") % {"number": number})
        return self.summary

    def with_opening(self) -> list[ActivityItem]:
        """Return the entries of a merged ticket, at their end its description where that is on this page."""
        opening = self.opening() if not self.more else None
        is_here = opening is not None and (self.before is None or opening.sk < self.before)
        return [*self.rows, opening] if opening is not None and is_here else self.rows

    def opening(self) -> ActivityItem | None:
        """Return the description as the comment that opened the ticket: its requester's, or that of the member who made
        it for somebody. None where the ticket was opened without one."""
        summary, detail = self.summary, self.detail
        if summary is None or not (detail.description or detail.files):
            return None
        author, name = summary.requester, summary.requester_name
        first = next(iter([*self.rows[-1:], *self.later]), None)
        if summary.channel == Channel.HAND and first is not None and first.kind == "event":
            author, name = first.author, first.author_name
        return ActivityItem(
            summary.pk,
            opening_key(summary),
            kind="comment",
            at=summary.created_at,
            author=author,
            author_name=name,
            body=detail.description,
            files=detail.files,
            letter=detail.letter,
        )


_OPENING: Final = "opening"


def opening_key(summary: SummaryItem) -> str:
    """Return the sort key that the description of a merged ticket has as an entry."""
    return stored.activity(summary.created_at, f"{_OPENING}{int(summary.number)}")


def is_opening(entry: ActivityItem) -> bool:
    """Tell whether an entry is the description of a merged ticket, which no item of its own holds."""
    return stored.entry_id(entry.attribute_values["sk"]).startswith(_OPENING)


def is_other_side(entry: ActivityItem, merged: Sequence[int]) -> bool:
    """Tell whether an entry of a merged ticket says what an entry of this one says: that the two were merged."""
    if not merged or not any(change.field == MERGED_INTO for change in entry.changes or ()):
        return False
    owner = stored.owner_of(entry.pk)
    return owner is not None and owner[1] in merged


def _with_merged(
    tenant: TenantContext, number: int, sources: Sequence[int], place: _Place
) -> tuple[list[_Part], list[int]]:
    """Read the parts of a ticket and of those that were merged into it, and return them with the numbers of those.
    `sources` are the numbers as a cursor says them, else as this process remembers them. Raises NotFound."""
    own = (tenant.tenant_id, number)
    known = [*sources] or _merged.get(own) or []
    parts = _parts_read(tenant, [number, *known], place)
    merged = [int(one) for one in parts[0].head(number).merged or ()]
    if merged != known:
        _merged.put(own, merged)
        parts[1:] = _parts_read(tenant, merged, place)
    return parts, merged


def _may_be_read(part: _Part, asked: str) -> bool:
    """Tell whether a viewer may read the entry that was asked for, and it is in this part."""
    opening = part.opening() if part.asked is None else None
    return (part.asked is not None and part.asked.kind != "note") or (opening is not None and opening.sk == asked)


def _parts_read(tenant: TenantContext, numbers: Sequence[int], place: _Place) -> list[_Part]:
    """Read a page of each of these tickets, at the same time."""
    reads: list[Callable[[], Any]] = [partial(_rows, tenant, number, place.before) for number in numbers]
    if place.asked is not None:
        get = partial(tenant.repository.get, ActivityItem, stored.ticket, sort=place.asked)
        reads += [partial(get, number) for number in numbers]
    elif place.before is not None:
        limit = ACTIVITY_PAGE + 2 if place.with_latest else 2
        reads += [partial(_collection, tenant, number, limit) for number in numbers]
    if place.after is not None:
        reads += [partial(_later, tenant, number, place.after) for number in numbers]
    found = fan_out(reads) if len(reads) > 1 else [read() for read in reads]
    parts: list[_Part] = found[: len(numbers)]
    for part, one in zip(parts, found[len(numbers) : 2 * len(numbers)], strict=False):
        if place.asked is not None:
            part.asked = one
        else:
            part.summary, part.detail, part.newest = _told_apart(one.items)
    for part, later in zip(parts, found[2 * len(numbers) :], strict=False):
        part.later, part.has_later = later
    return parts


def _rows(tenant: TenantContext, number: int, before: str | None) -> _Part:
    limit = _MORE_THAN_A_PAGE if before is not None else _MORE_THAN_A_PAGE + 2  # the summary and the detail come first
    found = _collection(tenant, number, limit, start=before)
    summary, detail, _ = _told_apart(found.items)
    rows, more = _readable(tenant, number, found)
    return _Part(summary, detail, rows, more, before)


def _later(tenant: TenantContext, number: int, after: str) -> tuple[list[ActivityItem], bool]:
    found = _collection(tenant, number, _MORE_THAN_A_PAGE + 2, start=after, descending=False)  # and come last
    return _readable(tenant, number, found, descending=False)


def _readable(
    tenant: TenantContext,
    number: int,
    found: Page[SummaryItem | DetailItem | ActivityItem],
    *,
    descending: bool = True,
) -> tuple[list[ActivityItem], bool]:
    """Return a page of entries that this caller may read, and whether there are more. Of a page that notes have left
    short for a viewer, more is read."""
    rows = _entries(found.items)
    # A Query also ends after 1 MB, which long comments reach before the page is full.
    while not tenant.is_agent:
        rows = [row for row in rows if row.kind != "note"]
        if len(rows) > ACTIVITY_PAGE or found.last_key is None:
            break
        start = found.last_key["sk"]["S"]
        found = _collection(tenant, number, _READ_ON, start=start, descending=descending)
        rows += _entries(found.items)
    return rows[:ACTIVITY_PAGE], len(rows) > ACTIVITY_PAGE or found.last_key is not None


def _sort_key(row: ActivityItem) -> str:
    return row.attribute_values["sk"]  # type: ignore[no-any-return]  # attributes are descriptors


def parted(number: int, items: Iterable[Item]) -> tuple[SummaryItem, str, list[ActivityItem]]:
    """Return summary, description and entries among the items of a ticket. Raises NotFound where it has no summary."""
    summary, detail, entries = _parts(number, items)
    return summary, detail.description, entries


def _parts(number: int, items: Iterable[Item]) -> tuple[SummaryItem, DetailItem, list[ActivityItem]]:
    summary, detail, entries = _told_apart(items)
    if summary is None:
        raise NotFound(gettext("There is no ticket %(number)s.") % {"number": number})
    return summary, detail, entries


def _told_apart(items: Iterable[Item]) -> tuple[SummaryItem | None, DetailItem, list[ActivityItem]]:
    found = list(items)
    summary = next((item for item in found if isinstance(item, SummaryItem)), None)
    detail = next((item for item in found if isinstance(item, DetailItem)), None)
    return summary, detail or DetailItem(summary.pk if summary else "", stored.DETAIL), _entries(found)


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


def last_comment(tenant: TenantContext, summary: SummaryItem) -> ActivityItem | None:
    """Return the public comment that was added last, None where there is none: one Query of its moment."""
    if not summary.commented_at:
        return None
    at = stored.activity_from(summary.commented_at)
    found = tenant.repository.query(TICKET_ITEMS, stored.ticket, int(summary.number), begins_with=at, consistent=True)
    return next((entry for entry in _entries(found.items) if entry.kind == "comment"), None)


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
    tenant: TenantContext,
    number: int,
    limit: int,
    *,
    start: str | None = None,
    descending: bool = True,
    consistent: bool = False,
) -> Page[SummaryItem | DetailItem | ActivityItem]:
    """Return a ticket's item collection, newest first, or oldest first, behind the sort key `start`. Consistent reading
    doubles the price; pages can do without."""
    pk = tenant.repository.key(stored.ticket, number)
    begin = {"pk": {"S": pk}, "sk": {"S": start}} if start is not None else None
    return tenant.repository.query(
        TICKET_ITEMS, stored.ticket, number, descending=descending, limit=limit, start=begin, consistent=consistent
    )


# --- what an entry did ---

# Verbs of entries, which are stored in English.
for verb in (
    gettext_noop("opened the ticket"),
    gettext_noop("ended the requester's links to this ticket"),
    gettext_noop("redacted words in this ticket"),
    gettext_noop("removed the file %(name)s"),
    gettext_noop("ticked “%(item)s”:"),
    gettext_noop("unticked “%(item)s”:"),
    gettext_noop("restored the ticket as of %(when)s:"),
    gettext_noop("added the link “%(link)s”"),
    gettext_noop("removed the link “%(link)s”"),
    gettext_noop("split a comment off into #%(number)s"),
    gettext_noop("split it off from #%(number)s"),
    gettext_noop("said more about their rating"),
    gettext_noop("undid a change:"),
):
    declare_stored(verb)


def verb_shown(stored: str) -> str:
    """Return a stored verb in the language of the page, "" where the changes of the entry say all."""
    return "" if stored == "changed" else stored_text(stored)
