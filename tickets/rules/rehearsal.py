"""Say what a rule would have done to one ticket, event by event. Nothing here reads or writes.

The decisions are the engine's: the same `entered`, `matches`, `planned` and `may_follow` of definition.py. A change
that the rule would have made stays in effect for the later events, until the history itself changes that field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tickets.rules import definition, stored
from tickets.rules.definition import On, Rule, RulePlan, TicketEvent
from tickets.ticket.causes import Cause
from tickets.ticket.fields import BY_NAME, CUSTOM, CUSTOM_PREFIX, TAGS
from tickets.ticket.stored import ActivityItem, SummaryItem
from tickets.time_machine.past_events import PastEvent


@dataclass(frozen=True)
class WouldDo:
    """The effect that a rule would have had at one event. `circle` are the ids of the rules that would have followed
    one another until one of them came again, which the engine refuses; empty where none would."""

    at: str
    on: On
    plan: RulePlan
    circle: tuple[str, ...] = ()


def of_ticket(rule: Rule, events: Iterable[PastEvent], others: Sequence[Rule] = ()) -> Iterator[WouldDo | None]:
    """Yield for each event of a ticket, oldest first, what the rule would have done, None for nothing.

    `others` are the rules that are on. Like the engine, it runs once at most for an event and what follows from it, and
    after the rules that come before it.
    """
    past, made, ran, taken = [*events], _Made(), set[str](), 0
    for place, one in enumerate(past):
        event, cause = definition.entered(one.entry, one.ticket), Cause.parse(one.entry.cause)
        began = _began(cause, one)
        if place >= taken:
            made.forget(one.written)
        is_free = began not in ran and definition.may_follow(cause) and (cause is None or cause.rule_id != rule.id)
        if event is None or not is_free:
            yield None
            continue
        last = place
        for last in _ran_before(rule, event, cause, past, place, others):
            made.forget(past[last].written)
            taken = last + 1
        ticket = made.on(past[last].ticket)
        plan = definition.planned(rule, ticket) if definition.matches(rule, event, ticket) else RulePlan()
        if plan.is_nothing:
            yield None
            continue
        ran.add(began)
        made.note(plan)
        yield WouldDo(one.entry.at, event.on, plan, _circle(rule, _after(ticket, plan), plan, others))


def _began(cause: Cause | None, past: PastEvent) -> str:
    """Return the moment of the event in which all began, as ids of events begin."""
    event = cause.event if cause else stored.event_id(past.written[0].at, "")
    return event.partition("-")[0]


def _ran_before(
    rule: Rule,
    event: TicketEvent,
    cause: Cause | None,
    past: Sequence[PastEvent],
    place: int,
    others: Sequence[Rule],
) -> Iterator[int]:
    """Yield the places of the changes that rules which come before this one made for the event at a place."""
    kinds = {one.id: one.when.on for one in others}
    began, depth = _began(cause, past[place]), cause.depth if cause else 0
    for later in range(place + 1, len(past)):
        if past[later].written is past[place].written:
            continue
        why = Cause.parse(past[later].entry.cause)
        if why is None or _began(why, past[later]) != began or why.depth != depth + 1 or why.rule_id >= rule.id:
            return
        if kinds.get(why.rule_id, event.on) is not event.on:
            return
        yield later


def _after(ticket: SummaryItem, plan: RulePlan) -> SummaryItem:
    made = _Made()
    made.note(plan)
    return made.on(ticket)


def _circle(rule: Rule, ticket: SummaryItem, plan: RulePlan, others: Sequence[Rule]) -> tuple[str, ...]:
    """Return the rules that would follow one another from this plan on, up to the first that would run again."""
    ran, waiting = [rule.id], _events(plan)
    every = [rule, *(one for one in others if one.id != rule.id)]
    while waiting:
        event = waiting.pop(0)
        for one in every:
            if not definition.matches(one, event, ticket):
                continue
            plan = definition.planned(one, ticket)
            if plan.is_nothing or plan.refused:
                continue
            if one.id in ran:
                return (*ran, one.id)
            ran.append(one.id)
            ticket = _after(ticket, plan)
            waiting += _events(plan)
    return ()


def _events(plan: RulePlan) -> list[TicketEvent]:
    """Return the events that a plan causes when it is carried out."""
    what = frozenset(name for name, _, _ in plan.changes)
    return [TicketEvent(On.CHANGED, "", what)] * bool(what) + [TicketEvent(On.ANSWERED)] * bool(plan.answer)


class _Made:
    """The changes that the rule would have made so far and the history has not changed since: by the names of changes,
    each tag by itself."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def note(self, plan: RulePlan) -> None:
        self._values.update(part for change in plan.changes for part in parts(*change))

    def forget(self, entries: Iterable[ActivityItem]) -> None:
        """Leave to the history what it changes itself."""
        for change in (change for entry in entries for change in entry.changes):
            for name, _ in parts(change.field, change.before, change.after):
                self._values.pop(name, None)

    def on(self, ticket: SummaryItem) -> SummaryItem:
        """Return a ticket of the history with these changes."""
        if not self._values:
            return ticket
        found = SummaryItem.from_raw_data(ticket.serialize())
        tags, own = list(ticket.tags), dict(ticket.custom)
        for name, text in self._values.items():
            if name.startswith(TAG):
                tags = [tag for tag in tags if tag != name.removeprefix(TAG)] + ([text] if text else [])
            elif name.startswith(CUSTOM_PREFIX):
                own[name.removeprefix(CUSTOM_PREFIX)] = text
            else:
                setattr(found, name, BY_NAME[name].from_text(text))
        found.tags, found.custom = tags, CUSTOM.stored(own)
        return found


TAG: Final = "tag "


def parts(name: str, before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield a change with its new text, of tags each by itself, which has no text where it is removed."""
    if name != TAGS.name:
        yield name, after
        return
    old, new = TAGS.from_text(before), TAGS.from_text(after)
    yield from ((f"{TAG}{tag}", "") for tag in old if tag not in new)
    yield from ((f"{TAG}{tag}", tag) for tag in new if tag not in old)
