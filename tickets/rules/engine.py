"""Carry out the rules of a desk for one event: the destination "rules" of the outbox.

A rule changes a ticket by one transaction: the change, its entry in the history, the row that tells of it, and
the run. The run's key is made of the rule, of the event in which all began, and of the ticket. So an event that is
delivered again does nothing twice, and what follows from a rule never brings the same rule back to the same ticket.

Rules run in their order, each on the ticket as the one before has left it. Their comments and mails are deliveries of
their own, which follow from the run: answering.py.

Costs of an event: three reads in two round trips, of the desk, its rules and the ticket; for each rule that does
something the counts of its ticket and of the hour and one transaction, and for an assignee one read.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import Event, publish
from delivery.outbox.stored import row_parts
from portal import clock
from portal.dynamo.client import alongside
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import Invalid, NotFound, PortalError, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.desk.changing import Present, Revision, Wishes
from tickets.notices import telling
from tickets.rules import definition, rule_changes, stored
from tickets.rules.definition import ASSIGNEE_WORD, On, Rule, RulePlan, TicketEvent
from tickets.rules.stored import RunCountItem, RunItem
from tickets.ticket import ticket_events
from tickets.ticket.causes import Cause
from tickets.ticket.fields import ASSIGNEE
from tickets.ticket.stored import SummaryItem

RUNS_PER_HOUR: Final = 10_000  # of one desk; what is above waits for the next hour
RUNS_ON_TICKET: Final = 30  # of one rule on one ticket in an hour; what is above is left out
_CIRCLE: Final = gettext_noop(  # pages translate what is stored, so the number is in the text
    "This rule has run 30 times on this ticket in this hour, and rests until the next one. "
    "Another system may answer it in a circle."
)
_ATTEMPTS: Final = 6
_RUN: Final = "run"  # the name of the run in a transaction


class _TooMany(PortalError):
    """The desk has used up the runs of this hour."""


def deliver(work: Work) -> Outcome:
    """Carry out the rules that are for the event of a row. Raises what the database raises; it is then done again."""
    cause = Cause.parse(work.row.cause)
    found = event_of([json.loads(text) for text in work.row.events], work.index)
    if found is None or not definition.may_follow(cause):
        return Outcome("answered", note="No rule is for this event.")
    tenant = telling.desk_at_work(work.tenant_id)
    if tenant is None:
        return Outcome("answered", note="No rule runs in this desk.")
    event, number = found
    try:
        rules, summary = alongside(partial(rule_changes.active, tenant), aside=partial(changing.read, tenant, number))
    except NotFound:
        return Outcome("answered", note="The ticket is gone.")
    if event.on is On.CHANGED and definition.is_of_creation(work.row.timestamp, summary):
        return Outcome("answered", note="Who a new ticket is assigned to belongs to its creation.")
    began = cause.event if cause else stored.event_id(work.row.timestamp, row_parts(work.row.event_id)[1])
    ran = 0
    for rule in rules:
        run = _Run(tenant, rule, event, Cause(rule.id, rule.version, began, (cause.depth if cause else 0) + 1))
        try:
            summary, did = run.carry_out(summary)
        except _TooMany:
            return Outcome("failed", _to_next_hour(), "The desk has used up its runs of rules for this hour.")
        ran += did
    return Outcome("answered", note=f"{ran} did something." if ran else "No rule had anything to do.")


def event_of(events: list[Any], index: int) -> tuple[TicketEvent, int] | None:
    """Return what the event at this place of a row is for rules, with the number of its ticket. A row tells of one
    change by several events: they are one event for rules, at the place of the first."""
    mine = definition.told(events[index])
    if mine is None:
        return None
    number = events[index]["data"]["number"]
    what = set[str]()
    for place, other in enumerate(events):
        same = definition.told(other)
        if same is None or same.on is not mine.on or other["data"]["number"] != number:
            continue
        if place < index:
            return None
        what |= same.what
    return replace(mine, what=frozenset(what)), int(number)


def _to_next_hour() -> float:
    now = clock.now()
    return (now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1) - now).total_seconds()


@dataclass
class _Run:
    """One rule at work for one event on one ticket."""

    tenant: TenantContext
    rule: Rule
    event: TicketEvent
    cause: Cause
    place: int = 0  # among its runs on the ticket in this hour, once it is counted

    def carry_out(self, summary: SummaryItem) -> tuple[SummaryItem, bool]:
        """Do what the rule does with this ticket, once. Return the ticket as it is then, and whether anything was done.
        A ticket that others change meanwhile is read again, and asked again whether the rule is for it."""
        number, known = int(summary.number), [summary]

        def attempt() -> tuple[SummaryItem, bool]:
            ticket = known.pop() if known else changing.read(self.tenant, number)
            if not definition.matches(self.rule, self.event, ticket):
                return ticket, False
            plan = definition.planned(self.rule, ticket)
            if plan.is_nothing:
                return ticket, False
            self._count(number)
            if self.place > RUNS_ON_TICKET:
                if self.place > RUNS_ON_TICKET + 1:
                    return ticket, False
                plan = RulePlan(refused=_CIRCLE)
            transaction, after = self._put_together(plan, ticket)
            try:
                self.tenant.repository.transact(transaction)
            except TransactionRefused as refused:
                made = refused.reason(_RUN)
                if made is None or made.item is None:
                    raise
                return changing.read(self.tenant, number), False  # it ran before
            return after, True

        return retrying(attempt, again=lambda error: isinstance(error, TransactionRefused), attempts=_ATTEMPTS)

    def _count(self, number: int) -> None:
        """Count this run once, on its ticket and in the hour of its desk; raise _TooMany where that is full. A circle
        through another system uses up no runs of other tickets."""
        if self.place:
            return
        now = clock.stamp()
        place = self._counted(stored.hour(now, self.rule.id, number))
        if place <= RUNS_ON_TICKET and self._counted(stored.hour(now)) > RUNS_PER_HOUR:
            raise _TooMany("There were too many runs.")
        self.place = place

    def _counted(self, sort: str) -> int:
        item = RunCountItem(self.tenant.repository.key(stored.runs), sort)
        expires_at = RunCountItem.expires_at.set(int(time.time()) + 86400)
        return int(self.tenant.repository.update(item, [RunCountItem.runs.add(1), expires_at]).runs)

    def _put_together(self, plan: RulePlan, ticket: SummaryItem) -> tuple[Transaction, SummaryItem]:
        """Return the transaction, and the ticket as it makes it. A change that the ticket or the desk does not
        allow leaves a run that says so."""
        if not plan.refused:
            try:
                return self._written(plan, ticket)
            except Invalid as error:
                plan = RulePlan(refused=error.message)
        transaction = Transaction()
        self._put_run(transaction, ticket, at=clock.stamp(), why=plan.refused)
        return transaction, ticket

    def _written(self, plan: RulePlan, ticket: SummaryItem) -> tuple[Transaction, SummaryItem]:
        rule, transaction, after, told = self.rule, Transaction(), ticket, list[Event]()
        at, entry = clock.stamp(), dict[str, Any]()
        acting = replace(self.tenant, user_name=f"Rule “{rule.name}”", cause=str(self.cause))
        if plan.changes:
            wishes = Wishes(**plan.edit.values)
            who = wishes.values.get(ASSIGNEE.name)
            name = changing.resolver_name(acting, who) if who else ""
            if got := changing.given_by_group(acting, wishes, [ticket]).get(int(ticket.number)):
                wishes, name = wishes.also(**{ASSIGNEE.name: got.id}), got.name
            present, told = Revision(acting, wishes, Present(ticket, None, name)).write(transaction)
            after, made = present.summary, present.changed
            if made is not None:
                at, entry = made.at, {"entry": made.entry_id, "made": made.version}
        to = [plan.webhook] if plan.webhook else []
        to += [ticket_events.RULE_ANSWER] if plan.answer else []
        mail_to = after.resolver if rule.then.mail_to == ASSIGNEE_WORD else plan.mail_to  # a group may have assigned it
        to += [ticket_events.RULE_MAIL] if mail_to else []
        ran = ticket_events.rule_ran(after, rule=(rule.id, rule.name, rule.version), to=tuple(to))
        publish(acting, transaction, *told, ran, subject=ticket_events.subject(int(ticket.number)), at=at)
        self._put_run(transaction, ticket, at=at, **entry)
        return transaction, after

    def _put_run(self, transaction: Transaction, ticket: SummaryItem, **values: Any) -> None:
        rule, number = self.rule, int(ticket.number)
        run_id = self.cause.run_id(number)
        run = RunItem(
            self.tenant.repository.key(stored.runs),
            stored.run(rule.id, run_id),
            rule_id=rule.id,
            run_id=run_id,
            version=rule.version,
            number=number,
            event=self.event.on.value,
            cause=str(self.cause),
            expires_at=int(time.time()) + stored.RUN_SECONDS,
            **values,
        )
        transaction.put(run, name=_RUN, condition=RunItem.pk.does_not_exist())
