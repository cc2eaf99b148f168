"""Send a comment to the requester as a letter, or the acknowledgement of a new ticket, and write down how it fared.

The outbox names the entry and has no text. All is read here, as the tenant and with the rights of a viewer, who sees no
internal note. The letter has the same Message-ID each time, so that one that is sent twice is known again.

Sources: RFC 5322, 3.6.4 (In-Reply-To, References); RFC 3834, 5 (Auto-Submitted).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from email.utils import formataddr, parseaddr
from functools import partial
from typing import Any, Final, Protocol

from django.conf import settings as site
from django.core.mail import EmailMultiAlternatives
from django.utils.translation import gettext_noop

from delivery.outbox import destinations
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from portal import plain_text
from portal.dynamo.client import fan_out
from portal.errors import NotFound, Rejected
from portal.mailing import mail_transport
from portal.mailing.mail_transport import HandOver
from portal.schema import keys
from tenants.membership import members
from tenants.sign_in import suppressed_addresses
from tenants.sign_in.stored import BOUNCED as NOBODY_THERE
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tickets.attachments import attachments, downloads, scanning
from tickets.desk import rating, timelines
from tickets.desk.timelines import TicketTimeline
from tickets.replies import delivery_states, mail_settings, message_ids, reply_addresses, ticket_links
from tickets.replies.mail_settings import MailSettings
from tickets.replies.public_entries import PublicEntry, PublicFile, all_public, opening, public
from tickets.replies.ticket_links import TicketLink
from tickets.requesters import bounced_addresses, requesters
from tickets.requesters.requesters import Requester
from tickets.ticket import stored, ticket_events
from tickets.ticket.fields import Channel
from tickets.ticket.stored import BOUNCED, HELD, SENT, ActivityItem, DetailItem

log = logging.getLogger("pooldesk.mail")

REPLY: Final = "reply"  # the destination
REFERENCES_LIMIT: Final = 10
_SCANS: Final = 5  # times that a letter waits for a scanner
_SCAN_SECONDS: Final = 30.0
ROOT: Final = "ticket"  # stands in References for the conversation, and for no letter


class WrittenLetter(Protocol):
    """A letter as the edge writes it: a subject, and the same content as text and as HTML."""

    @property
    def subject(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def html(self) -> str: ...


@dataclass(frozen=True)
class Writers:
    """The functions that write letters: of an answer, of an acknowledgement, and of a link that was asked for.
    `language` reads that of a desk's pages for people outside."""

    answer: Callable[..., WrittenLetter]
    acknowledgement: Callable[..., WrittenLetter]
    link: Callable[..., WrittenLetter]
    language: Callable[[TenantContext], str]


@dataclass(frozen=True)
class _Reply:
    """All that a letter is made of. `entry` is None for an acknowledgement, and for a letter with a link that was asked
    for: then `link` says where it leads, and `part` tells it from others of its kind."""

    tenant: TenantContext
    settings: MailSettings
    ticket: TicketTimeline
    requester: Requester
    entry: PublicEntry | None
    copies: tuple[str, ...]
    thread: tuple[str, ...]
    desk_language: str
    signature: str = ""  # of the author
    link: str = ""
    asked: str = ""
    by_rule: bool = False

    @property
    def is_automatic(self) -> bool:
        """Tell whether nobody of the desk has written this: it must be answered by no program, and quotes nothing."""
        return self.entry is None or self.by_rule

    @property
    def number(self) -> int:
        return int(self.ticket.summary.number)

    @property
    def part(self) -> str:
        """The text that tells this letter from the others of the ticket."""
        if self.entry:
            return message_ids.entry_of(self.entry.sort)
        return f"link-{self.asked}" if self.link else "new"

    @property
    def sender(self) -> str:
        """The address in From: the desk's own where its DNS allows that, else the one that every desk has."""
        if self.settings.domain_proved_at and self.settings.domain_sender:
            return self.settings.domain_sender
        return mail_settings.own_address(self.tenant.slug) or parseaddr(site.DEFAULT_FROM_EMAIL)[1]


