"""Keep the clocks of a ticket with each step of its history, and tell what was missed when its moment has come.

A step is an answer, a question, or a change of what the targets depend on. Its entry of the history names the version
of the policy that held and the number of the step, and its transaction writes the state of the clocks and the moment of
what comes next. So the history alone says again what the state is: `replayed` computes it, for receipts and for the
command that checks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.outbox.publisher import Event, publish
from delivery.timers import due
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Condition, Transaction
from portal.errors import TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.sla import clocks, policy_versions
from tickets.sla.clocks import ANSWER, QUESTION, Clocks, Miss, Step
from tickets.sla.policy import Facts
from tickets.ticket import due_marks, stored, ticket_events
from tickets.ticket.due_marks import FIRST, NEXT, SOLUTION, DueMarks
from tickets.ticket.fields import GROUP, KIND, MERGED_INTO, PRIORITY, REQUESTER, SNOOZED, SPAM, STATUS, Status
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, SummaryItem

KIND_OF_WORK: Final = "sla"  # in the due index
# As histories keep them; pages translate them.
_VERBS: Final = {
    FIRST: gettext_noop("noted that this was not in time: first answer"),
    NEXT: gettext_noop("noted that this was not in time: next answer"),
    SOLUTION: gettext_noop("noted that this was not in time: solution"),
}
_ASIDE: Final = (MERGED_INTO, SPAM)
_FOLLOWED: Final = (PRIORITY.name, GROUP.name, KIND.name, STATUS.name, REQUESTER, *_ASIDE)
_ATTEMPTS: Final = 4
MOST_RECEIPTS: Final = 40  # that a transaction puts, and deletes


@dataclass
class _Standing:
    """Hold what targets depend on, as of a moment of the history."""

    values: dict[str, str]

    @classmethod
    def of(cls, summary: SummaryItem) -> _Standing:
        names = (PRIORITY.name, GROUP.name, KIND.name, STATUS.name, REQUESTER)
        return cls({name: getattr(summary, name) for name in names} | dict.fromkeys(_ASIDE, ""))

    @classmethod
    def at_first(cls, summary: SummaryItem, entries: Iterable[ActivityItem]) -> _Standing:
        """Return it for the moment before all of these entries, which are in order."""
        found, known = cls.of(summary), set[str]()
        for entry in entries:
            for change in entry.changes:
                if change.field in _FOLLOWED and change.field not in known:
                    known.add(change.field)
                    before = entry.former_requester if change.field == REQUESTER else change.before
                    found.values[change.field] = before or ""
        return found

    @property
    def facts(self) -> Facts:
        return self.values[PRIORITY.name], self.values[GROUP.name], self.values[KIND.name]

    def step(self, at: str, version: int, said: str = "") -> Step:
        runs = self.values[STATUS.name] == Status.OPEN and not any(self.values[name] for name in _ASIDE)
        return Step(due_marks.seconds(at), version, self.facts, runs, said)

    def take(self, entry: ActivityItem, requester: str = "") -> str | None:
        """Take over what an entry changes. Return ANSWER, QUESTION or "", and None where it is no step. `requester` is
        the new one's id where the entry does not know it."""
        if entry.kind == "comment":
            return self._said(entry.author)
        changed = [change for change in entry.changes if change.field in _FOLLOWED]
        for change in changed:
            self.values[change.field] = requester if change.field == REQUESTER else change.after
        return "" if changed else None

    def _said(self, author: str) -> str | None:
        """Tell answers from questions as commenting does: a member or a key answers, and nobody who asks."""
        if stored.is_requester(author) or (author and author == self.values[REQUESTER]):
            return QUESTION
        return ANSWER if author else None


# --- while a ticket is changed ---


def start(tenant: TenantContext, transaction: Transaction, summary: SummaryItem) -> None:
    """Let the clocks of a new ticket run, where its desk has targets."""
    if version := policy_versions.current(tenant):
        held = clocks.begin(_Standing.of(summary).step(summary.created_at, version), policy_versions.of(tenant))
        summary.sla, summary.due = held.dump(), str(held.marks(DueMarks())) or None
        _wait(transaction, tenant, int(summary.number), held.next_moment)


def follow(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem | None,
    entries: Sequence[ActivityItem],
    requester: str = "",
    stored_values: dict[str, str | None] | None = None,
) -> dict[str, str | None]:
    """Take the steps that these new entries are, and return what the summary stores then: nothing where clocks and
    snooze stay as they are. `requester` is the id of a new one. The `stored_values` are told the same."""
    if summary is None:
        return {}
    values = _followed(tenant, transaction, summary, entries, requester) if summary.sla else {}
    for text in (change.after for entry in entries for change in entry.changes or () if change.field == SNOOZED):
        marks = replace(DueMarks.read(values.get("due", summary.due)), snoozed=due_marks.snooze_until(text))
        values["due"] = str(marks) or None
    if stored_values is not None:
        stored_values.update(values)
    return values


