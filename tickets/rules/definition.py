"""Say what a rule is, whether it is for an event of a ticket, and what it would change. Nothing here reads anything.

The engine and the rehearsal ask the same two functions: `matches` and `planned`. The engine makes a `TicketEvent` of
the events of the outbox, the rehearsal of the entries of a ticket's history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Self

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.errors import Invalid
from portal.schema import keys
from portal.web.locales import declare_stored
from tickets.desk import filters
from tickets.desk.filters import TicketFilter
from tickets.desk.many import TicketEdit
from tickets.ticket import fields, stored, ticket_events
from tickets.ticket.causes import Cause
from tickets.ticket.fields import (
    ASSIGNEE,
    BY_NAME,
    CUSTOM,
    DESCRIPTION,
    MOVES,
    RATING,
    STATUS,
    TAGS,
    TITLE,
    FieldChange,
    Status,
)
from tickets.ticket.stored import ActivityItem, SummaryItem

# The fields that a rule can set. Tags it adds and removes.
SETTABLE: Final = tuple(
    one for one in fields.FIELDS if one not in (TITLE, DESCRIPTION, TAGS) and one not in fields.FIXED
)
# The moments of a ticket that come, with the types of their events.
DUE: Final = {"due": "ticket.due", "due_soon": "ticket.due_soon", "breached": "ticket.breached"}
_NOTHING: Final = TicketEdit()
ASSIGNEE_WORD: Final = "assignee"  # stands for the member who has the ticket, as the recipient of a mail
OPENED: Final = "opened the ticket"  # the verb of the first entry of a history


class On(StrEnum):
    """The kinds of events for which rules can be."""

    CREATED = "created"
    CHANGED = "changed"
    ANSWERED = "answered"
    RATED = "rated"
    DUE = "due"


class By(StrEnum):
    """The sides that can have caused an event. A rule is on neither."""

    ANYBODY = ""
    DESK = "desk"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class TicketEvent:
    """Something that happened to a ticket. `by` is the id of who did it, "" for a rule or Pooldesk itself. `what` names
    the fields that were changed, as the history does, or the moment of DUE that has come."""

    on: On
    by: str = ""
    what: frozenset[str] = frozenset()


# The types of events in the outbox of which events for rules are made.
TYPES: Final[Mapping[On, tuple[str, ...]]] = {
    On.CREATED: (ticket_events.CREATED.name,),
    On.CHANGED: (
        ticket_events.CHANGED.name,
        ticket_events.STATUS_CHANGED.name,
        ticket_events.ASSIGNED.name,
    ),
    On.ANSWERED: (ticket_events.COMMENTED.name,),
    On.RATED: (ticket_events.CHANGED.name,),
    On.DUE: tuple(DUE.values()),
}
MOST_DEPTH: Final = 5  # runs that follow from each other


def told(event: Mapping[str, Any]) -> TicketEvent | None:
    """Return what an event of the outbox (type, sequence and data) is for rules; None for one that no rule is for."""
    kind, data = event["type"], event["data"]
    if not any(kind in kinds for kinds in TYPES.values()):
        return None  # a row tells of more, with data of another form
    by = (data.get("by") or {}).get("id") or ""
    if kind == ticket_events.CREATED.name:
        return TicketEvent(On.CREATED, by)
    if kind == ticket_events.COMMENTED.name:
        return TicketEvent(On.ANSWERED, by)
    if kind in DUE.values():
        return TicketEvent(On.DUE, by, frozenset(name for name, of in DUE.items() if of == kind))
    whole = {ticket_events.STATUS_CHANGED.name: STATUS.name, ticket_events.ASSIGNED.name: ASSIGNEE.name}
    return _changed(by, [whole[kind]] if kind in whole else [change["field"] for change in data["changes"]])


def entered(entry: ActivityItem, ticket: SummaryItem) -> TicketEvent | None:
    """Return what an entry of a ticket's history is for rules; None for a note, for one that changes nothing, and for
    the assignment of a new ticket, which belongs to its creation."""
    if entry.kind == "comment":
        return TicketEvent(On.ANSWERED, entry.author)
    if entry.kind == "event" and entry.verb == OPENED:
        return TicketEvent(On.CREATED, entry.author)
    if not entry.changes or is_of_creation(entry.at, ticket):
        return None
    return _changed(entry.author, [change.field for change in entry.changes])


def is_of_creation(at: str, ticket: SummaryItem) -> bool:
    """Tell whether a change at this moment is part of the ticket's creation."""
    return at <= clock.stamp(clock.parse(ticket.created_at), offset=1)


