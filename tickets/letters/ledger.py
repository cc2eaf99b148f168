"""Keep the ledger: each letter that came to a desk, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.retry import retrying
from portal.dynamo.store import Page, Store, Transaction
from portal.errors import ConditionFailed, Conflict, NotFound, PortalError, TransactionRefused
from portal.objects.object_store import ObjectStore
from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, PersonalData, PersonalPlace
from tenants.tenancy.redaction import SecretWords
from tickets.letters import stored
from tickets.letters.envelope import Envelope
from tickets.letters.stored import LedgerRow, LetterItem, WaitingRow
from tickets.replies.stored import WAITING as COUNTED
from tickets.replies.stored import WaitingCountItem
from tickets.requesters import requesters
from tickets.ticket import stored as tickets

FILED, AUTOMATIC, REFUSED, WAITING, DISCARDED = "filed", "automatic", "refused", "waiting", "discarded"
HELD = "held"  # it waits because too many came at once
OPEN: Final = (REFUSED, WAITING, HELD)  # somebody may still file or discard them
NO_SENDER: Final = gettext_noop("It has no address of a sender, so that nobody could be answered.")
VIRUS: Final = gettext_noop("A virus was found in it.")
CLOSED: Final = gettext_noop("This letter was filed or discarded meanwhile.")
_END: Final = "9"  # sorts behind all moments
_LETTER, _COUNT = "letter", "waiting letters"  # the names of members of a transaction
_TRIES: Final = 8  # of a transaction that meets others which count
_SHOWN: Final = 300  # characters of a sender, a subject and a reason


class AlreadyFiled(Exception):
    """The ledger has the letter already; `item` is the stored one."""

    def __init__(self, item: LetterItem | None) -> None:
        super().__init__("The letter is in the ledger.")
        self.item = item


def new(
    repository: Store, digest: str, envelope: Envelope, *, size: int, sender: str = "", subject: str = ""
) -> LetterItem:
    """Return the row of a letter that is not stored yet, as filed."""
    return LetterItem(
        repository.key(stored.letter, digest),
        ledger=repository.key(stored.ledger),
        received_at=envelope.received_at,
        state=FILED,
        sender=(sender or envelope.sender)[:_SHOWN],
        subject=subject[:_SHOWN],
        size=size,
        object=envelope.name,
        sent_by=envelope.sender,
        sent_to=list(envelope.recipients),
        verdicts=json.dumps(envelope.verdicts, separators=(",", ":")),
    )


def envelope_of(item: LetterItem) -> Envelope:
    """Return how a letter came, as its row has it."""
    return Envelope(item.object, item.sent_by, tuple(item.sent_to), item.received_at, json.loads(item.verdicts))


def find(repository: Store, digest: str) -> LetterItem | None:
    """Return a letter by its digest: one consistent GetItem."""
    return repository.get(LetterItem, stored.letter, digest, consistent=True)


def get(repository: Store, digest: str) -> LetterItem:
    """Return a letter by its digest, which came in an address. Raises NotFound."""
    try:
        found = find(repository, digest)
    except ValueError:
        found = None
    if found is None:
        raise NotFound(_("There is no such letter."))
    return found


def note(
    repository: Store,
    item: LetterItem,
    *,
    state: str,
    reason: str,
    open_to_people: bool = False,
    before: LetterItem | None = None,
) -> None:
    """Write down a letter that becomes no ticket, and count it where it waits. `before` is its stored row, None for a
    new letter. Raises AlreadyFiled where somebody else has written it meanwhile."""
    item.state, item.reason = state, reason[:_SHOWN]
    item.waiting = repository.key(stored.waiting) if open_to_people else None
    _store(repository, item, before)


def discard(repository: Store, item: LetterItem) -> None:
    """Say that a letter that waits for somebody becomes no ticket. Raises Conflict where it waits no more."""
    before = _as_stored(item)
    item.state, item.waiting = DISCARDED, None
    try:
        _store(repository, item, before)
    except AlreadyFiled as already:
        raise Conflict(_(CLOSED)) from already


def letters(repository: Store, *, after: list[Any] | None = None, limit: int) -> tuple[list[LedgerRow], list[Any]]:
    """Return letters, the newest first, and the position at which the next page begins, [] at the end: one Query."""
    start = _start(repository, after, "ledger", stored.ledger)
    page = repository.query(LedgerRow, stored.ledger, descending=True, limit=limit, start=start)
    return page.items, _end(page)


def waiting(repository: Store, *, after: list[Any] | None = None, limit: int) -> tuple[list[WaitingRow], list[Any]]:
    """Return the letters that wait for somebody in the same way: one Query."""
    start = _start(repository, after, "waiting", stored.waiting)
    page = repository.query(WaitingRow, stored.waiting, descending=True, limit=limit, start=start)
    return page.items, _end(page)


def held(repository: Store, *, most: int) -> list[str]:
    """Return the digests of up to `most` letters that were held back, the oldest first: a Query for each megabyte of
    those that wait."""
    rows = repository.query_all(WaitingRow, stored.waiting)
    return list(islice((stored.digest_of(row.pk) for row in rows if row.state == HELD), most))


def _end(page: Page[Any]) -> list[Any]:
    return [page.items[-1].received_at, stored.digest_of(page.items[-1].pk)] if page.last_key and page.items else []


def _start(repository: Store, after: list[Any] | None, name: str, build: Any) -> dict[str, Any] | None:
    """Form the key behind which a page begins: of this desk, whatever the position says."""
    if not after:
        return None
    received_at, digest = after
    key = {"pk": repository.key(stored.letter, digest), name: repository.key(build), "received_at": received_at}
    return {part: {"S": value} for part, value in key.items()}


def since(repository: Store, at: str, *, most: int) -> list[LedgerRow]:
    """Return up to `most` letters that came at `at` or later, the newest first: one Query."""
    return repository.query(LedgerRow, stored.ledger, between=(at, _END), descending=True, limit=most).items


def objects_since(repository: Store, at: str) -> set[str]:
    """Return the names of the objects of all letters that came at `at` or later: a Query for each megabyte of them."""
    return {row.object for row in repository.query_all(LedgerRow, stored.ledger, between=(at, _END))}


def of_senders(repository: Store, addresses: Collection[str]) -> Iterator[LedgerRow]:
    """Yield the letters that came from one of these addresses: a Query for each megabyte of the whole ledger."""
    rows = repository.query_all(LedgerRow, stored.ledger)
    return (row for row in rows if row.sender.lower() in addresses)


def forget_sender(repository: Store, digest: str) -> None:
    """Forget who sent a letter and what it was about, and the letter as it came. That it came stays: the same letter
    would else be filed again."""
    before = get(repository, digest)
    item = _as_stored(before)
    _delete_original(repository, item)
    item.sender = item.sent_by = item.subject = item.reason = ""
    item.sent_to, item.waiting = [], None
    item.state = item.state if item.state in (FILED, AUTOMATIC) else DISCARDED
    _store(repository, item, before)


def forget_original(repository: Store, digest: str) -> None:
    """Delete a letter as it came, whose row stays as it is: what was filed of it is in its ticket."""
    before = find(repository, digest)
    if before is not None and before.object:
        item = _as_stored(before)
        _delete_original(repository, item)
        _store(repository, item, before)


def redact_original(repository: Store, digest: str, words: SecretWords) -> bool:
    """Delete a letter as it came, and take words out of what its row says. Return whether there was anything to do."""
    before = find(repository, digest)
    if before is None:
        return False
    item = _as_stored(before)
    for name in ("sender", "subject", "reason"):
        setattr(item, name, words.without(getattr(item, name)))
    if not before.object and item.serialize() == before.serialize():
        return False
    _delete_original(repository, item)
    _store(repository, item, before)
    return True


def _delete_original(repository: Store, item: LetterItem) -> None:
    if item.object:
        ObjectStore("tenant", repository.tenant_id).delete(stored.raw_key(repository.tenant_id, item.object))
        item.object = ""


@dataclass
class LetterRecord:
    """Join a letter's row to the change that files it, in the place of the record of a request: the same letter again,
    or the same notification, finds the row and changes nothing."""

    repository: Store
    item: LetterItem
    before: LetterItem | None = None

    def meanwhile(self) -> None:
        """Do nothing: the letter is stored before it is filed."""

    def join(self, transaction: Transaction, told: Any) -> None:
        """Add the row, with the ticket and the entry that the letter becomes."""
        entry = None if isinstance(told, tuple) else told
        owner = tickets.owner_of(entry.pk if entry else told[0].pk)
        self.item.number, self.item.entry = owner[1] if owner else 0, entry.sk if entry else ""
        _add(transaction, self.repository, self.item, self.before)

    def blame(self, refused: TransactionRefused) -> None:
        """Raise AlreadyFiled where the row was what refused the transaction."""
        _blame(refused)


def _store(repository: Store, item: LetterItem, before: LetterItem | None) -> None:
    """Write a row, with the count. Raises AlreadyFiled."""

    def attempt() -> None:
        transaction = Transaction()
        _add(transaction, repository, item, before)
        try:
            repository.transact(transaction)
        except TransactionRefused as refused:
            _blame(refused)
            raise

    retrying(attempt, again=is_passing, attempts=_TRIES)
    count_apart(repository, item, before)


def is_passing(error: PortalError) -> bool:
    """Tell whether a transaction was refused only because it met others, such as those of letters counted with it."""
    return isinstance(error, TransactionRefused) and error.is_passing()


def _add(transaction: Transaction, repository: Store, item: LetterItem, before: LetterItem | None) -> None:
    """Add a row to a transaction, with the number of letters that wait: exact, since the row has to be as it was."""
    transaction.put(item, name=_LETTER, condition=_is_as(before))
    if (change := _change(item, before)) and not repository.placement.site:
        counted = WaitingCountItem(repository.tenant_id, COUNTED)
        transaction.update(counted, [WaitingCountItem.total.add(change)], name=_COUNT)


def count_apart(repository: Store, item: LetterItem, before: LetterItem | None) -> None:
    """Count the letters that wait of a desk in a silo, behind the transaction of a row: the number is read with each
    page and lies at home, and no transaction spans both. `recount` puts right what a kill in between leaves."""
    if (change := _change(item, before)) and repository.placement.site:
        counted = WaitingCountItem(repository.tenant_id, COUNTED)
        repository.update(counted, [WaitingCountItem.total.add(change)])


def _change(item: LetterItem, before: LetterItem | None) -> int:
    return bool(item.waiting) - bool(before and before.waiting)


def _as_stored(item: LetterItem) -> LetterItem:
    """Return a copy: PynamoDB's items share what they hold with those of `copy`."""
    return LetterItem.from_raw_data(item.serialize())


