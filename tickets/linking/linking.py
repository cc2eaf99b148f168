"""Link two tickets of a desk, and end a link: both sides and both histories in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.outbox.publisher import publish
from portal import clock
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.attachments.scanning import READABLE
from tickets.attachments.stored import object_of
from tickets.desk import changing, comment_changes, creating, letter_texts
from tickets.ticket import set_aside, stored, ticket_events
from tickets.ticket.fields import Channel
from tickets.ticket.stored import LINK_KINDS, LINK_LABELS, ActivityItem, DetailItem, LinkMap, SummaryItem

CHOSEN: Final = ("blocks", "blocked_by", "duplicate_of", "duplicated_by", "relates_to")  # by people
LIMIT: Final = 50  # links of one ticket
_ATTEMPTS: Final = 6
_BUSY: Final = gettext_noop("These tickets are being changed by others at this moment. Please try again.")


@dataclass(frozen=True)
class _Side:
    summary: SummaryItem
    detail: DetailItem

    @property
    def number(self) -> int:
        return int(self.summary.number)

    @property
    def links(self) -> list[tuple[str, int]]:
        return [(one.kind, int(one.number)) for one in self.detail.links or ()]


def link(tenant: TenantContext, number: int, kind: str, other: int) -> None:
    """Link a ticket to another one. A link that there is already stays. One read and one transaction.

    Raises NotFound, Invalid for what cannot be linked, and Conflict.
    """
    if kind not in CHOSEN:
        raise Invalid(_("There is no such kind of link."), field="kind")
    if other == number:
        raise Invalid(_("A ticket cannot be linked to itself."), field="other")
    _change(tenant, number, kind, other, lambda links, one: links if one in links else [*links, one], "added")


def unlink(tenant: TenantContext, number: int, kind: str, other: int) -> None:
    """End a link. Where there is none, nothing changes. One read and one transaction. Raises NotFound, Conflict."""
    if kind not in LINK_KINDS:
        raise Invalid(_("There is no such kind of link."), field="kind")
    _change(tenant, number, kind, other, lambda links, one: [each for each in links if each != one], "removed")


def _change(
    tenant: TenantContext,
    number: int,
    kind: str,
    other: int,
    after: Callable[[list[tuple[str, int]], tuple[str, int]], list[tuple[str, int]]],
    done: str,
) -> None:
    def attempt() -> None:
        ours, theirs = _read(tenant, number, other)
        transaction, at, is_changed = Transaction(), clock.stamp(), False
        for side, one in ((ours, (kind, other)), (theirs, (LINK_KINDS[kind], number))):
            links = after(side.links, one)
            if links == side.links:
                continue
            if len(links) > LIMIT:
                raise Invalid(
                    _("Ticket %(number)s has %(limit)s links already.") % {"number": side.number, "limit": LIMIT},
                    field="other",
                )
            is_changed = True
            _write(transaction, side, links)
            transaction.put(_told(tenant, side.summary.pk, at, *one, done=done))
        if is_changed:
            version = int(ours.summary.version)
            event = ticket_events.linked(
                tenant, number, kind=kind, other=other, version=version, is_removed=done == "removed"
            )
            publish(tenant, transaction, event, subject=ticket_events.subject(number), at=at)
            tenant.repository.transact(transaction)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Conflict(_(_BUSY)),
    )


def _read(tenant: TenantContext, number: int, other: int) -> tuple[_Side, _Side]:
    """Read both tickets: one consistent BatchGetItem. Raises NotFound, and Invalid where the other one is missing."""
    repository = tenant.repository
    wanted: list[Any] = []
    for one in (number, other):
        wanted.append(repository.wanted(SummaryItem, stored.ticket, one, sort=stored.SUMMARY))
        wanted.append(repository.wanted(DetailItem, stored.ticket, one, sort=stored.DETAIL))
    summary, detail, other_summary, other_detail = repository.get_all(wanted, consistent=True)
    if summary is None:
        raise NotFound(_("There is no ticket %(number)s.") % {"number": number})
    if other_summary is None:
        raise Invalid(_("There is no ticket %(number)s in this desk.") % {"number": other}, field="other")
    for one in (summary, other_summary):
        if one.spam_at:
            raise set_aside.SetAside(one)
    return (
        _Side(summary, detail or DetailItem(summary.pk, stored.DETAIL)),
        _Side(other_summary, other_detail or DetailItem(other_summary.pk, stored.DETAIL)),
    )


def _write(transaction: Transaction, side: _Side, links: Sequence[tuple[str, int]]) -> None:
    attribute: Any = DetailItem.links
    action: Action = attribute.set(maps(links)) if links else attribute.remove()
    known = side.detail.links
    is_same = (attribute == [*known]) if known else attribute.does_not_exist()
    is_kept = DetailItem.expires_at.does_not_exist()  # an entry that came to spam would outlive it
    transaction.update(DetailItem(side.detail.pk, stored.DETAIL), [action], condition=is_same & is_kept)


def maps(links: Sequence[tuple[str, int]]) -> list[LinkMap]:
    """Return links, kinds and numbers, as an item has them."""
    make: Any = LinkMap
    return [make(kind=kind, number=number) for kind, number in links]


def _told(tenant: TenantContext, pk: str, at: str, kind: str, other: int, *, done: str = "added") -> Any:
    return changing.event(tenant, pk, at, verb=f"{done} the link “{LINK_LABELS[kind]} #{other}”")


def join_split(
    tenant: TenantContext, transaction: Transaction, summary: SummaryItem, detail: DetailItem, source: int
) -> None:
    """Add to the transaction that makes a ticket its link to the ticket `source` that it was split off from, and the
    link back. Raises NotFound, and Invalid where the other one has too many."""
    item = tenant.repository.get(DetailItem, stored.ticket, source, sort=stored.DETAIL, consistent=True)
    found = changing.read(tenant, source)
    side, number, at = _Side(found, item or DetailItem(found.pk, stored.DETAIL)), int(summary.number), clock.stamp()
    if len(side.links) >= LIMIT:
        raise Invalid(_("Ticket %(number)s has %(limit)s links already.") % {"number": source, "limit": LIMIT})
    detail.links = maps([("split_from", source)])
    _write(transaction, side, [*side.links, ("split_into", number)])
    transaction.put(changing.event(tenant, found.pk, at, verb=f"split a comment off into #{number}"))
    transaction.put(changing.event(tenant, summary.pk, at, verb=f"split it off from #{source}"))


def split(tenant: TenantContext, number: int, sort: str, *, title: str, request_id: str) -> int:
    """Make a ticket of a comment and return its number. The same request again returns the number that it made before.

    The comment stays where it is. The new ticket is for whoever wrote it, where that is somebody outside the desk, and
    else for the requester of the first one. Its files are copied. One read, for each file what storing it takes, and
    what a new ticket takes, with two items more in its transaction. Raises NotFound, Invalid, Conflict.
    """
    summary, entry = comment_changes.read(tenant, number, sort)
    if entry.deleted_at:
        raise Conflict(_("This comment was deleted meanwhile."))
    is_from_outside = stored.is_requester(entry.author)
    requester = entry.author if is_from_outside else summary.requester

    def also(transaction: Transaction, made: SummaryItem, detail: DetailItem) -> None:
        if is_from_outside:
            detail.letter, detail.message_id = _letter(entry), entry.message_id
        join_split(tenant, transaction, made, detail, number)

    try:
        return creating.create(
            tenant,
            title=title,
            description=entry.body,
            channel=summary.channel if is_from_outside else Channel.HAND,
            requester=requester if stored.is_requester(requester) else None,
            files=_copied(tenant, entry, request_id),
            request_id=request_id,
            also=also,
        )
    except TransactionRefused as refused:
        raise Conflict(_("This ticket is being changed by others at this moment. Please try again.")) from refused


def _letter(entry: ActivityItem) -> dict[str, Any]:
    """Return what the description keeps of the comment's letter. The words of somebody outside are no Markdown, so that
    a description without a letter says so, too."""
    kept: dict[str, Any] = entry.letter.as_dict() if entry.letter else {}  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    return kept | {"marks": [*kept.get("marks", ()), letter_texts.SPLIT]}


def _copied(tenant: TenantContext, entry: ActivityItem, request_id: str) -> list[FileRef]:
    """Store the files of a comment once more, which can be had."""
    found = []
    for file in entry.files or ():
        if file.state in READABLE:
            content = attachments.content(tenant, object_of(file), most=settings.FILE_MOST_BYTES)
            found.append(attachments.store(tenant, file.name, content, identity=f"{request_id} {file.id}"))
    return found
