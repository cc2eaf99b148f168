"""Add comments and internal notes: each exactly once, and none lost because the ticket changes at the same time.

A note changes nothing that a viewer can read: neither when the ticket was changed last, which orders their lists, nor
what lists and aggregates count. It moves the ticket up for agents alone: see ADR 30.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.utils.translation import gettext as _

from delivery.outbox.publisher import Event, publish
from delivery.outbox.stored import OutboxItem
from portal import clock
from portal.dynamo.client import alongside
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Conflict, Invalid, Overtaken, TransactionRefused
from portal.plain_text import mentions
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.desk import changing, timelines
from tickets.desk.changing import REQUEST, TicketState, new_request_id, put_record, request_digest
from tickets.desk.letter_texts import FromLetter
from tickets.requesters import requester_addresses
from tickets.ticket import due_marks, fields, status_dates, stored, ticket_events
from tickets.ticket.fields import ASSIGNEE, MOVES, STATUS, TAGS, FieldChange, Status
from tickets.ticket.set_aside import SetAside
from tickets.ticket.status_dates import counted
from tickets.ticket.stored import ActivityItem, RequestItem, SummaryItem

_ATTEMPTS: Final = 6
COPIES: Final = 20
_PAUSE: Final = 0.05  # seconds at most before the second attempt


class Unseen(Conflict):
    """Others commented on the ticket or changed it after the author's page was read. Nothing was written."""

    code = "unseen"

    def __init__(self, names: list[str]) -> None:
        changed = _("%(names)s changed this ticket while you were writing. It is shown here.")
        again = _("Your text has not been added: send it again if it still fits.")
        super().__init__(f"{changed % {'names': _(' and ').join(names)}} {again}", field="body")


class CommentNotAdded(Overtaken):
    """The ticket was being changed each time the comment was tried. Nothing was written; sending it again is right."""

    code = "comment_not_added"

    def __init__(self) -> None:
        sentence = _(
            "Your comment has not been added: this ticket is being changed by others at this moment. "
            "Your text is still here. Send it again."
        )
        super().__init__(sentence, field="body")


@dataclass(frozen=True)
class Along:
    """Hold what a comment changes in its ticket beside the status: tags that it adds, and who gets the ticket.

    `resolver` is an id, "" for nobody, and None leaves the assignee as it is.
    """

    tags: tuple[str, ...] = ()
    resolver: str | None = None

    @property
    def texts(self) -> list[str]:
        """The values as texts, none where nothing is changed."""
        return [*self.tags, f"to {self.resolver}"] if self.tags or self.resolver is not None else []


@dataclass(frozen=True)
class WrittenComment:
    """A comment as it was written: its entry, the ticket before, the entry of what it changed, and its row."""

    entry: ActivityItem
    before: SummaryItem
    version: int
    change: str
    row: OutboxItem | None


@dataclass(frozen=True)
class _Said:
    """A comment or a note as its request says it."""

    kind: str
    body: str
    copies: list[str]
    then: Status | None
    along: Along
    files: tuple[FileRef, ...]
    request_id: str
    number: str
    letter: FromLetter | None
    hold: int

    @cached_property
    def digest(self) -> str:
        then, files = self.then.value if self.then else "", (file.id for file in self.files)
        texts = *self.copies, *files, *self.along.texts
        return request_digest(self.request_id, self.number, self.kind, then, self.body, *texts)


def comment(
    tenant: TenantContext,
    number: int,
    *,
    body: str,
    internal: bool = False,
    then: Status | None = None,
    along: Along = Along(),
    seen: str = "",
    cc: Sequence[str] = (),
    files: Sequence[FileRef] = (),
    request_id: str | None = None,
    companion: Companion[ActivityItem] | None = None,
    letter: FromLetter | None = None,
    hold: int = 0,
    tell: Callable[[WrittenComment], object] = lambda written: None,
) -> SummaryItem:
    """Add a comment or an internal note, and in the same transaction change what `then` and `along` say.

    The same request sent again adds nothing, however many others came between. A ticket that changes meanwhile is read
    again. `seen` is the moment of the last change that the author saw: later ones by others are shown first. An agent's
    comment on the ticket of somebody outside goes to them as a letter, with copies to the addresses `cc`. `files` are
    stored already and belong to the comment from then on; with some, the text may be empty. The `companion` of one that
    came as a `letter` sees to repetitions in place of a record. Nobody hears of it for `hold` seconds; `tell` gets it.
    Returns the ticket as it was before. Raises NotFound, Invalid, Unseen, SetAside, CommentNotAdded.
    """
    text, kind = fields.comment(body) if body.strip() or not files else "", "note" if internal else "comment"
    about = (request_id or new_request_id(), str(number), letter, hold)
    said = _Said(kind, text, _copies(cc), then, along, (*files,), *about)
    waiting = [companion]  # for the first attempt, beside whose read it does its part

    def attempt() -> SummaryItem:
        summary, name = with_companion(waiting.pop() if waiting else None, lambda: _read(tenant, number, along))
        if _is_over(tenant, summary, said.digest, seen):
            return summary
        transaction = Transaction()
        try:
            written = _add(tenant, transaction, summary, said, copies, name)
        except Invalid:  # what this request has changed already is no reason to refuse it
            if _was_added(tenant, said.digest):
                return summary
            raise
        if _write(tenant, transaction, written.entry, companion, copies):
            tell(written)
        if letter:
            letter.complete(tenant.repository, written.entry, said.body)
        return summary

    with attachments.Copies(tenant, said.files) if said.files else nullcontext() as copies:
        return retrying(attempt, again=_is_refused, attempts=_ATTEMPTS, first=_PAUSE, given_up=CommentNotAdded)