def _changed(by: str, names: Iterable[str]) -> TicketEvent:
    what = frozenset(names)
    return TicketEvent(On.RATED if RATING.name in what else On.CHANGED, by, what)


@dataclass(frozen=True)
class When:
    """The events for which a rule is: of one kind, by one side, of one field or moment; "" for any."""

    on: On
    by: By = By.ANYBODY
    what: str = ""

    def takes(self, event: TicketEvent) -> bool:
        is_theirs = not self.by or (bool(event.by) and stored.is_requester(event.by) == (self.by is By.OUTSIDE))
        return event.on is self.on and is_theirs and (not self.what or self.what in event.what)


@dataclass(frozen=True)
class Only:
    """The tickets for which a rule is: those of a list, by the parameters of its address."""

    params: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, params: Mapping[str, str]) -> Self:
        """Read the parameters of a list, in which a missing status stands for any. Raises Invalid with the field."""
        status, who = params.get("status") or "any", params.get("resolver") or ""
        filters.statuses(status)
        if who == "me":
            raise Invalid(_("A rule is nobody's own: choose a member, or nobody."), field="resolver")
        named = {"status": status} if status != "any" else {}
        return cls(named | ({"resolver": who} if who else {}) | TicketFilter.parse(params).params)

    def takes(self, ticket: SummaryItem) -> bool:
        statuses, resolver, filter_ = self._parsed
        return ticket.status in statuses and resolver in (None, ticket.resolver) and filter_.matches(ticket)

    @cached_property
    def _parsed(self) -> tuple[tuple[Status, ...], str | None, TicketFilter]:
        who = self.params.get("resolver")
        filter_ = TicketFilter.parse(self.params)
        return filters.statuses(self.params.get("status", "any")), "" if who == "none" else who, filter_


@dataclass(frozen=True)
class Then:
    """The actions of a rule. `answer` is the id of a shared ready answer, which becomes a public comment; `webhook` the
    id of an endpoint, which is told of the run; `mail_to` a member's id or "assignee", who gets `mail_text`."""

    edit: TicketEdit = _NOTHING
    answer: str = ""
    webhook: str = ""
    mail_to: str = ""
    mail_text: str = ""

    @property
    def is_nothing(self) -> bool:
        edit = self.edit
        changes = edit.values or edit.add_tags or edit.remove_tags
        return not (changes or self.answer or self.webhook or self.mail_to)


@dataclass(frozen=True)
class Rule:
    """A rule in one version. Only one that `is_on` runs."""

    id: str
    version: int
    name: str
    is_on: bool
    when: When
    only: Only
    then: Then


# --- the two questions ---


@dataclass(frozen=True)
class RulePlan:
    """Hold what a rule does with one ticket as it is. `edit` is what remains of its changes, with `changes` as the
    history would tell them, but with the assignee's id; `refused` says why none of it can be done, or is ""."""

    edit: TicketEdit = _NOTHING
    changes: tuple[FieldChange, ...] = ()
    answer: str = ""
    webhook: str = ""
    mail_to: str = ""
    refused: str = ""

    @property
    def is_nothing(self) -> bool:
        return not (self.changes or self.answer or self.webhook or self.mail_to or self.refused)


def may_follow(cause: Cause | None) -> bool:
    """Tell whether rules run for an event with this cause. Each runs at most once for the event in which all began, so
    no two can run in circles; the depth bounds how long what follows from one event goes on."""
    return cause is None or cause.depth < MOST_DEPTH


def matches(rule: Rule, event: TicketEvent, ticket: SummaryItem) -> bool:
    """Tell whether a rule, on or off, is for this event of this ticket. None is for a ticket that was merged into
    another one, or is spam."""
    return rule.when.takes(event) and not ticket.is_aside and rule.only.takes(ticket)


def planned(rule: Rule, ticket: SummaryItem) -> RulePlan:
    then = rule.then
    try:
        wished = then.edit.wishes(ticket).cleaned().values
    except Invalid as error:
        return RulePlan(refused=error.message)
    changes: list[FieldChange] = []
    kept: dict[str, Any] = {}
    for name, wanted in wished.items():
        made = [one for one in BY_NAME[name].changes(getattr(ticket, name), wanted) if one[1] != one[2]]
        changes += made
        if made:
            kept[name] = wanted
    to = kept.get(STATUS.name)
    if to is not None and to not in MOVES[Status(ticket.status)]:
        return RulePlan(refused=_STUCK % {"status": ticket.status, "to": to})
    mail_to = kept.get(ASSIGNEE.name, ticket.resolver) if then.mail_to == ASSIGNEE_WORD else then.mail_to
    return RulePlan(TicketEdit(kept), tuple(changes), then.answer, then.webhook, mail_to)


