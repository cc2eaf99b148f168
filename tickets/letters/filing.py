"""File one letter of a desk: read it, decide what it is, and write the ticket, the comment or the reason why neither.

Everything rests on the envelope, on signed tokens and on the receiving server's verdicts; what the letter says of
itself decides nothing that matters. An agent speaks through the reply address that was given to that very agent, and
only if the sender is confirmed as that agent, who is still one. A reply address of a requester never yields an agent.
One of our Message-IDs leads to its ticket only for a confirmed sender who takes part in it. All else is a new ticket.

A letter is written in one transaction with its row in the ledger, whose key is a digest of the letter. So the same
message, the same notification and the same letter again change nothing, wherever a process was killed. Three things are
written after the transaction, in which a write costs twice as much: the rest of a long text, the first entry of a new
ticket's history, and the row that acknowledges it. The message of a letter goes when all is written; one that comes
again finds the ledger's row and completes the rest.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext_noop as _

from delivery.queues.direct_work import DirectWork
from portal.errors import Invalid, NotFound
from portal.mailing import letter_process
from portal.mailing.letters import Letter, Unreadable
from portal.objects.object_store import ObjectStore
from portal.plain_text import file_size
from portal.web.locales import declare_stored
from tenants.membership import members
from tenants.membership.members import Member
from tenants.sign_in.stored import folded
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.stored import TenantItem
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.desk import changing, commenting, creating, letter_texts
from tickets.desk.letter_texts import FromLetter
from tickets.letters import arrival, desk_addresses, envelope, ledger, letter_rates, stored
from tickets.letters.envelope import Envelope
from tickets.letters.ledger import AlreadyFiled, LetterRecord
from tickets.letters.stored import LetterItem, raw_key
from tickets.replies import delivery_states, mail_settings, message_ids, reply_addresses, ticket_links
from tickets.replies.mail_settings import MailSettings
from tickets.replies.reply_addresses import Claim, SentLetter
from tickets.requesters import bounced_addresses, requester_addresses, requesters
from tickets.requesters.requesters import Requester
from tickets.ticket import stored as tickets
from tickets.ticket.fields import COMMENT_LIMIT, DESCRIPTION_LIMIT, MOVES, TITLE_LIMIT, Channel, Status
from tickets.ticket.stored import ActivityItem, SummaryItem

log = logging.getLogger("pooldesk.mail")

_TRIES: Final = 3  # for a ticket whose status changes while its comment is written
_FILES: Final = 20
_HEAD_BYTES: Final = 65_536  # in which the head of a letter ends
_NO_TICKET: Final = declare_stored(_("There is no ticket %(number)s any more."))
_NOT_BY_AGENT: Final = declare_stored(
    _("It answers a notification to %(name)s, but nothing shows that they have sent it.")
)
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_HEAD_SECONDS: Final = 2.0  # that reading it may take
_THREADS: Final = 20  # Message-IDs that are looked up, the latest first


class Stays(Exception):
    """The letter becomes no ticket and no comment; `reason` is a sentence for people, who are asked where `waits`."""

    def __init__(self, state: str, reason: str, *, waits: bool = True) -> None:
        super().__init__(reason)
        self.state, self.reason, self.waits = state, reason, waits


@dataclass
class _Case:
    """Hold what is known of the letter that is being filed."""

    tenant: TenantItem
    envelope: Envelope
    letter: Letter
    item: LetterItem
    approved: bool
    desk: TenantContext
    settings: MailSettings
    known: LetterItem | None = None  # its row, where it waited for somebody
    sender: str = ""
    name: str = ""
    marks: list[str] = field(default_factory=list)

    @property
    def record(self) -> LetterRecord:
        """Return what writes the letter's row in the transaction that files it."""
        return LetterRecord(self.desk.repository, self.item, self.known)

    @property
    def is_confirmed(self) -> bool:
        address, is_sole = self.letter.sender.address, self.letter.is_sole_sender
        return is_sole and self.envelope.is_from(address) and self.sender == address


def do(work: DirectWork) -> None:
    """File a letter, as the message of a queue asks. Raises what the stores raise; the same is done again then."""
    file(work.tenant_id, work.name)


def do_held(work: DirectWork) -> None:
    """File a letter that was held back, as a person of the desk wants it. Nothing happens where it waits no more."""
    desk = context.for_system(tenant_directory.get(work.tenant_id))
    held = ledger.find(desk.repository, work.name)
    if held is not None and held.state == ledger.HELD:
        file(work.tenant_id, held.object, approved=True)