def deliver(work: Work, *, writers: Writers) -> Outcome:
    """Send a letter. Raises what the database raises; the delivery is then made again.

    Costs three round trips to read, and one UpdateItem for the state of the comment.
    """
    event = json.loads(work.row.events[work.index])["data"]
    number, sort = int(event["number"]), str(event.get("entry", ""))
    try:
        tenant = _viewer(work.tenant_id)
    except NotFound:
        return Outcome("answered", note=gettext_noop("The desk is gone."))
    if tenant.suspended:
        return _later(work, tenant, number, sort, gettext_noop("The desk is suspended."))
    read = _read(tenant, number, sort, writers.language, is_link="link" in event)
    if isinstance(read, str):
        return Outcome("answered", note=read)
    if "link" in event:
        if event["person"] not in read.requester.ids:
            return Outcome("answered", note=gettext_noop("The ticket is somebody else's by now."))
        read = replace(read, link=event["link"], asked=keys.digest(work.row.event_id)[:12])
    address = _reachable(read.requester)
    if address is None:
        why = next(iter(read.requester.bounced.values()), "") or _no_address(read.requester)
        return _ended(tenant, number, sort, why)
    suppressed = suppressed_addresses.read_by_worker([address, *read.copies])
    if address in suppressed:
        why = suppressed[address].sentence
        bounced_addresses.note(tenant, address, why)
        return _ended(tenant, number, sort, why)
    files = [_looked_at(tenant, number, one) for one in read.entry.files] if read.entry else []
    if any(one.state == scanning.WAITING for one in files) and work.attempt <= _SCANS:
        return Outcome("failed", _SCAN_SECONDS, gettext_noop("A file of it is still being looked at."))
    attached = _attached(tenant, files)
    copies = [one for one in read.copies if one not in suppressed]
    message = _message(read, address, copies, writers, attached)
    handed = mail_transport.hand_over(message)
    for nobody in handed.nobody_there:
        suppressed_addresses.note(nobody, kind=NOBODY_THERE, why=handed.note)
        bounced_addresses.note(tenant, nobody, handed.note)
    return _noted(work, read, sort, handed)


# --- reading ---


def _viewer(tenant_id: str) -> TenantContext:
    """Return the context of a viewer, with the desk's own name: letters show no more than that."""
    tenant = tenant_directory.get(tenant_id)
    return context.of_tenant(tenant, role=Role.VIEWER, user_id="", user_name=tenant.name)


def _read(
    tenant: TenantContext, number: int, sort: str, language_of: Callable[[TenantContext], str], *, is_link: bool
) -> _Reply | str:
    """Read what the letter is made of, in two round trips; or return why none is sent."""
    store = tenant.repository
    reads: list[Callable[[], Any]] = [
        partial(mail_settings.read, tenant),
        partial(_timeline, tenant, number),
        partial(store.get, DetailItem, stored.ticket, number, sort=stored.DETAIL),
        partial(language_of, tenant),
    ]
    if sort:
        reads.append(partial(store.get, ActivityItem, stored.ticket, number, sort=sort, consistent=True))
    settings, ticket, detail, language, *entries = fan_out(reads)
    if ticket is None:
        return gettext_noop("The ticket is gone.")
    item = entries[0] if entries else None
    entry = public(item)
    if sort and (item is None or entry is None or item.delivery not in (HELD, BOUNCED)):
        return gettext_noop("There is nothing to send, or it was sent.")
    if item is not None and item.delivery == BOUNCED:
        delivery_states.hold_again(tenant, number, sort)
    if not sort and not is_link and not settings.acknowledges:
        return gettext_noop("The desk acknowledges no new tickets.")
    people: list[Callable[[], Any]] = [partial(requesters.find, tenant, ticket.summary.requester)]
    if entry is not None:
        people.append(partial(members.member, store, entry.author))
    requester, *authors = fan_out(people)
    if requester is None:
        requester = Requester(ticket.summary.requester)  # whom nothing reaches
    copies = tuple(one for one in (item.cc or ()) if _is_copied(one, tenant, settings, requester)) if item else ()
    named = [detail.message_id if detail else None, *(one.message_id for one in ticket.activity)]
    thread = tuple(one for one in named if one)
    signature = next((author.signature for author in authors if author), "")
    by_rule = bool(item and item.cause)
    return _Reply(tenant, settings, ticket, requester, entry, copies, thread, language, signature, by_rule=by_rule)


