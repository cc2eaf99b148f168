"""Prepare the queue for its page: filters, tabs, rows, pages, words for nothing, and pages about many selected tickets.

Filters come as the address asks for them, and are shown as chips over the list and as a form. filters.py says what the
words of an address mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal import clock
from portal.errors import Invalid
from portal.web import desk_prefix, locales
from portal.web.locales import in_sentence
from tenants.tenancy.context import TenantContext
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import CustomField, Definitions
from tickets.desk import bulk, filters, lists
from tickets.desk.bulk import BulkRefused
from tickets.desk.changing import TicketState
from tickets.desk.filters import LATEST, ORDERS, Days, Order, TicketFilter
from tickets.desk.lists import NO_PAGE, TicketPage
from tickets.desk.ticket_presenters import ListedTicket, listed, ticket_url
from tickets.live import page_tokens
from tickets.replies import mail_settings
from tickets.sla import policy_versions
from tickets.ticket import due_marks, fields
from tickets.ticket.custom_values import YES, CustomFilter, FieldType
from tickets.ticket.fields import CUSTOM_PREFIX, DEFINED, MOVES, Status

PLACE: Final = re.compile(r"[1-9][0-9]{0,8}\Z")  # of a ticket in a list
NAME_LIMIT: Final = 100  # characters of a name in an address
_MEANT: Final = {
    "created": "opened",
    "resolved": gettext_noop("last resolved"),
    "reopened": gettext_noop("last reopened"),
    "commented": gettext_noop("last commented on"),
    "rated": gettext_noop("last rated"),
}
_VERBS: Final = {
    "resolved": gettext_noop("resolved"),
    "reopened": gettext_noop("reopened"),
    "commented": gettext_noop("commented on"),
    "rated": gettext_noop("rated"),
}
# The form of filters sends each end of the days in a field of its own.
_ENDS: Final = ("created_from", "created_to")
_END_OF_RANGE: Final = re.compile(r"((?:number|date)_[1-9][0-9]?)_(?:from|to)\Z")


@dataclass(frozen=True)
class QueueAddress:
    """Hold what an address of the queue asks for. `who` is "", me, none or a user id; `name` is that of the person."""

    status: str
    who: str
    name: str
    only: TicketFilter
    sort: str  # a word of ORDERS, "" for the usual order

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Self:
        """Raise Invalid for what means nothing; unknown parameters and empty ones ask nothing."""
        status = params.get("status") or Status.OPEN.value
        filters.statuses(status)
        order = filters.order_of(params.get("sort", ""))
        who, name = params.get("resolver", ""), params.get("name", "")[:NAME_LIMIT]
        return cls(status, who, name, TicketFilter.parse(params), "" if order is LATEST else order.word)

    @classmethod
    def of_what_is_understood(cls, params: Mapping[str, str]) -> Self:
        """Return the address without the parameters that mean nothing."""
        good = {}
        for name, value in params.items():
            try:
                cls.of({name: value})
            except Invalid:
                continue
            good[name] = value
        return cls.of(good)

    @property
    def statuses(self) -> tuple[Status, ...]:
        return filters.statuses(self.status)

    @property
    def is_mixed(self) -> bool:
        """Tell whether rows of several statuses may be listed, so that each says its own."""
        return len(self.statuses) > 1

    @property
    def is_of_a_person(self) -> bool:
        return self.who not in ("", "me", "none")

    @property
    def label(self) -> str:
        return _("All") if self.status == "any" else _statuses()[self.status]

    def resolver(self, tenant: TenantContext) -> str | None:
        """Return it as `lists.page` takes it."""
        return {"": None, "me": tenant.user_id, "none": ""}.get(self.who, self.who)

    @property
    def params(self) -> dict[str, str]:
        return {
            "status": self.status,
            "resolver": self.who,
            "name": self.name,
            **self.only.params,
            "sort": self.sort,
        }

    @property
    def sorting(self) -> Order:
        return filters.order_of(self.sort)

    def url(self, **changes: str) -> str:
        """Return the address of the same list with other values of these parameters; "" drops one."""
        return desk_prefix.address("tickets:queue") + filters.query(tuple((self.params | changes).items()))


def tidied(params: Mapping[str, str]) -> str | None:
    """Return the address that the form of filters means, None where the parameters are not the form's. Raises
    Invalid."""
    meant = as_meant(params)
    return None if meant is None else QueueAddress.of(meant).url()


def as_meant(params: Mapping[str, str]) -> dict[str, str] | None:
    """Return the parameters that the form of filters means, None where these are not the form's.

    The two ends of days, and of each custom field that takes a range, become one parameter, days in the right order,
    and empty fields leave no trace.
    """
    if not any(name in params for name in _ENDS):
        return None
    first, last = (params.get(name, "") for name in _ENDS)
    if first and last:
        first, last = sorted((first, last))
    meant = {**params, "created": _range(first, last)}
    for name in {found[1] for found in map(_END_OF_RANGE.match, params) if found}:
        meant[name] = _range(*(params.get(f"{name}{end}", "").strip() for end in ("_from", "_to")))
    return meant


def _range(first: str, last: str) -> str:
    return f"{first}..{last}" if first or last else ""


_UNRESOLVED: Final = gettext_noop("Unresolved")
_ANY: Final = gettext_noop("Any")


def _statuses() -> dict[str, str]:
    """Return what lists call a status and each group of them."""
    return {**{s.value: s.label for s in Status}, "unresolved": locales.said(_UNRESOLVED), "any": locales.said(_ANY)}


def chips(tenant: TenantContext, address: QueueAddress) -> list[dict[str, str]]:
    """Return a chip for each filter: its words, what they mean exactly, and the address without it."""
    return [
        {"label": label, "title": title, "url": address.url(**{name: ""})}
        for name, label, title in _words(tenant, definitions.of(tenant), address.only)
    ]


def _words(tenant: TenantContext, defined: Definitions, only: TicketFilter) -> list[tuple[str, str, str]]:
    words = []
    for of in DEFINED:
        if asked := only.get(of.name):
            told = {"field": in_sentence(of.label), "name": defined.name(of, asked)}
            title = _("Only tickets of the %(field)s %(name)s") % told
            words.append((of.name, f"{told['field']}: {told['name']}", title))
    for name, choice in fields.FILTERS.items():
        if value := only.get(name):
            told = {"field": in_sentence(choice.label), "value": choice.words(value).word}
            words.append((name, f"{told['field']}: {told['value']}", _("Only tickets with %(value)s %(field)s") % told))
    if snoozed := only.get("snoozed"):
        label = _("snoozed") if snoozed == "yes" else _("not snoozed")
        words.append(("snoozed", label, _("Only tickets that are %(state)s") % {"state": label}))
    if state := only.get("sla"):
        told = {"state": in_sentence(_(due_marks.STATES[state]))}
        words.append(("sla", _("targets: %(state)s") % told, _("Only tickets with: %(state)s") % told))
    if tag := only.get("tag"):
        told = {"tag": tag}
        words.append(("tag", _("tag: %(tag)s") % told, _("Only tickets with the tag %(tag)s") % told))
    for name, said in filters.EVENTS.items():
        days: Days | None = only.get(name)
        if days:
            told = {"event": _(_MEANT[name]), "days": in_words(days, tenant.today), "zone": tenant.zone}
            title = _("Only tickets %(event)s %(days)s, %(zone)s") % told
            words.append((name, f"{_(said)} {told['days']}", title))
    for name in only.custom:
        label = f"{defined.label(f'{CUSTOM_PREFIX}{name}')}: {only.get(name)}"
        words.append((name, label, _("Only tickets with %(value)s") % {"value": label}))
    return words


def note(tenant: TenantContext, only: TicketFilter) -> str:
    """Say what has to be known of these filters: a list of the last such events is shorter than all that there were."""
    verbs = [_(_VERBS[name]) for name in only.params if name in _VERBS]
    said = _("Each ticket is listed by the last day it was %(verbs)s, in %(zone)s.")
    return said % {"verbs": _(" or ").join(verbs), "zone": tenant.zone} if verbs else ""


def in_words(days: Days, today: date) -> str:
    """Write "on 20 Nov", "1 to 7 Nov", "from 1 Nov" or "up to 20 Nov"; a year is named where it is not this one."""
    year = today.year
    first, last = (date.fromisoformat(end) if end else None for end in (days.first, days.last))
    if first is None or last is None:
        if last:
            return _("up to %(day)s") % {"day": _day(last, year)}
        return _("from %(day)s") % {"day": _day(first, year)} if first else ""
    if first == last:
        return _("on %(day)s") % {"day": _day(first, year)}
    if (first.year, first.month) == (last.year, last.month) and locales.current().date_form == "words":
        return _("%(day)s to %(last)s") % {"day": first.day, "last": _day(last, year)}
    begin = _day(first, last.year if last.year == first.year else year)
    return _("%(first)s to %(last)s") % {"first": begin, "last": _day(last, year)}


def _day(day: date, year: int) -> str:
    locale = locales.current()
    return locale.short_day(day) if day.year == year else locale.day(day)


def form(
    tenant: TenantContext,
    address: QueueAddress,
    typed: Mapping[str, str] | None = None,
    problem: Invalid | None = None,
) -> dict[str, Any]:
    """Return what the form of filters shows, and in `hidden` what it sends along untouched.

    With a problem: what was typed, and beside its field the sentence that says what is wrong.
    """
    typed = typed or {}
    created: Days | None = address.only.get("created")
    offered = _statuses()
    defined = definitions.of(tenant)
    kept = ["resolver", "name", "resolved", "reopened", "commented", "rated", "sort"]
    kept += [one for one in address.only.custom if one not in defined.by_id]
    return {
        "url": desk_prefix.address("tickets:queue"),
        "place": "#queue",
        "home": "queue-title",
        "hidden": [(name, address.params[name]) for name in kept if address.params.get(name)],
        "statuses": [{"value": v, "label": label, "current": v == address.status} for v, label in offered.items()],
        "choices": [(choice, choice.offered(address.only.get(name) or "")) for name, choice in fields.FILTERS.items()],
        **filter_fields(defined, address.only, typed),
        "snoozed": address.only.get("snoozed") or "",
        "sla": address.only.get("sla") or "",
        "sla_states": {name: _(label) for name, label in due_marks.STATES.items()}
        if policy_versions.latest(tenant)
        else {},
        "tag": typed.get("tag") or address.only.get("tag") or "",
        "created_from": typed.get("created_from") or (created.first if created else ""),
        "created_to": typed.get("created_to") or (created.last if created else ""),
        "problem": {"field": problem.field, "text": problem.message} if problem else None,
    }


def filter_fields(defined: Definitions, only: TicketFilter, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return what the form of filters shows of kinds, groups and custom fields, those that are archived only while in
    use."""
    rows = []
    for one in defined.fields:
        asked: CustomFilter | None = only.get(one.id)
        if one.is_archived and asked is None:
            continue
        value = typed.get(one.id) or (str(asked) if asked else "")
        first, last = ((asked.first, asked.last) if asked else ("", "")) if one.type.has_order else ("", "")
        rows.append(
            {
                "id": one.id,
                "label": one.name,
                "type": one.type.value,
                "value": value,
                "first": typed.get(f"{one.id}_from") or first,
                "last": typed.get(f"{one.id}_to") or last,
                "options": _options(one, value),
            }
        )
    named = [
        {
            "name": of.name,
            "label": of.label,
            "choices": [
                {"value": one.id, "label": one.name, "current": one.id == only.get(of.name)}
                for one in defined.of_field(of)
                if not one.is_archived or one.id == only.get(of.name)
            ],
        }
        for of in DEFINED
    ]
    return {"named": named, "own": rows, "has_own": any(one in only.params for one in defined.by_id)}