def give_up(work: DirectWork, reason: str) -> None:
    """Write down that a letter could not be filed however often it was tried; people may try again."""
    tenant = tenant_directory.get(work.tenant_id)
    desk = context.for_system(tenant)
    found = _stored(tenant.tenant_id, work.name)
    if found:
        raw, arrived = found
        item = ledger.new(desk.repository, _plain_digest(raw), arrived, size=len(raw))
        _note(desk, item, Stays(ledger.REFUSED, reason))


def file(tenant_id: str, name: str, *, approved: bool = False) -> LetterItem | None:
    """File the letter in the object of this name, and return its row in the ledger; None where there is no object.

    `approved` says that a person of the desk wants it filed, whatever kept it from that before.
    """
    tenant = tenant_directory.get(tenant_id)
    desk = context.for_system(tenant)
    found = _stored(tenant_id, name)
    if found is None:
        return None
    raw, arrived = found
    try:
        letter = letter_process.read(raw)
    except Unreadable as error:
        sender, subject = _head(raw)
        item, known, _ = _row(desk, _plain_digest(raw), arrived, size=len(raw), sender=sender, subject=subject)
        return _note(desk, item, Stays(ledger.REFUSED, str(error)), known)
    about = {"sender": letter.sender.address, "subject": letter.subject}
    item, known, arrived = _row(desk, _digest(letter, raw), arrived, size=len(raw), **about)
    is_known = known is not None and not (approved and known.state in ledger.OPEN)
    if known is not None and is_known and not (known.state == ledger.FILED and known.object == name):
        _drop_copy(tenant_id, name, known)
        return known
    case = _Case(tenant, arrived, letter, item, approved, desk, mail_settings.read(desk), known)
    if known is not None and is_known:
        _complete(case, known)
        return known
    try:
        _refuse(case)
        _file(case)
        ledger.count_apart(desk.repository, item, known)
    except Stays as stays:
        return _note(desk, item, stays, known)
    except AlreadyFiled as already:
        if already.item is not None:
            _drop_copy(tenant_id, name, already.item)
        return already.item
    return item


def _row(
    desk: TenantContext, digest: str, arrived: Envelope, *, size: int, sender: str, subject: str
) -> tuple[LetterItem, LetterItem | None, Envelope]:
    """Return the row of a letter as filed, the stored one or None, and how the letter came: as the stored row says,
    since the object of a desk that was brought in has nothing beside it."""
    known = ledger.find(desk.repository, digest)
    if known is not None and known.object == arrived.name:
        arrived = ledger.envelope_of(known)
    return ledger.new(desk.repository, digest, arrived, size=size, sender=sender, subject=subject), known, arrived


def _stored(tenant_id: str, name: str) -> tuple[bytes, Envelope] | None:
    try:
        raw, about = ObjectStore("tenant", tenant_id).get_with_about(raw_key(tenant_id, name), most=arrival.MOST_BYTES)
    except NotFound:
        return None
    return raw, envelope.read_about(name, about)


def _head(raw: bytes) -> tuple[str, str]:
    """Return the sender and the subject of a letter that cannot be read as a whole, "" for what cannot be found: people
    decide what becomes of it, and should see whose it is."""
    try:
        letter = letter_process.read(_HEAD_END.split(raw[:_HEAD_BYTES], maxsplit=1)[0], seconds=_HEAD_SECONDS)
    except Unreadable:
        return "", ""
    return letter.sender.address, letter.subject


def _drop_copy(tenant_id: str, name: str, known: LetterItem) -> None:
    """Delete the object of a letter that came a second time."""
    if known.object != name:
        ObjectStore("tenant", tenant_id).delete(raw_key(tenant_id, name))


def _note(desk: TenantContext, item: LetterItem, stays: Stays, known: LetterItem | None = None) -> LetterItem:
    if known is not None and known.state not in ledger.OPEN:
        return known
    try:
        ledger.note(
            desk.repository,
            item,
            state=stays.state,
            reason=stays.reason,
            open_to_people=stays.waits,
            before=known,
        )
    except AlreadyFiled as already:
        return already.item or item
    return item


def _digest(letter: Letter, raw: bytes) -> str:
    """Return what makes it the same letter. Without a Message-ID, two that say the same may be two."""
    return letter.digest[:48] if letter.message_id else _plain_digest(raw)


def _plain_digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:48]


# --- what becomes no ticket ---