def _timeline(tenant: TenantContext, number: int) -> TicketTimeline | None:
    try:
        return timelines.ticket(tenant, number)
    except NotFound:
        return None


def _is_copied(address: str, tenant: TenantContext, settings: MailSettings, requester: Requester) -> bool:
    is_known = address in requester.addresses or settings.is_own(tenant.slug, address)
    return not is_known and address.isascii() and not settings.is_blocked(address)


def _reachable(requester: Requester) -> str | None:
    """Return the first address of a person that mail is not known not to reach."""
    return next((one for one in requester.addresses if one not in requester.bounced and one.isascii()), None)


def _no_address(requester: Requester) -> str:
    if requester.addresses:
        return gettext_noop(
            "Mail cannot be sent to an address with such letters before its @."
        )  # RFC 6531, which few servers know
    return gettext_noop("There is no address to send it to.")


# --- making the letter ---


def _looked_at(tenant: TenantContext, number: int, file: PublicFile) -> PublicFile:
    """Return a file with what its scanner has found meanwhile, where it waited for that."""
    if file.state != scanning.WAITING:
        return file
    return replace(file, state=scanning.look_at_finding(tenant, downloads.file_of(tenant, number, file.id)))


def _attached(tenant: TenantContext, files: Sequence[PublicFile]) -> list[tuple[PublicFile, bytes]]:
    """Return the files that go along, with their content: the first ones, as far as a letter may be long."""
    room, taken = attachments.MAIL_BYTES, list[PublicFile]()
    for file in files:
        if file.state in scanning.READABLE and file.size <= room:
            taken.append(file)
            room -= file.size
    contents = fan_out([partial(_content, tenant, file) for file in taken])
    return [(file, content) for file, content in zip(taken, contents, strict=True) if content is not None]


def _content(tenant: TenantContext, file: PublicFile) -> bytes | None:
    try:
        return attachments.content(tenant, file.object, most=attachments.MAIL_BYTES)
    except (NotFound, Rejected):
        return None


def _message(
    read: _Reply, address: str, copies: list[str], writers: Writers, attached: list[tuple[PublicFile, bytes]]
) -> EmailMultiAlternatives:
    tenant, number = read.tenant, read.number
    desk = read.settings.sender_name or tenant.name
    about: dict[str, Any] = {"desk": desk, "settings": read.settings, "number": number}
    # Nobody has proved the address that a form gives: a stranger there is sent nothing that somebody else has typed.
    is_told = not read.is_automatic or read.ticket.summary.channel != Channel.FORM
    title = read.ticket.summary.title if is_told else ""
    about["title"] = plain_text.unlinked(title) if read.by_rule else title
    about |= {"link": _link(read, copies), "languages": (read.requester.language, read.desk_language)}
    if read.entry:
        names = {file.id for file, _ in attached}
        left_out = [file.name for file in read.entry.files if file.id not in names]
        asks = rating.can_be_rated(read.ticket.summary)
        earlier = [] if read.is_automatic else _earlier(read, read.entry)
        about |= {"signature": read.signature, "zone": tenant.zone}
        letter = writers.answer(**about, entry=read.entry, earlier=earlier, left_out=left_out, asks_for_rating=asks)
    else:
        letter = (writers.link if read.link else writers.acknowledgement)(**about)
    message: Any = EmailMultiAlternatives(
        subject=letter.subject,
        body=letter.text,
        from_email=_return_address(read),
        to=[_named(read.requester.name if is_told else "", address)],
        cc=copies,
        reply_to=_reply_to(read, desk),
        headers=_headers(read) | {"From": _named(desk, read.sender)},
    )
    message.attach_alternative(letter.html, "text/html")
    for file, content in attached:
        message.attach(file.name, content, "application/octet-stream" if "/" not in file.type else file.type)
    message.tags = {"tenant": tenant.tenant_id, "about": delivery_states.tag_of(number, read.part)}
    return message  # type: ignore[no-any-return]  # it was given one attribute more


