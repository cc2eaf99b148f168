"""Say which items are a tenant's tickets, how all of them are found, and what their rows in a file have to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from typing import Final

from portal.schema import keys as all_keys
from portal.schema import row_forms
from portal.schema.holdings import FilePlace, Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from portal.schema.row_forms import Check, RowForm
from tickets.ticket import custom_values, due_marks
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import CHOICES, CUSTOM, DEFINED, NUMBER_GAP, TAGS, DefinedField
from tickets.ticket.stored import (
    ACTIVITY_PREFIX,
    BOUNCED,
    COMMENTED,
    COMPLAINED,
    COUNTER_TICKET,
    DETAIL,
    FILE_STATES,
    HELD,
    LINK_KINDS,
    MADE_COMMENT,
    MADE_TICKET,
    MERGED_ASIDE,
    RECEIVED,
    REOPENED,
    RESOLVED,
    SENT,
    SPAM_ASIDE,
    SUMMARY,
    TICKETS,
    ActivityItem,
    CounterItem,
    DetailItem,
    SummaryItem,
    activity,
    aside,
    counter,
    is_file_id,
    owner_of,
    place_of_requester,
    raised_status,
    status_shard,
    tenant_status,
    ticket,
    ticket_number,
)

_AT_ONCE: Final = 100  # request records that are read together
_TRIES: Final = 3  # for a ticket that changes while it is read
_TICKETS, _COUNTER = "tickets", "ticket counter"
_UNUSED: Final = 100_000  # numbers that no ticket has, beside holes: whoever counts all tickets reads those, too


def _counter(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(TICKETS, (counter(reader.tenant_id), COUNTER_TICKET))


def numbers(reader: Reader) -> range:
    given = next((int(stored.item["last"]["N"]) for stored in _counter(reader)), 0)
    return range(1, given + 1)


def _tickets(reader: Reader) -> Iterator[StoredItem]:
    for number in numbers(reader):
        yield from reader.query(TICKETS, ticket(reader.tenant_id, number))


def _settled(reader: Reader) -> Iterator[StoredItem]:
    """Yield the items of each ticket as of one moment: a change writes several, and a reading may part them."""
    for number in numbers(reader):
        for _ in range(_TRIES):
            items = [*reader.query(TICKETS, ticket(reader.tenant_id, number))]
            if _adds_up([stored.item for stored in items]):
                break
        yield from items


def _adds_up(items: list[Raw]) -> bool:
    summary = next((item for item in items if item["sk"]["S"] == SUMMARY), None)
    if summary is None:
        return True  # an import is writing it
    comments = sum(item.get("kind", {}).get("S") == "comment" for item in items)
    versions = 1 + sum(bool(item.get("changes", {}).get("L")) for item in items)
    erased = len(summary.get("erased_versions", {}).get("L", ()))
    told = [int(summary["comment_count"]["N"]), int(summary["version"]["N"]) - erased]
    return told == [comments, versions]


def _fit(item: Raw, arrival: TenantArrival) -> Raw:
    """Put a summary into the list of its status where it arrives: over how many partitions, the tenant says."""
    if item["sk"]["S"] != SUMMARY:
        return item
    tenant_id, shards = arrival.tenant["tenant_id"]["S"], int(arrival.tenant["shards"]["N"])
    shard = status_shard(int(item["number"]["N"]), shards)
    status = item["status"]["S"].upper()
    requester_id = item.get("requester", {}).get("S", "")
    fitted = {name: value for name, value in item.items() if name != "tenant_requester"}
    why = SPAM_ASIDE if "spam_at" in item else MERGED_ASIDE if "merged_into" in item else ""
    aside_key = aside(tenant_id, why) if why else ""
    if place := place_of_requester(tenant_id, requester_id):
        fitted["tenant_requester"] = {"S": aside_key or place}
    return {
        **fitted,
        "tenant_status": {"S": aside_key or tenant_status(tenant_id, status, shard)},
        "raised_status": {"S": raised_status(tenant_id, status)},
    }


def _requests(reader: Reader) -> Iterator[StoredItem]:
    named: list[tuple[str, str | None]] = []
    for stored in _tickets(reader):
        if digest := stored.item.get("request", {}).get("S"):
            is_ticket = stored.item["sk"]["S"] == DETAIL
            named.append((ticket_keys.request(reader.tenant_id, digest), MADE_TICKET if is_ticket else MADE_COMMENT))
        if len(named) >= _AT_ONCE:
            yield from reader.get(TICKETS, *named)
            named = []
    yield from reader.get(TICKETS, *named)


def _open(item: Raw, arrival: TenantArrival) -> Raw:
    """Let the counter give out numbers where it arrives: at the place that it comes from, a move may have closed it."""
    return {name: value for name, value in item.items() if name != "closed"}


def _pk(tenant_id: str, item: Raw) -> str:
    """Form the partition key of the ticket that a row is of."""
    number = ticket_number(tenant_id, item["pk"]["S"])
    if number is None:
        raise ValueError("this is no ticket of this tenant")
    return ticket(tenant_id, number)


def _summary_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return ticket(tenant_id, int(item["number"]["N"])), SUMMARY


def _activity_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    _, at, entry = all_keys.split(item["sk"]["S"])
    row_forms.moment(all_keys.part(at))
    return _pk(tenant_id, item), activity(at, entry)


def _numbers_in(values: Iterable[Raw]) -> bool:
    return all(int(one["N"]) >= 0 for one in values)


_EVENTS: Final = (COMMENTED, RECEIVED, RESOLVED, REOPENED)


def _days(values: Raw) -> bool:
    return _numbers_in(values.values()) and all(
        date.fromisoformat(name[:-1]) and name[-1] in _EVENTS for name in values
    )


def _files_listed(values: Iterable[Raw]) -> bool:
    return all(is_file_id(one["M"]["id"]["S"]) and one["M"]["state"]["S"] in FILE_STATES for one in values)


def _links(values: Iterable[Raw]) -> bool:
    return all(one["M"]["kind"]["S"] in LINK_KINDS and int(one["M"]["number"]["N"]) >= 1 for one in values)


def _former_texts(values: Iterable[Raw]) -> bool:
    return all(isinstance(one["M"]["body"]["S"], str) and row_forms.moment(one["M"]["at"]["S"]) for one in values)


def _is_id_of(field: DefinedField, value: str) -> bool:
    return not value or field.pattern.match(value) is not None


def _forms() -> tuple[RowForm, ...]:
    of_request: dict[str, Check] = {"request": all_keys.part, "files": _files_listed}
    summary: dict[str, Check] = {
        **{choice.name: row_forms.one_of(*(value for value, _ in choice.choices)) for choice in CHOICES},
        TAGS.name: row_forms.texts,
        **{one.name: partial(_is_id_of, one) for one in DEFINED},
        CUSTOM.name: lambda values: all(custom_values.is_field_id(one) and text["S"] for one, text in values.items()),
        "erased_versions": _numbers_in,
        "days": _days,
        "zone": bool,
        **dict.fromkeys(("followers", "muted_by"), row_forms.ids),
        "merged": _numbers_in,
        "due": due_marks.is_marks,
        **row_forms.moments("created_at", "updated_at"),
        **row_forms.moments_if_any(
            "responded_at", "resolved_at", "reopened_at", "commented_at", "rated_at", "noted_at", "raised_at", "spam_at"
        ),
    }
    activity = {
        "kind": row_forms.one_of("comment", "note", "event"),
        "delivery": row_forms.one_of(HELD, SENT, BOUNCED, COMPLAINED),
        "cc": row_forms.texts,
        **row_forms.moments("at"),
        **row_forms.moments_if_any("delivery_at", "deleted_at"),
        "former_texts": _former_texts,
        **of_request,
    }
    needs = ("comment_count", "version", "tags", "resolver", "resolver_name")  # lists take them as they are stored
    return (
        RowForm(SummaryItem, _summary_key, begins=SUMMARY, checks=summary, needs=needs),
        RowForm(
            DetailItem,
            lambda own, item: (_pk(own, item), DETAIL),
            begins=DETAIL,
            checks=of_request | {"links": _links},
        ),
        RowForm(ActivityItem, _activity_key, begins=ACTIVITY_PREFIX, checks=activity),
    )


def _counter_forms() -> tuple[RowForm, ...]:
    return (RowForm(CounterItem, lambda own, _: (counter(own), COUNTER_TICKET)),)


class TicketNumbers:
    """Looks whether the counter in a file reaches all tickets, by which they are found, and not far beyond them."""

    of = (_TICKETS, _COUNTER)

    def __init__(self) -> None:
        self._tickets = self._highest = 0
        self._last = -1
        self._highest_at = self._last_at = FilePlace(0, "")

    def look(self, holding: str, item: Raw, place: FilePlace) -> str:
        """Take a row of a ticket, or the counter."""
        if holding == _COUNTER:
            if self._last >= 0:
                return "is a second counter"
            self._last, self._last_at = int(item["last"]["N"]), place
            return ""
        self._tickets += item["sk"]["S"] == SUMMARY
        owner = owner_of(item["pk"]["S"])
        if owner and owner[1] > self._highest:
            self._highest, self._highest_at = owner[1], place
        return ""

    def fault(self) -> tuple[FilePlace, str] | None:
        """Return the ticket that the counter does not reach, or the counter that is far off."""
        if self._highest > max(self._last, 0):
            return self._highest_at, f"is of ticket {self._highest:,}, which the file's counter does not reach"
        if self._last > _UNUSED + NUMBER_GAP * self._tickets:
            return self._last_at, f"counts to {self._last:,}, which is far beyond the {self._tickets:,} tickets"
        return None


declare_holding(
    Holding(_TICKETS, (TICKETS,), _tickets, Stage.CONTENT, export=_settled, fit=_fit, forms=_forms),
    Holding(_COUNTER, (TICKETS,), _counter, Stage.OWN, fit=_open, forms=_counter_forms, together=TicketNumbers),
    Holding("requests", (TICKETS,), _requests, Stage.NAMED, left_out="each is forgotten a day after its request"),
)