# --- as JSON ---


def dumped(rule: Rule) -> str:
    """Return when, if and then of a rule as its item stores them."""
    return json.dumps(shown(rule), ensure_ascii=False, separators=(",", ":"))


def shown(rule: Rule) -> dict[str, Any]:
    """Return when, if and then of a rule for JSON, as the API shows them."""
    when, then = rule.when, rule.then
    values = {name: BY_NAME[name].dumped(value) for name, value in then.edit.values.items()}
    return {
        "when": {"event": when.on.value, "by": when.by.value, "what": when.what},
        "if": dict(rule.only.params),
        "then": {
            "set": values,
            "add_tags": [*then.edit.add_tags],
            "remove_tags": [*then.edit.remove_tags],
            "answer": then.answer,
            "webhook": then.webhook,
            "mail": {"to": then.mail_to, "text": then.mail_text} if then.mail_to else None,
        },
    }


def loaded(text: str, *, rule_id: str = "", version: int = 0, name: str = "", is_on: bool = False) -> Rule:
    """Return the rule that `dumped` made this of. Raises Invalid."""
    return read(json.loads(text), Rule(rule_id, version, name, is_on, When(On.CREATED), Only(), Then()))


def read(given: Mapping[str, Any], rule: Rule) -> Rule:
    """Return a rule with when, if and then as `shown` has them; a part that is not given stays. Raises Invalid with the
    field."""
    if (when := given.get("when")) is not None:
        rule = replace(rule, when=_when(when))
    if (only := given.get("if")) is not None:
        rule = replace(rule, only=Only.parse(only))
    if (then := given.get("then")) is not None:
        rule = replace(rule, then=_then(then))
    return rule


_STUCK: Final = declare_stored(gettext_noop("A %(status)s ticket cannot become %(to)s."))  # stored in English
_ANY: Final = gettext_noop("Choose any: only for a change a field can be named, and only for a deadline a moment.")
_WHATS: Final = dict.fromkeys(On, _ANY) | {
    On.CHANGED: gettext_noop("Choose a field that can be changed, or any."),
    On.DUE: gettext_noop("Choose a moment (due, due_soon, breached), or any."),
}


def _when(given: Mapping[str, Any]) -> When:
    on, by, what = given.get("event") or "", given.get("by") or "", given.get("what") or ""
    if on not in [*On]:
        raise Invalid(_("Choose an event: %(events)s.") % {"events": ", ".join(On)}, field="event")
    if by not in [*By]:
        raise Invalid(_("Choose who caused the event: anybody, the desk or somebody outside."), field="by")
    if what and not _is_what(On(on), what):
        raise Invalid(_(_WHATS[On(on)]), field="what")
    return When(On(on), By(by), what)


def _is_what(on: On, what: str) -> bool:
    if on is On.CHANGED:
        return fields.of_change(what) not in (None, RATING) or what == fields.REQUESTER
    return on is On.DUE and what in DUE


def _then(given: Mapping[str, Any]) -> Then:
    values, mail = given.get("set") or {}, given.get("mail") or {}
    if mail.get("text") and not mail.get("to"):
        raise Invalid(_("Choose who gets this mail, or remove its text."), field="mail")
    settable = [one.name for one in SETTABLE]
    if unknown := [name for name in values if name not in settable]:
        raise Invalid(_("A rule cannot set “%(name)s”.") % {"name": str(unknown[0])[:40]}, field="set")
    for name, value in values.items():
        if not isinstance(value, dict if name == CUSTOM.name else str):
            raise Invalid(_("This is no value of such a field."), field=name)
    tags = {name: _texts(given.get(name) or ()) for name in ("add_tags", "remove_tags")}
    if not keys.USER_ID.match(values.get(ASSIGNEE.name) or "0" * 32):
        raise Invalid(_("Choose a member, or nobody."), field="resolver")
    edit = TicketEdit.of(values, **tags) if values or any(tags.values()) else _NOTHING
    return Then(
        edit,
        answer=str(given.get("answer") or ""),
        webhook=str(given.get("webhook") or ""),
        mail_to=str(mail.get("to") or ""),
        mail_text=str(mail.get("text") or ""),
    )


def _texts(given: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(one) for one in given)