def _is_refused(error: Exception) -> bool:
    return isinstance(error, TransactionRefused)


def _read(tenant: TenantContext, number: int, along: Along) -> tuple[SummaryItem, str]:
    """Return the ticket, and the name of whoever is to get it: one round trip. Raises NotFound, Invalid."""
    if not along.resolver:
        return changing.read(tenant, number), ""
    resolver = along.resolver
    return alongside(lambda: changing.read(tenant, number), aside=lambda: changing.resolver_name(tenant, resolver))


def _was_added(tenant: TenantContext, digest: str) -> bool:
    return bool(tenant.repository.get(RequestItem, stored.request, digest, sort=stored.MADE_COMMENT, consistent=True))


def _is_over(tenant: TenantContext, summary: SummaryItem, digest: str, seen: str) -> bool:
    """Tell whether the ticket was set aside after this request had added its comment. Raises SetAside where it had
    not, and Unseen as `_refuse_unseen` does."""
    if summary.is_aside and not _was_added(tenant, digest):
        raise SetAside(summary)
    if not summary.is_aside:
        _refuse_unseen(tenant, summary, digest, seen)
    return summary.is_aside


def _refuse_unseen(tenant: TenantContext, summary: SummaryItem, digest: str, seen: str) -> None:
    """Raise Unseen where somebody else's entries came after this moment and this request has added nothing before.

    Changes that nobody has made do not count, such as those of a rule on a new ticket: nobody else is at work on it.
    """
    if not seen or changing.updated_at(tenant, summary) <= seen:
        return
    news = timelines.news(tenant, int(summary.number), seen=seen)
    others = [one for one in news if one.author != tenant.user_id and (one.author or one.kind != "event")]
    if others and not _was_added(tenant, digest):
        raise Unseen(list(dict.fromkeys(entry.author_name for entry in others)))


def _write(
    tenant: TenantContext,
    transaction: Transaction,
    entry: ActivityItem,
    companion: Companion[Any] | None,
    copies: attachments.Copies | None,
) -> bool:
    """Write the transaction, which is written already where its request record is. Return whether it was now."""
    if companion is not None:
        companion.join(transaction, entry)
    try:
        tenant.repository.transact(transaction)
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        request = refused.reason(REQUEST) if REQUEST in refused.names else None
        if request is None or request.item is None:
            attachments.blame(refused)
            raise
        return False
    if copies:
        copies.written()
    return True


def _add(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem,
    said: _Said,
    copies: attachments.Copies | None,
    name: str,
) -> WrittenComment:
    """Add the entry and what comes of it to the transaction. `name` is that of whoever is to get the ticket."""
    state = TicketState.of(summary)
    if said.letter is None:
        put_record(tenant, transaction, stored.MADE_COMMENT, said.digest, number=state.number)
    at = max(clock.stamp(), summary.updated_at)
    to, is_note = _move(state.status, said.then), said.kind == "note"
    is_answer = not is_note and (stored.is_requester(tenant.user_id) or tenant.user_id == summary.requester)
    changes, values = _changes(summary, said, to, name, is_answer=is_answer)
    actions = _noted(tenant, state, at, is_change=bool(changes)) if is_note else _counting(tenant, summary, at)
    actions += [status_dates.set_to(field, value) for field, value in values.items()]
    if to:
        actions += status_dates.dated(state.status, to, at, zone=tenant.zone)
    entry = _entry(tenant, summary, said, at=at)
    if copies:
        actions += attachments.counted(summary, said.files)
        entry.files = attachments.attach(tenant, transaction, copies.made(), number=state.number, entry=entry.sk)
    told, change = list[Event](), ""
    if is_note and not changes:
        held = SummaryItem(summary.pk, stored.SUMMARY)
        transaction.update(held, actions, name=str(state.number), condition=state.still_holds)
    else:
        # A comment comes before what it led to.
        told_at, entry_id = clock.stamp(clock.parse(at), offset=1), changing.new_entry_id()
        change = stored.activity(told_at, entry_id) if changes else ""
        told = changing.revise(
            tenant,
            transaction,
            state,
            at=at,
            status=to,
            resolver=said.along.resolver,
            changes=changes,
            actions=actions,
            told_at=told_at,
            entry_id=entry_id,
            said=entry,
        )
    transaction.put(entry)
    version = state.version + bool(changes)
    row = _publish(tenant, transaction, summary, said, entry, told=told, version=version)
    return WrittenComment(entry, summary, version, change, row)