def _refuse(case: _Case) -> None:
    """Raise Stays for a letter that nobody wrote, that must not be filed, or that a person has to look at first."""
    letter, verdicts = case.letter, case.envelope.verdicts
    if verdicts.get("virus") == envelope.FAIL:
        raise Stays(ledger.REFUSED, ledger.VIRUS)
    if case.approved:
        _find_sender(case)
        return
    if letter.automatic and not _is_forwarded_by_group(case):
        raise Stays(ledger.AUTOMATIC, " ".join(filter(None, (letter.automatic, _take_report(case)))), waits=False)
    if _came_back(case):
        raise Stays(ledger.AUTOMATIC, _("It is a letter of this desk that came back."), waits=False)
    if _returned_to(case):
        raise Stays(ledger.WAITING, _("It came to the address that reports on a letter come to, and it is no report."))
    _find_sender(case)
    if case.settings.is_blocked(case.sender) or case.settings.is_blocked(letter.sender.address):
        raise Stays(ledger.REFUSED, _("The desk has blocked its sender."), waits=False)
    if verdicts.get("spam") == envelope.FAIL:
        raise Stays(ledger.WAITING, _("It was found to be spam."))


def _came_back(case: _Case) -> bool:
    """Tell whether the desk itself has sent this letter, which was passed on to it: by its Message-ID, or by the header
    against loops, which an answering program may have copied. Nobody gains anything by forging either."""
    thread = message_ids.read_message_id(case.letter.message_id)
    if thread is not None and thread.tenant_id == case.tenant.tenant_id:
        return True
    return bool(case.letter.x_loop) and case.settings.is_own(case.tenant.slug, case.letter.x_loop)


def _returned_to(case: _Case) -> SentLetter | None:
    """Return the letter of the desk to whose return address this one came, None where it came to none."""
    found = (reply_addresses.read_return(recipient) for recipient in case.envelope.recipients)
    return next((sent for sent in found if sent and sent.tenant_id == case.tenant.tenant_id), None)


def _take_report(case: _Case) -> str:
    """Note what a report says of a letter that the desk sent: on the comment, and on the address that it names.

    Anybody can write a report. It is believed only where it came to the return address of the letter itself; of any
    other, return a sentence that says so.
    """
    report, complained = case.letter.report, case.letter.automatic_kind == "complaint"
    if report is None or not report.recipient or not (report.has_failed or complained):
        return ""
    sent = _returned_to(case)
    if sent is None:
        return _("It did not come to the return address of a letter of this desk, so it changes nothing.")
    delivery_states.note_returned(case.desk, sent, address=report.recipient, why=report.reason, complained=complained)
    return ""


def _is_forwarded_by_group(case: _Case) -> bool:
    """Tell whether a group of people forwards the desk's mail, as Google Groups do: it says that it is a list, and puts
    the desk's own address into From."""
    letter = case.letter
    is_of_desk = _is_ours(case, letter.sender.address)
    return letter.automatic_kind == "list" and is_of_desk and bool(letter.original_sender.address)


def _find_sender(case: _Case) -> None:
    """Find who wrote the letter: From, or where that is the desk's own address, whom a forwarder names in its place.

    Raises Stays where there is nobody.
    """
    letter = case.letter
    case.sender, case.name = letter.sender.address, letter.sender.name
    if _is_ours(case, case.sender):
        candidates = [letter.original_sender, *letter.reply_to]
        other = next((one for one in candidates if one.address and not _is_ours(case, one.address)), None)
        if other is None:
            raise Stays(ledger.AUTOMATIC, _("It comes from an address of a desk itself."), waits=False)
        case.marks.append(letter_texts.FORWARDED_BY + case.sender)
        case.sender, case.name = other.address, other.name
        case.item.sender = other.address  # whom the ledger counts, and finds for a person who is forgotten
    if not requester_addresses.is_address(case.sender):
        raise Stays(ledger.REFUSED, ledger.NO_SENDER)


def _is_ours(case: _Case, address: str) -> bool:
    return bool(address) and (desk_addresses.is_ours(address) or case.settings.is_own(case.tenant.slug, address))


# --- what becomes a comment or a ticket ---


def _file(case: _Case) -> None:
    desk, claim = case.desk, _claim(case)
    sender = members.by_address(desk.repository, case.sender)
    if claim and claim.is_agent and _answer_of_agent(case, claim, sender):
        return
    case.marks += _marks(case, sender)
    known = requesters.by_address(desk, case.sender)
    number = _ticket(case, desk, claim, known)
    if not case.approved:
        _hold_back(case, number, is_stranger=not number and not (known and case.is_confirmed))
    person = known or requesters.ensure(desk, case.sender, name=case.name, comes_again=not case.approved)
    if case.is_confirmed and any(_same(one, case.sender) for one in person.bounced):
        bounced_addresses.note(desk, case.sender, "")  # whoever writes has a mailbox again
    author = context.of_tenant(case.tenant, role=Role.VIEWER, user_id=person.id, user_name=person.label)
    if number:
        _comment(case, author, number)
    else:
        _new_ticket(case, author, person)