def _earlier(read: _Reply, entry: PublicEntry) -> list[PublicEntry]:
    """Return the messages before the answer, the newest first; the ticket's description is the oldest."""
    found = all_public(reversed(read.ticket.activity), before=entry.sort)
    if read.ticket.description and read.ticket.earlier is None:
        found.append(opening(read.ticket))
    return found


def _return_address(read: _Reply) -> str:
    """Return the envelope's sender, which reports come back to: signed, where this installation receives mail."""
    if not site.MAIL_DOMAIN:
        return read.sender
    return reply_addresses.return_address(read.tenant.tenant_id, read.number, read.part)


def _link(read: _Reply, copies: Sequence[str]) -> TicketLink | None:
    """Return the link in the letter; None where somebody gets a copy, who would answer in the requester's place."""
    if copies or not stored.is_requester(read.requester.id) or read.number > message_ids.MOST:
        return None
    if read.link == ticket_events.TO_ALL:
        return ticket_links.all_link(read.tenant, read.requester, read.settings)
    return ticket_links.ticket_link(read.tenant, read.ticket.summary, read.requester, read.settings)


def _reply_to(read: _Reply, desk: str) -> list[str]:
    if not site.MAIL_DOMAIN:
        return []
    address = reply_addresses.address_of(read.tenant.tenant_id, read.number, read.requester.id, is_agent=False)
    return [_named(desk, address)]


def _headers(read: _Reply) -> dict[str, str]:
    tenant_id, number = read.tenant.tenant_id, read.number
    thread = [message_ids.message_id(tenant_id, number, ROOT), *read.thread[-REFERENCES_LIMIT:]]
    headers = {
        "Message-ID": message_ids.message_id(tenant_id, number, read.part),
        "In-Reply-To": thread[-1],
        "References": " ".join(thread),
        "X-Auto-Response-Suppress": "OOF, AutoReply",
    }
    if own := mail_settings.own_address(read.tenant.slug):
        headers["X-Loop"] = own
    if read.is_automatic:
        headers["Auto-Submitted"] = "auto-replied"
    return headers


def _named(name: str, address: str) -> str:
    return formataddr((" ".join(name.split()), address)) if name else address


# --- what came of it ---


def _noted(work: Work, read: _Reply, sort: str, handed: HandOver) -> Outcome:
    tenant, number = read.tenant, read.number
    if handed.state == "taken":
        if handed.carrier_id:
            message_ids.remember(tenant, handed.carrier_id, number)
        _mark(tenant, number, sort, SENT)
        return Outcome("answered", note=handed.note)
    if handed.state == "refused":
        return _given_up(tenant, number, sort, handed.note)
    return _later(work, tenant, number, sort, handed.note)


def _later(work: Work, tenant: TenantContext, number: int, sort: str, why: str) -> Outcome:
    pause = destinations.retry_pause(work.attempt)
    if pause is None:
        return _given_up(tenant, number, sort, why)
    _mark(tenant, number, sort, HELD, why)
    return Outcome("failed", pause.total_seconds(), why)


def _given_up(tenant: TenantContext, number: int, sort: str, why: str) -> Outcome:
    _mark(tenant, number, sort, BOUNCED, why)
    return Outcome("dead", note=why)


def _ended(tenant: TenantContext, number: int, sort: str, why: str) -> Outcome:
    log.info("No letter was sent: tenant %s, ticket %s", tenant.tenant_id, number)
    _mark(tenant, number, sort, BOUNCED, why)
    return Outcome("answered", note=why)


def _mark(tenant: TenantContext, number: int, sort: str, state: str, note: str = "") -> None:
    if sort:
        delivery_states.mark(tenant, number, sort, state, note=note)