def _options(one: CustomField, value: str) -> list[dict[str, Any]]:
    if one.type is FieldType.CHECKBOX:
        labels = {YES: _("Yes"), "no": _("No")}
        return [{"value": word, "label": label, "current": word == value} for word, label in labels.items()]
    kept = [value] if value and value not in one.choices else []
    return [{"value": word, "label": word, "current": word == value} for word in (*one.choices, *kept)]


# --- the list ---


def queue_page(tenant: TenantContext, address: QueueAddress, after: str, first: int = 1) -> dict[str, Any]:
    """Return the page's list, read here, and all that follows from its address. Raises Invalid for a bad cursor or
    person.

    `after` is a cursor, "" for the first page, and `first` the place of the page's first row.
    """
    read_at = clock.stamp()
    page = lists.page(
        tenant,
        status=address.statuses,
        resolver=address.resolver(tenant),
        only=address.only,
        order=address.sorting,
        after=after or None,
        size=bulk.limit(tenant),
    )
    if address.is_of_a_person and page.rows:
        address = replace(address, name=page.rows[0].resolver_name[:NAME_LIMIT])
    first_url = address.url() if after else None
    context = _context(tenant, address, page, first_url, first)
    if not page.rows:
        context["empty"] = _empty(tenant, address, page, first_url)
    if not after:
        context["updates_url"] = _updates_url(address, page, read_at)
        context["live_token"] = page_tokens.token(tenant)
    return context