def _hold_back(case: _Case, number: int, *, is_stranger: bool) -> None:
    """Raise Stays for one of too many letters."""
    recent = letter_rates.RecentLetters.of(case.desk.repository)
    if reason := recent.loop(sender=case.item.sender, number=number, subject=case.letter.subject):
        raise Stays(ledger.WAITING, reason)
    if is_stranger and (reason := recent.crowd()):
        raise Stays(ledger.HELD, reason)


def _claim(case: _Case) -> Claim | None:
    """Return what the reply address among the envelope's recipients says, None without one."""
    found = (reply_addresses.read(recipient) for recipient in case.envelope.recipients)
    return next((claim for claim in found if claim and claim.tenant_id == case.tenant.tenant_id), None)


def _answer_of_agent(case: _Case, claim: Claim, sender: Member | None) -> bool:
    """Write the comment of an agent who answers a notification. Raises Stays where it may be somebody else; False where
    a person of the desk wants the letter filed all the same, as one from outside."""
    if sender and sender.is_agent and claim.is_of(sender.id) and case.is_confirmed:
        author = context.of_tenant(case.tenant, role=sender.role, user_id=sender.id, user_name=sender.name)
        try:
            _comment(case, author, claim.number)
        except NotFound:
            raise Stays(ledger.REFUSED, _NO_TICKET % {"number": claim.number}) from None
        return True
    if case.approved:
        return False
    # A reply address has no id that could be read: that of another agent is looked for among all.
    people = [sender] if sender and claim.is_of(sender.id) else members.members_of(case.desk.repository)
    agent = next((one for one in people if claim.is_of(one.id)), None)
    if agent is None or not agent.is_agent:
        raise Stays(ledger.REFUSED, _("It answers a notification to somebody who is no agent of this desk any more."))
    raise Stays(
        ledger.REFUSED,
        _NOT_BY_AGENT % {"name": agent.name},
    )


def _ticket(case: _Case, desk: TenantContext, claim: Claim | None, person: Requester | None) -> int:
    """Return the number of the ticket that the letter belongs to, 0 for a new one. `person` is its sender, where the
    desk knows them."""
    ids = person.ids if person else ()
    if claim:
        summary = _summary(desk, claim.number)
        if summary is None or not _is_open_to(desk, claim, summary):
            return 0
        if claim.is_agent or not any(claim.is_of(one) for one in ids):
            case.marks.append(letter_texts.OTHER_PERSON)
        return _current(desk, summary)
    if not case.is_confirmed:
        return 0
    named_ids = dict.fromkeys([case.letter.in_reply_to, *reversed(case.letter.references)])
    named = [one for one in named_ids if one][:_THREADS]
    threads = [message_ids.read_message_id(one) or message_ids.known_message(desk, one) for one in named]
    for number in dict.fromkeys(t.number for t in threads if t and t.tenant_id == case.tenant.tenant_id):
        summary = _summary(desk, number)
        if summary and summary.requester in ids:
            return _current(desk, summary)
    return 0


def _current(desk: TenantContext, summary: SummaryItem) -> int:
    """Return the number of the ticket in which the conversation goes on, such as the one that this was merged into; 0
    for spam."""
    if summary.merged_into:
        summary = changing.read_merged(desk, int(summary.merged_into))
    return 0 if summary.spam_at else int(summary.number)


def _is_open_to(desk: TenantContext, claim: Claim, summary: SummaryItem) -> bool:
    """Tell whether a reply address leads to its ticket still: one of a requester does while the ticket is theirs, or of
    somebody who was merged with them. One GetItem for these, none else."""
    if claim.is_agent or claim.is_of(summary.requester):
        return True
    owner = requesters.find(desk, summary.requester)
    return owner is not None and any(claim.is_of(one) for one in owner.ids)


def _summary(desk: TenantContext, number: int) -> SummaryItem | None:
    try:
        return changing.read(desk, number)
    except NotFound:
        return None


def _marks(case: _Case, sender: Member | None) -> list[str]:
    found = []
    if not case.is_confirmed:
        found.append(letter_texts.UNCONFIRMED)
        if sender is not None:
            found.append(letter_texts.CLAIMS_MEMBER)
    return found


