"""Say a ticket and its history as one JSON object, with nothing left out that the desk shows or counts.

The names are those of the events and of the API: a person has `id` and `name`, a moment is text in UTC. The values that
a ticket stores for the dashboard's numbers are included too, because not all of them follow from the history: a bulk
change that was undone leaves no trace in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from tenants.tenancy.context import TenantContext
from tickets.counting import contributions
from tickets.custom_fields.definitions import Definitions
from tickets.desk import lists
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.desk.lists import MergedList
from tickets.requesters import requesters
from tickets.requesters.stored import is_requester
from tickets.ticket import stored
from tickets.ticket.causes import Cause
from tickets.ticket.fields import ASSIGNEE, CUSTOM, DEFINED, FIELDS, OPTIONAL, Status
from tickets.ticket.stored import ActivityItem, FileMap, LinkMap, SummaryItem
from tickets.time_machine import whole_tickets
from tickets.time_machine.whole_tickets import WholeTicket
from tickets.verification.recount import last_number

Json = dict[str, Any]

# Moments that a ticket remembers of its history; null where there was none.
MOMENTS = ("responded_at", "resolved_at", "reopened_at", "commented_at", "rated_at", "noted_at", "spam_at")


def line(
    desk: str,
    summary: SummaryItem,
    description: str,
    activity: Iterable[ActivityItem],
    addresses: Sequence[str] = (),
    not_kept: Sequence[str] = (),
    *,
    names: Mapping[str, str] | None = None,
    links: Iterable[LinkMap] = (),
) -> str:
    """Return the ticket as text of one line, without its end. `activity` is all of it, oldest first, and `addresses`
    are those of the requester, where it is a person outside the desk. `not_kept` names fields of a ticket of before
    whose values are those of now. `names` are what the desk calls its kinds and custom fields, by their ids."""
    told = ticket(summary, description) | {"desk": desk, "activity": [entry(one) for one in activity]}
    if found := [{"kind": link.kind, "number": int(link.number)} for link in links]:
        told["links"] = found
    if addresses:
        told["requester_addresses"] = [*addresses]
    if names:
        told["names"] = dict(names)
    if not_kept:
        told["not_kept"] = [*not_kept]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def ticket(summary: SummaryItem, description: str) -> Json:
    return {
        "number": int(summary.number),
        **{field.name: getattr(summary, field.name, description) for field in FIELDS if field is not ASSIGNEE},
        **{name: getattr(summary, name) or None for name in OPTIONAL},
        "requester_id": summary.requester or None,
        "requester_name": summary.requester_name,
        "resolver": person(summary.resolver, summary.resolver_name) if summary.resolver else None,
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
        "comment_count": int(summary.comment_count),
        "version": summary.version_told,
        **{name: getattr(summary, name) for name in MOMENTS},
        "days": _days(summary),
        "merged_into": int(summary.merged_into) if summary.merged_into else None,
        "merged": [int(one) for one in summary.merged or ()],
    }


def entry(one: ActivityItem) -> Json:
    """Return an entry of the history: a comment, a note, or an event with what it changed."""
    told: Json = {
        "id": stored.entry_id(one.sk),
        "kind": one.kind,
        "at": one.at,
        "by": person(one.author, one.author_name),
    }
    if cause := Cause.parse(one.cause):
        told["rule"] = {"id": cause.rule_id, "version": cause.version, "event": cause.event}
    if one.kind == "event":
        changes = [{"field": c.field, "before": c.before, "after": c.after} for c in one.changes]
        said = {"body": one.body} if one.body else {}  # the words of a rating
        return told | {"verb": one.verb, "changes": changes} | said
    told |= {"body": one.body, **_changes_of_comment(one)}
    if one.delivery:
        told["letter"] = {
            "state": one.delivery,
            "at": one.delivery_at or one.at,
            "note": one.delivery_note or None,
            "cc": list(one.cc or ()),
        }
    return told | {"files": files(one.files)} if one.files else told


def _changes_of_comment(one: ActivityItem) -> Json:
    """Return the earlier texts of a comment that was edited, or who deleted it; nothing of any other."""
    if one.deleted_at:
        return {"deleted": {"at": one.deleted_at, "by": person(one.deleted_by or "", one.deleted_by_name or "")}}
    former = [
        {"body": text.body, "at": text.at, "by": person(text.by, text.by_name)} for text in one.former_texts or ()
    ]
    return {"edited_at": former[-1]["at"], "former_texts": former} if former else {}


def files(listed: Iterable[FileMap]) -> list[Json]:
    return [
        {"id": file.id, "name": file.name, "size": int(file.size), "type": file.type, "state": file.state}
        for file in listed
    ]


def _days(summary: SummaryItem) -> Json:
    """Return how often something happened on each day: {"2026-11-20": {"commented": 2}}."""
    told: Json = {}
    for name, count in sorted(summary.days.attribute_values.items()):
        told.setdefault(name[:-1], {})[contributions.EVENT_NAMES[name[-1]]] = int(count)
    return told


def person(user_id: str, name: str) -> Json:
    """Return a person; the id is null for somebody without an account."""
    return {"id": user_id or None, "name": name}


# --- whole tickets, by their numbers ---
#
# A list is sorted by what changes while it is read. By number each ticket that existed when the reading began comes
# exactly once, and memory holds GROUP tickets.


GROUP: Final = 8  # tickets that are read at the same time
_PEOPLE: Final = 1000  # whose addresses are remembered meanwhile


def all_tickets(
    tenant: TenantContext,
    *,
    advance: Callable[[int], object] = lambda numbers: None,
    then: Callable[[WholeTicket], WholeTicket | None] = lambda one: one,
) -> Iterator[WholeTicket]:
    """Yield the tickets that there are now: a Query for each number that was given out, more for more than 1 MB.

    `advance` is called with the numbers that were read since the last call. `then` returns what a ticket was at another
    time, None where there was none.
    """
    numbers = range(1, last_number(tenant.repository) + 1)
    people: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(numbers), GROUP):
        group = numbers[start : start + GROUP]
        now = [one for one in fan_out([partial(whole_tickets.read, tenant, n) for n in group]) if one]
        found = [one for one in map(then, now) if one]
        outside = {one.summary.requester for one in found if is_requester(one.summary.requester)}
        if len(people) > _PEOPLE:
            people.clear()
        people.update(_addresses(tenant, sorted(outside.difference(people))))
        yield from (replace(one, addresses=people.get(one.summary.requester, ())) for one in found)
        advance(len(group))


def _addresses(tenant: TenantContext, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of people by the ids that tickets name, at the same time."""
    found = fan_out([partial(requesters.find, tenant, one) for one in ids])
    return {one: person.addresses if person else () for one, person in zip(ids, found, strict=True)}