def refused_page(tenant: TenantContext, params: Mapping[str, str], problem: Invalid) -> dict[str, Any]:
    """Return the page for an address that cannot be understood: what is wrong, what was typed, and the way on."""
    address = QueueAddress.of_what_is_understood(params)
    if problem.field is None:  # a link to a page or to a person
        address = replace(address, who=address.who if address.who in ("me", "none") else "", name="")
    context = _context(tenant, address, NO_PAGE, None)
    context["filter_form"] = form(tenant, address, params, problem)
    context["empty"] = _blank(problem.message, "", [(address.url(), _("Show the list without this filter"))])
    return context


def _context(
    tenant: TenantContext, address: QueueAddress, page: TicketPage, first_url: str | None, first: int = 1
) -> dict[str, Any]:
    rows = _rows(tenant, address, page, first)
    defined, before = definitions.of(tenant), str(max(1, first - bulk.limit(tenant)))
    statuses = {Status(row.status) for row in rows}
    return {
        "list_label": address.label,
        "is_mixed": address.is_mixed,
        "status_tabs": status_tabs(address),
        "who_tabs": who_tabs(address),
        "people_url": _people_url(address),
        "chips": chips(tenant, address),
        "columns": defined.columns,
        "named_columns": [
            (of.name, of.label, {one.id: one.name for one in defined.of_field(of)})
            for of in DEFINED
            if defined.in_use_of(of)
        ],
        "export_params": {name: value for name, value in address.params.items() if value},
        "chips_note": note(tenant, address.only),
        "without_url": address.url(**dict.fromkeys(address.only.params, "")),
        "filter_form": form(tenant, address),
        "tag_url": address.url(tag="") + "&tag=",
        "page": {
            "rows": rows,
            "next_url": address.url(after=page.next, place=str(first + len(rows))) if page.next else None,
            "prev_url": address.url(after=page.previous, place=before) if page.previous else None,
            "first_url": first_url,
            "looked_at": page.looked_at if page.stopped else 0,
            "sorted_among": page.sorted_among,
        },
        "list_url": address.url(),
        "sorting": address.sorting,
        "sorts": sorts(address),
        "headers": {name: _header(address, name) for name in ("updated", "created", "priority", "requester")},
        # What at least one row of the page can become; for the others the change is refused, with the reason.
        "bulk_targets": [
            {"value": s.value, "label": s.label} for s in Status if any(s in MOVES[now] for now in statuses)
        ],
        "bulk_limit": bulk.limit(tenant),
        "all_url": _all_url(address) if page.next or page.previous else "",
        "empty": None,
        "can_write": tenant.is_agent,
    }