def _publish(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem,
    said: _Said,
    entry: ActivityItem,
    *,
    told: list[Event],
    version: int,
) -> OutboxItem | None:
    """Add the events of an entry to its transaction, with those of what it changed."""
    number, at = int(summary.number), entry.at
    about = ticket_events.commented(tenant, number, kind=said.kind, body=said.body, at=at, version=version)
    # Destinations of our own, see ticket_events.ENTERED.
    ours = [ticket_events.REPLY] if entry.delivery else []
    if summary.listeners - {tenant.user_id} or mentions(said.body):
        ours.append(ticket_events.NOTICE)
    if said.files and attachments.have_pictures(said.files):
        ours.append(ticket_events.PREVIEW)
    entered = ticket_events.entered(tenant, number, entry=entry.sk, version=version, to=tuple(ours))
    subject = ticket_events.subject(number)
    return publish(tenant, transaction, about, *told, entered, subject=subject, at=at, hold=said.hold)


def _entry(tenant: TenantContext, summary: SummaryItem, said: _Said, *, at: str) -> ActivityItem:
    """Return the entry, which waits to be sent where it becomes a letter."""
    text, kept = said.letter.begin(said.body) if said.letter else (said.body, {"request": said.digest})
    entry = ActivityItem(
        summary.pk,
        stored.activity(at, said.request_id[:12]),
        kind=said.kind,
        at=at,
        author=tenant.user_id,
        author_name=tenant.author_name,
        body=text,
        cause=tenant.cause or None,
        **kept,
    )
    if _becomes_letter(tenant, summary, said.kind):
        entry.delivery, entry.delivery_at, entry.cc = stored.HELD, at, said.copies or None
    return entry


def _copies(addresses: Sequence[str]) -> list[str]:
    """Return the addresses that get a copy, as they are stored. Raises Invalid."""
    copies = list(dict.fromkeys(requester_addresses.normal(one, field="cc") for one in addresses))
    if not_sent := next((one for one in copies if not one.isascii()), None):
        sentence = _("Mail cannot be sent to an address with such letters before its @: %(address)s")
        raise Invalid(sentence % {"address": not_sent}, field="cc")
    if len(copies) > COPIES:
        raise Invalid(_("A letter goes to at most %(most)s people in copy.") % {"most": COPIES}, field="cc")
    return copies


def _becomes_letter(tenant: TenantContext, summary: SummaryItem, kind: str) -> bool:
    """Tell whether an entry goes out as a letter: an agent's comment, never a note, where the requester is outside."""
    is_by_agent = tenant.is_agent and not stored.is_requester(tenant.user_id)
    return kind == "comment" and is_by_agent and stored.is_requester(summary.requester)


def _changes(
    summary: SummaryItem, said: _Said, to: Status | None, name: str, *, is_answer: bool
) -> tuple[list[FieldChange], dict[str, Any]]:
    """Return what the comment changes, as the history has it, and the attributes that follow. An answer ends a snooze,
    and so does a comment that opens the ticket again. Raises Invalid."""
    changes: list[FieldChange] = [(STATUS.name, summary.status, to.value)] if to else []
    values: dict[str, Any] = {}
    if summary.due and (is_answer or (to and status_dates.reopens(summary.status, to))):
        changes += due_marks.waking(summary.due)
    if added := [tag for tag in said.along.tags if tag not in summary.tags]:
        tags = fields.tag_list(",".join([*summary.tags, *added]))
        changes.append((TAGS.name, TAGS.text(summary.tags), TAGS.text(tags)))
        values[TAGS.name] = TAGS.stored(tags)
    if said.along.resolver not in (None, summary.resolver):
        changes.append((ASSIGNEE.name, summary.resolver_name, name))
        values["resolver_name"] = name
    return changes, values


def _noted(tenant: TenantContext, state: TicketState, at: str, *, is_change: bool) -> list[Action]:
    return [SummaryItem.noted_at.set(at)] if is_change else changing.raised(tenant, state, at)


def _counting(tenant: TenantContext, summary: SummaryItem, at: str) -> list[Action]:
    """Let the summary remember a comment: how many there are, the last one, and the first that answers.

    A member or an API key answers, and nobody from outside the desk, neither the requester nor who reads along.
    """
    actions: list[Action] = [
        SummaryItem.commented_at.set(at),
        counted(stored.COMMENTED, at, zone=tenant.zone),
        SummaryItem.comment_count.add(1),
    ]
    if stored.is_requester(tenant.user_id):
        actions.append(counted(stored.RECEIVED, at, zone=tenant.zone))
    elif tenant.user_id and tenant.user_id != summary.requester:
        actions.append(SummaryItem.responded_at.set(SummaryItem.responded_at | at))
    return actions


def _move(status: Status, then: Status | None) -> Status | None:
    """Return the status that the comment gives the ticket, None for the same. Raises Invalid where it cannot."""
    if then is None or then == status:
        return None
    if then not in MOVES[status]:
        sentence = _(
            "This ticket is %(now)s now and cannot become %(after)s. "
            "Your comment has not been added; you can send it without changing the status."
        )
        raise Invalid(sentence % {"now": status.word, "after": then.word}, field="status")
    return then