def _followed(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem,
    entries: Sequence[ActivityItem],
    requester: str,
) -> dict[str, str | None]:
    before, standing = Clocks.load(summary.sla), _Standing.of(summary)
    held = before
    for name in _ASIDE:
        standing.values[name] = str(getattr(summary, {SPAM: "spam_at"}.get(name, name)) or "")
    for entry in entries:
        if (said := standing.take(entry, requester)) is not None:
            step = standing.step(entry.at, policy_versions.latest(tenant) or held.version, said)
            held = clocks.follow(held, step, policy_versions.of(tenant))
            entry.sla = f"{held.version} {held.steps}"
    if held is before:
        return {}
    _wait(transaction, tenant, int(summary.number), _moment_after(before, held))
    return {"sla": held.dump(), "due": str(held.marks(DueMarks.read(summary.due))) or None}


def _moment_after(before: Clocks, held: Clocks) -> int:
    """Return the moment that has to be waited for now, 0 where it is waited for already, or nothing is.

    A target missed by the step itself is told of at once, and so is one that was told of too early by a wrong clock.
    """
    early = any(held.at < clock.due <= before.as_of for clock in before.clocks.values())
    if early or any(clock.due == held.at for clock in held.clocks.values()):
        return held.at
    return held.next_moment if held.next_moment != before.next_moment else 0


def _wait(transaction: Transaction, tenant: TenantContext, number: int, moment: int) -> None:
    if moment:
        at = due_marks.stamp(moment)
        due.put(transaction, tenant, at, KIND_OF_WORK, ticket_events.subject(number), moment)


def restored(tenant: TenantContext, transaction: Transaction, number: int, sla: str | None) -> None:
    """Wait for what clocks that a ticket is given back are to tell next."""
    if sla:
        _wait(transaction, tenant, number, Clocks.load(sla).next_moment)


# --- the history ---


@dataclass(frozen=True)
class Replayed:
    """A ticket with clocks, as its history says: the clocks after each step, and the facts of that step."""

    summary: SummaryItem
    passed: Sequence[Clocks]
    facts: Sequence[Facts]
    receipts: dict[Miss, ActivityItem]  # those that are stored

    @property
    def stored(self) -> Clocks:
        return Clocks.load(self.summary.sla)

    def receipt(self, tenant: TenantContext, miss: Miss, place: int) -> str:
        """Return the receipt of what was missed, as JSON."""
        told = clocks.receipt(miss, place, self.passed, self.facts[place], policy_versions.of(tenant))
        return json.dumps(told, separators=(",", ":"))


def replayed(tenant: TenantContext, number: int) -> Replayed | None:
    """Compute the clocks of a ticket from its whole history: one consistent Query. None for one without clocks."""
    items = [*_items(tenant, number)]
    summary = next((item for item in items if isinstance(item, SummaryItem)), None)
    if summary is None or not summary.sla:
        return None
    entries = [item for item in items if isinstance(item, ActivityItem)]
    return Replayed(summary, *_passed(tenant, summary, entries), _receipts(entries))


def _items(tenant: TenantContext, number: int) -> Iterator[Any]:
    start: Any = None
    while True:
        page = tenant.repository.query(TICKET_ITEMS, stored.ticket, number, consistent=True, start=start)
        yield from page.items
        start = page.last_key
        if start is None:
            return


def _passed(
    tenant: TenantContext, summary: SummaryItem, entries: Iterable[ActivityItem]
) -> tuple[list[Clocks], list[Facts]]:
    steps = sorted((entry for entry in entries if entry.sla), key=lambda entry: _numbers(entry)[1])
    requesters = [e.former_requester for e in steps if e.former_requester is not None] + [summary.requester]
    standing = _Standing.at_first(summary, steps)
    taken = [standing.step(summary.created_at, Clocks.load(summary.sla).first_version)]
    for entry in steps:
        if entry.former_requester is not None:
            requesters.pop(0)
        said = standing.take(entry, requesters[0])
        taken.append(standing.step(entry.at, _numbers(entry)[0], said or ""))
    return clocks.trail(taken, policy_versions.of(tenant)), [step.facts for step in taken]


def _numbers(entry: ActivityItem) -> tuple[int, int]:
    version, _, number = entry.sla.partition(" ")
    return int(version), int(number)