def _is_as(before: LetterItem | None) -> Any:
    if before is None:
        return LetterItem.pk.does_not_exist()
    waits = LetterItem.waiting.exists() if before.waiting else LetterItem.waiting.does_not_exist()
    return (LetterItem.state == before.state) & waits


def counted(repository: Store) -> int:
    """Return the number of letters that wait as it is kept: one GetItem."""
    item = repository.get(WaitingCountItem, keys.tenant, sort=COUNTED, consistent=True)
    return int(item.total) if item else 0


def recount(repository: Store) -> int:
    """Count the letters that wait anew, and return by how much the kept number was wrong: for letters of before there
    was one, and for desks that were brought in. A Query for each megabyte of them.

    Changes nothing where the number moves meanwhile: the index may be behind it, and a later run finds out.
    """
    before = counted(repository)
    found = sum(1 for _ in repository.query_all(WaitingRow, stored.waiting))
    if found == before:
        return 0
    item, count = WaitingCountItem(repository.tenant_id, COUNTED), WaitingCountItem.total
    try:
        repository.update(
            item, [count.set(found)], condition=(count == before) if before else count.does_not_exist() | (count == 0)
        )
    except ConditionFailed:
        return 0
    return found - before


def _blame(refused: TransactionRefused) -> None:
    reason = refused.reason(_LETTER)
    if reason is not None and reason.item is not None:
        raise AlreadyFiled(LetterItem.from_raw_data(reason.item)) from refused


def _of_person(tenant: TenantContext, person: DeskPerson) -> Iterator[LedgerRow]:
    known = requesters.stored_people(tenant, person.requesters)
    return of_senders(tenant.repository, {person.address, *(address for one in known for address in one.addresses)})


PEOPLE: Final = PersonalData(
    _of_person,
    lambda person, names, row: [PersonalPlace(gettext_noop("letter as it came"), excerpt=row.subject)],
    lambda tenant, new, row: forget_sender(tenant.repository, stored.digest_of(row.pk)),
)