def _all_url(address: QueueAddress) -> str:
    """Return where all tickets of the list are changed, also those that the page does not show."""
    asked = urlencode({name: value for name, value in address.params.items() if value})
    return f"{desk_prefix.address('tickets:bulk_edit')}?{asked}"


def _rows(tenant: TenantContext, address: QueueAddress, page: TicketPage, first: int) -> list[ListedTicket]:
    """Return the rows with the list and their places in it in their addresses, for saved_views/presenters.py."""
    seen = first - 1 + len(page.rows)
    total = str(page.total) if page.total is not None else f"{seen}%2B" if page.next else str(seen)
    query = urlencode({name: value for name, value in address.params.items() if value and name != "name"})
    return [
        listed(tenant, item, query=f"?{query}&place={place}&of={total}&at={item.attribute_values['updated_at']}")
        for place, item in enumerate(page.rows, first)
    ]


def first_place(params: Mapping[str, str]) -> int:
    """Return the place of the first row of a page of a list, as its address says it."""
    place = params.get("place", "")
    return int(place) if params.get("after") and PLACE.match(place) else 1


def _updates_url(address: QueueAddress, page: TicketPage, read_at: str) -> str:
    """Return where an open page asks whether tickets of its list have changed since it was read."""
    # In another order the page does not begin with the latest change.
    seen = read_at if address.sort else max((row.attribute_values["updated_at"] for row in page.rows), default=read_at)
    query = urlencode({name: value for name, value in {**address.params, "seen": seen}.items() if value})
    return f"{desk_prefix.address('tickets:updates')}?{query}"


def status_tabs(address: QueueAddress) -> list[dict[str, Any]]:
    """Return a tab for each status and each group of them, in one order whichever is chosen."""
    tabs = [(s.value, s.label, s.value) for s in Status]
    tabs += [(name, _statuses()[name], "") for name in filters.GROUPS]
    return [
        {
            "value": value,
            "label": label,
            "icon": icon,
            "url": address.url(status=value),
            "current": value == address.status,
        }
        for value, label, icon in tabs
    ]


def who_tabs(address: QueueAddress) -> list[dict[str, Any]]:
    """Return whose tickets can be listed, as links: everyone's, one's own, nobody's and the chosen person's."""
    people = [(_("Everyone"), ""), (_("Mine"), "me"), (_("Unassigned"), "none")]
    if address.is_of_a_person:
        people.append((address.name or _("One person"), address.who))
    return [
        {
            "label": label,
            "url": address.url(resolver=who, name=address.name if who == address.who else ""),
            "current": who == address.who,
        }
        for label, who in people
    ]