# --- tables of a list ---


_LISTED: Final = [field for field in FIELDS if field.is_listed and field not in (*DEFINED, CUSTOM, ASSIGNEE)]


_PAGE: Final = 500  # rows, some 200 KB
_LATE: Final = 10_000  # tickets that change while a file is made; a Query brings some 2,500 of each partition


def everything(
    tenant: TenantContext,
    *,
    statuses: Sequence[Status],
    resolver: str | None = None,
    only: TicketFilter = EVERYTHING,
) -> Iterator[SummaryItem]:
    """Return the rows of a list, newest change first, read page by page while they are taken.

    A ticket that is changed meanwhile moves to the beginning, which was read already. So those that changed since then
    come last, where they have not come before. Raises Invalid for a bad resolver, at once.
    """
    late = MergedList(tenant, statuses, resolver, only, newer_than=clock.stamp())

    def pages() -> Iterator[list[SummaryItem]]:
        after, more = None, True
        while more:
            page = lists.page(tenant, status=statuses, resolver=resolver, only=only, after=after, size=_PAGE)
            yield page.rows
            after, more = page.next, page.next is not None
        yield late.read(None, _LATE, ()).matches

    return _each_once(pages())


def _each_once(pages: Iterator[list[SummaryItem]]) -> Iterator[SummaryItem]:
    sent = set[int]()
    for row in (row for rows in pages for row in rows):
        if row.number not in sent:
            sent.add(int(row.number))
            yield row


def columns(defined: Definitions) -> tuple[str, ...]:
    return (
        "number",
        *(field.name for field in _LISTED),
        "requester",
        "assignee",
        "comments",
        "opened (UTC)",
        "updated (UTC)",
        "resolved (UTC)",
        *(of.name for of in DEFINED if defined.of_field(of)),
        *(one.name for one in defined.fields),
    )


def cells(defined: Definitions, row: SummaryItem) -> tuple[str, ...]:
    values = row.custom
    return (
        str(row.number),
        *(field.text(getattr(row, field.name)) for field in _LISTED),
        row.requester_name,
        row.resolver_name,
        str(row.comment_count),
        row.created_at,
        row.updated_at,
        row.resolved_at or "",
        *(defined.name(of, getattr(row, of.name)) for of in DEFINED if defined.of_field(of)),
        *(values.get(one.id, "") for one in defined.fields),
    )