def _same(one: str, other: str) -> bool:
    try:
        return folded(one) == folded(other)
    except ValueError:
        return False


def _comment(case: _Case, author: TenantContext, number: int) -> None:
    files, left = _files(case, author)
    for attempt in range(_TRIES):
        summary = changing.read_merged(author, number)
        number, status = int(summary.number), Status(summary.status)
        then = Status.OPEN if not author.is_agent and Status.OPEN in MOVES[status] else None
        body, text = _text(case, COMMENT_LIMIT, left)
        try:
            commenting.comment(author, number, body=body, then=then, files=files, companion=case.record, letter=text)
        except Invalid as error:
            if error.field != "status" or attempt + 1 == _TRIES:
                raise Stays(ledger.REFUSED, error.message) from error
        else:
            return


def _new_ticket(case: _Case, author: TenantContext, person: Requester) -> None:
    files, left = _files(case, author)
    body, text = _text(case, DESCRIPTION_LIMIT, left)
    try:
        creating.create(
            author,
            requester=person,
            channel=Channel.MAIL,
            acknowledge=_is_acknowledged(case),
            title=" ".join(case.letter.subject.split())[:TITLE_LIMIT].strip() or "(no subject)",
            description=body,
            files=files,
            companion=case.record,
            letter=text,
        )
    except Invalid as error:
        raise Stays(ledger.REFUSED, error.message) from error


def _complete(case: _Case, known: LetterItem) -> None:
    """Write what is missing of the entry that the letter has become: the worker that filed it may have been killed."""
    number, repository = int(known.number), case.desk.repository
    if known.entry:
        body, text = _text(case, COMMENT_LIMIT, ())
        if entry := repository.get(ActivityItem, tickets.ticket, number, sort=known.entry, consistent=True):
            text.complete(repository, entry, body)
        return
    summary = _summary(case.desk, number)
    if summary is None:
        return
    with suppress(Stays):
        _find_sender(case)
    body, text = _text(case, DESCRIPTION_LIMIT, ())
    author = context.of_tenant(
        case.tenant, role=Role.VIEWER, user_id=summary.requester, user_name=summary.requester_name
    )
    creating.complete(author, number, letter=text, description=body, acknowledge=_is_acknowledged(case))


def _is_acknowledged(case: _Case) -> bool:
    return case.is_confirmed and case.settings.acknowledges  # who is not confirmed may be somebody whom it surprises


def _files(case: _Case, author: TenantContext) -> tuple[list[FileRef], list[str]]:
    """Store the letter's files for the entry that it becomes. Return those, and what the entry names of the others.

    A letter that is filed again after a kill stores the same files again, and leaves none behind.
    """
    digest, found, left = stored.digest_of(case.item.pk), list[FileRef](), list[str]()
    for index, part in enumerate(case.letter.attachments):
        try:
            if len(found) == attachments.MOST_FILES:
                raise attachments.too_many()
            name = part.name or f"file.{part.type.rpartition('/')[2]}"
            found.append(attachments.store(author, name, part.content, identity=f"{digest} {index}"))
        except Invalid:
            left.append(f"{part.name or part.type} ({file_size(part.size)})")
    return found, left[:_FILES]


def _text(case: _Case, limit: int, files: Sequence[str]) -> tuple[str, FromLetter]:
    """Return the text of the entry, and what is kept beside it: what is too long is folded, never dropped. `files` are
    those that the entry names and does not have."""
    letter = case.letter
    text, folded = (ticket_links.without_tokens(one) for one in (letter.text, letter.folded))
    body, rest = text[:limit], text[limit:]
    if not body.strip():
        body = "(This letter has no text.)" if not letter.attachments else "(This letter has files and no text.)"
    verdicts = [f"{letter_texts.VERDICT}{name} {status}" for name, status in case.envelope.verdicts.items()]
    return body, FromLetter(
        stored.digest_of(case.item.pk),
        message_id=letter.message_id,
        folded="\n\n".join(filter(None, (rest, folded))),
        marks=(
            *case.marks,
            *verdicts,
            *(letter_texts.FILE + name for name in files),
            *(letter_texts.REMARK + remark for remark in letter.remarks),
        ),
        cc=tuple(one.address for one in letter.cc if one.address),
        to=tuple(one.address for one in letter.to if one.address and not _is_ours(case, one.address)),
        comes_again=not case.approved,  # nobody's message comes again where a person presses a button
    )