def sorts(address: QueueAddress) -> list[dict[str, Any]]:
    """Return the orders in which the list can be shown, as links."""
    return [
        {"word": word, "label": order.label, "url": address.url(sort=_word(order)), "current": order is address.sorting}
        for word, order in ORDERS.items()
    ]


def _word(order: Order) -> str:
    return "" if order is LATEST else order.word


def _header(address: QueueAddress, column: str) -> dict[str, str]:
    """Return where the header of a column leads, the order that its list is in turned round, and what it says of it."""
    first = next(order for order in ORDERS.values() if order.column == column)
    other = next(order for order in ORDERS.values() if order.column == column and order is not first)
    now = address.sorting
    direction = "" if now.column != column else "descending" if now.is_descending else "ascending"
    to = other if now is first else first
    return {"url": address.url(sort=_word(to)), "title": to.label, "direction": direction}


def _people_url(address: QueueAddress) -> str:
    """Return where a person is chosen for the same list."""
    query = address.url(resolver="", name="").partition("?")[2]
    return desk_prefix.address("tickets:people") + f"?{query}"


# --- nothing ---


def _empty(tenant: TenantContext, address: QueueAddress, page: TicketPage, first_url: str | None) -> dict[str, Any]:
    """Say why there is no row, and the ways on."""
    if page.stopped:
        return _blank(
            _("No match among the latest %(num)s tickets") % {"num": page.looked_at},
            _("Older tickets may match.") if page.next else "",
            [(address.url(after=page.next or ""), _("Search the next %(num)s") % {"num": lists.READ_LIMIT})]
            if page.next
            else [],
        )
    if first_url:
        return _blank(_("There are no more tickets in this list."), "", [(first_url, _("Back to the latest"))])
    tickets = _("tickets")
    if address.status != "any":
        tickets = _("%(kind)s tickets") % {"kind": in_sentence(_statuses()[address.status])}
    if chosen := chips(tenant, address):
        return _no_match(address, tickets, chosen)
    told = {"tickets": tickets, "name": address.name or _("This person")}
    if address.who:
        titles = {"me": _("You have no %(tickets)s."), "none": _("No %(tickets)s are unassigned.")}
        title = titles.get(address.who, _("%(name)s has no %(tickets)s.")) % told
        return _blank(title, "", [(address.url(resolver="", name=""), _("Show everyone's %(tickets)s") % told)])
    new = [(desk_prefix.address("tickets:new"), _("New ticket"))] if tenant.is_agent else []
    if address.status == Status.OPEN:
        mail = mail_settings.own_address(tenant.slug)
        said = _("No open tickets. Mail to %(address)s becomes one.") if mail else _("No open tickets.")
        return _blank(_("You're all caught up."), said % {"address": mail}, new)
    return _blank(_("No %(tickets)s.") % told, "", new if address.status == "any" else [])


def _no_match(address: QueueAddress, tickets: str, chosen: list[dict[str, str]]) -> dict[str, Any]:
    ways = [(chip["url"], _("Remove “%(filter)s”") % {"filter": chip["label"]}) for chip in chosen]
    if address.status != "any":
        ways.append((address.url(status="any"), _("Search in any status")))
    impossible = not address.only.possible(address.statuses)
    text = _("%(list)s tickets are not resolved.") % {"list": address.label} if impossible else ""
    said = ngettext("No %(tickets)s match this filter.", "No %(tickets)s match these filters.", len(chosen))
    return _blank(said % {"tickets": tickets}, text, ways)


def _blank(title: str, text: str, ways: list[tuple[str, str]]) -> dict[str, Any]:
    return {"title": title, "text": text, "actions": [{"url": url, "label": label} for url, label in ways]}


# --- many tickets at once ---


def selection(states: Sequence[TicketState]) -> list[dict[str, Any]]:
    return [{"number": s.number, "select_value": str(s), "url": ticket_url(s.number)} for s in states]


def refused_change(refused: BulkRefused, *, to: Status, back: str) -> dict[str, Any]:
    """Say what stood in the way of a bulk change, and what can still be changed."""
    return {
        "to": to,
        "refused": [
            {
                "number": refusal.number,
                "title": refusal.title,
                "url": ticket_url(refusal.number) if refusal.title else "",
                "reason": refusal.reason,
            }
            for refusal in refused.refusals
        ],
        "kept": selection(refused.kept),
        "back": back,
    }