def _receipts(entries: Iterable[ActivityItem]) -> dict[Miss, ActivityItem]:
    told = ((json.loads(entry.receipt), entry) for entry in entries if entry.receipt)
    return {Miss(receipt["target"], receipt["due"]): entry for receipt, entry in told}


# --- when a moment has come ---


def tell(tenant: TenantContext, entity: str, version: str, at: datetime) -> None:
    """Store what was missed by this moment, with a receipt for each target in the history, and tell who is concerned.

    Called again, or late, it changes nothing more: receipts have keys that follow from what was missed. A receipt that
    was written too early, by a clock that was wrong, is taken out. Where there are more than MOST_RECEIPTS, the rest
    waits for the next call.
    """
    number, moment = int(entity.rpartition("/")[2]), int(at.timestamp())
    again = partial(_tell, tenant, number, moment)
    retrying(again, again=lambda error: isinstance(error, TransactionRefused), attempts=_ATTEMPTS)


def _tell(tenant: TenantContext, number: int, moment: int) -> None:
    found = replayed(tenant, number)
    if found is None:
        return
    before = found.stored
    held = replace(found.passed[-1], told=before.told)
    held = held.known(max(moment, before.as_of if before.steps == held.steps else 0))
    missed = clocks.misses(found.passed, held.as_of)
    late = [miss for miss in missed if miss not in found.receipts]
    early = [entry for miss, entry in found.receipts.items() if miss not in missed]
    transaction, events = Transaction(), list[Event]()
    for miss in late[:MOST_RECEIPTS]:
        transaction.put(_entry(tenant, found, miss, missed[miss]))
        events.append(ticket_events.breached(number, target=miss.target, due_at=due_marks.stamp(miss.due)))
    for entry in early[:MOST_RECEIPTS]:
        transaction.delete(ActivityItem(entry.pk, entry.sk))
    is_all = max(len(late), len(early)) <= MOST_RECEIPTS
    for name, moment_due in sorted(held.told.items() - before.told.items()):
        events.append(ticket_events.due_soon(number, target=name, due_at=due_marks.stamp(moment_due)))
    marks = str(held.marks(DueMarks.read(found.summary.due))) or None
    if not len(transaction) and not events and marks == found.summary.due and held.next_moment == before.next_moment:
        return
    _wait(transaction, tenant, number, held.next_moment if is_all else moment)
    actions: list[Action] = [
        SummaryItem.sla.set(held.dump()),
        SummaryItem.due.set(marks) if marks else SummaryItem.due.remove(),
    ]
    condition: Condition = (SummaryItem.sla == found.summary.sla) & due_marks.unchanged(found.summary)
    transaction.update(SummaryItem(found.summary.pk, stored.SUMMARY), actions, condition=condition)
    if not found.summary.is_aside:
        publish(tenant, transaction, *events, subject=ticket_events.subject(number), at=due_marks.stamp(moment))
    tenant.repository.transact(transaction)


def _entry(tenant: TenantContext, found: Replayed, miss: Miss, place: int) -> ActivityItem:
    at = due_marks.stamp(miss.due)
    return ActivityItem(
        found.summary.pk,
        stored.activity(at, f"sla{miss.target}"),
        kind="event",
        at=at,
        author_name=tenant.author_name,
        verb=_VERBS[miss.target],
        receipt=found.receipt(tenant, miss, place),
        expires_at=found.summary.expires_at,
    )


# --- checking ---


@dataclass(frozen=True)
class TicketCheck:
    """Receipts of a ticket as its history gives them, and what is stored otherwise, as sentences."""

    receipts: list[str]
    faults: list[str]


def check(tenant: TenantContext, number: int) -> TicketCheck:
    """Compute the clocks and receipts of a ticket anew, and compare them with what is stored: one Query."""
    found = replayed(tenant, number)
    if found is None:
        return TicketCheck([], [])
    held = found.passed[-1].known(found.stored.as_of)
    faults = [] if held == found.stored else [f"#{number}: its clocks are not as its history says"]
    receipts: list[str] = []
    missed = clocks.misses(found.passed, held.as_of)
    for miss, place in missed.items():
        receipts.append(found.receipt(tenant, miss, place))
        stored_one = found.receipts.get(miss)
        if stored_one is None:
            faults.append(f"#{number}: there is no receipt yet for the target {miss.target}")
        elif stored_one.receipt != receipts[-1]:
            faults.append(f"#{number}: the receipt for the target {miss.target} is not as its history says")
    faults += [
        f"#{number}: there is a receipt for the target {m.target}, which was met"
        for m in found.receipts
        if m not in missed
    ]
    return TicketCheck(receipts, faults)
