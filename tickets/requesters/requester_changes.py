"""Add and change requesters, merge two of them into one, and undo a merge. Agents do this; the audit trail says so.

A merge moves the addresses of one person to another and leaves all tickets as they are: each ticket keeps the id of the
person who asked, and the tickets of a merged person are read by several ids. So a merge costs the same however many
tickets there are, and an undo is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Conflict, Invalid, Overtaken, TransactionRefused
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, PersonalData, PersonalPlace
from tickets.requesters import requester_addresses, requesters, stored
from tickets.requesters.requesters import MERGED_LIMIT, NAME_LIMIT, Requester
from tickets.requesters.stored import ADDRESS, PROFILE, AddressItem, ProfileItem

ADDRESSES_LIMIT: Final = 20  # of one person
NOTES_LIMIT: Final = 4000  # characters
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}\Z")  # RFC 5646, as far as people use it
_CHANGED: Final = gettext_noop("Somebody else has just changed this person. Please check and try again.")


class AddressTaken(Invalid):
    """An address is another requester's already. `requester_id` is theirs."""

    code = "address_taken"

    def __init__(self, item: AddressItem) -> None:
        message = (
            _("%(address)s belongs to %(name)s already.")
            if item.name
            else _("%(address)s belongs to a person without a name already.")
        )
        super().__init__(message % {"address": item.address, "name": item.name}, field="addresses")
        self.requester_id = item.requester_id


@dataclass(frozen=True)
class Details:
    """The values that people give a requester. `addresses` are as typed, the one that mail goes to first."""

    name: str = ""
    organisation: str = ""
    notes: str = ""
    language: str = ""
    addresses: tuple[str, ...] = ()

    def cleaned(self) -> Details:
        """Return them as they are stored. Raises Invalid, with the field."""
        given = dict.fromkeys(requester_addresses.normal(text, field="addresses") for text in self.addresses)
        if len(given) > ADDRESSES_LIMIT:
            raise Invalid(
                _("A person can have up to %(limit)s addresses.") % {"limit": ADDRESSES_LIMIT}, field="addresses"
            )
        name = locales.within(plain_text.line(self.name), NAME_LIMIT, "name")
        if not name and not given:
            raise Invalid(_("Enter a name or an address."), field="name")
        notes = locales.within(plain_text.block(self.notes), NOTES_LIMIT, "notes")
        language = self.language.strip()
        if language and not _LANGUAGE.match(language):
            raise Invalid(_("Enter a language as a code, such as en, de or pt-BR."), field="language")
        return Details(
            name,
            locales.within(plain_text.line(self.organisation), NAME_LIMIT, "organisation"),
            notes,
            language,
            tuple(given),
        )

    @classmethod
    def of(cls, item: ProfileItem) -> Details:
        return cls(item.name, item.organisation, item.notes, item.language, tuple(item.addresses))

    @property
    def told(self) -> dict[str, str]:
        """The values as the audit trail has them, which is never changed and outlives an erasure.

        It holds no name and no notes. An address is a value of its own: the trail is shown without erased addresses.
        """
        lengths = {"name": self.name, "notes": self.notes}
        return {
            "organisation": self.organisation,
            "language": self.language,
            **{name: f"{len(text):,} characters" if text else "" for name, text in lengths.items()},
            **_numbered(self.addresses),
        }


def _numbered(addresses: Iterable[str]) -> dict[str, str]:
    return {f"address_{number}": address for number, address in enumerate(addresses, 1)}


# --- adding and changing ---


def create(
    tenant: TenantContext,
    details: Details,
    *,
    by: Actor,
    request_id: str,
    companion: Companion[Requester] | None = None,
) -> Requester:
    """Add a requester and return them. The same request again returns the one that it made before.

    A `companion` is told the person.
    Raises Invalid, and AddressTaken where somebody else has one of the addresses.
    """
    clean = details.cleaned()
    requester_id = stored.id_of_request(request_id)
    made = requesters.new_profile(
        tenant,
        requester_id,
        addresses=clean.addresses,
        name=clean.name,
        organisation=clean.organisation,
        notes=clean.notes,
        language=clean.language,
    )

    def build() -> ReadChange:
        transaction = Transaction()
        requesters.add(tenant, transaction, made)
        if companion is not None:
            companion.join(transaction, Requester.of(made))
        return transaction, [_entry(tenant, made, AuditAction.REQUESTER_CREATED, by, after=clean.told)]

    waiting = [companion]  # for the first attempt, beside whose reads it does its part
    try:
        _commit(tenant, lambda: with_companion(waiting.pop() if waiting else None, build))
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        if refused.reason(requester_id) and (known := requesters.find(tenant, requester_id)):
            return known
        _blame_addresses(refused, clean.addresses)
        raise Overtaken(_(_CHANGED)) from refused
    return Requester.of(made)


def change(
    tenant: TenantContext,
    requester_id: str,
    choose: Callable[[Details], Details],
    *,
    version: int | None,
    by: Actor,
    check: Callable[[Requester], None] = lambda person: None,
) -> Requester:
    """Store what `choose` makes of the stored values, and return the person as they are then.

    `version` is the one that the form showed, None where `choose` has judged what is stored; `check` may refuse
    the person as they are stored. Where nothing changes, nothing is written. Raises NotFound, Conflict, Invalid,
    AddressTaken.
    """
    told: list[ProfileItem] = []
    asked: list[str] = []

    def build() -> ReadChange | None:
        item = _open_profile(tenant, requester_id)
        told[:] = [item]
        if version is not None and int(item.version) != version:
            raise Overtaken(_(_CHANGED))
        check(Requester.of(item))
        before = Details.of(item)
        after = choose(before).cleaned()
        asked[:] = after.addresses
        if after == before:
            return None
        transaction = Transaction()
        item.name, item.organisation, item.notes = after.name, after.organisation, after.notes
        item.language, item.addresses = after.language, list(after.addresses)
        gone = set(before.addresses) - set(after.addresses)
        if gone:  # links went there
            _end_links(item)
        _keep_bounced(item, stored.bounced_of(item), gone)
        _put(tenant, transaction, item)
        _give(tenant, transaction, item, known=before.addresses)
        for address in sorted(gone):
            _take(tenant, transaction, item, address)
        was, now = before.told.items(), after.told.items()
        told_of = {"before": dict(was - now), "after": dict(now - was)}
        return transaction, [_entry(tenant, item, AuditAction.REQUESTER_CHANGED, by, **told_of)]

    try:
        _commit(tenant, build)
    except TransactionRefused as refused:
        _blame_addresses(refused, asked)
        raise Overtaken(_(_CHANGED)) from refused
    return Requester.of(told[0])


def remove(tenant: TenantContext, transaction: Transaction, person: Requester) -> None:
    """Delete a person with their addresses in a transaction, for an erasure, if they are still as they were read.

    Of somebody who was merged the profile alone goes: the addresses are those of the person who stands for both.
    """
    item = ProfileItem(tenant.repository.key(stored.requester, person.id), PROFILE)
    transaction.delete(item, condition=ProfileItem.version == person.version)
    for address in () if person.merged_into else person.addresses:
        key = AddressItem(tenant.repository.key(stored.address, address), ADDRESS)
        transaction.delete(key, condition=AddressItem.requester_id == person.id)


def revoke_links(tenant: TenantContext, requester_id: str, *, by: Actor) -> Requester:
    """End all links that lead this person to their tickets, and return the person. Raises NotFound, Conflict."""
    told: list[ProfileItem] = []

    def build() -> ReadChange:
        item = _open_profile(tenant, requester_id)
        told[:] = [item]
        _end_links(item)
        transaction = Transaction()
        _put(tenant, transaction, item)
        return transaction, [_entry(tenant, item, AuditAction.REQUESTER_LINKS_REVOKED, by)]

    _commit_or_overtaken(tenant, build)
    return Requester.of(told[0])


# --- merging ---


def merge(tenant: TenantContext, requester_id: str, other_id: str, *, by: Actor) -> Requester:
    """Merge the other person into this one, who has all addresses and all tickets then.

    Raises NotFound, Conflict, and Invalid where they are the same person or have too much between them.
    """
    told: list[ProfileItem] = []

    def build() -> ReadChange:
        item, other = _mergeable(tenant, requester_id, other_id)
        told[:] = [item]
        moved = list(other.addresses)
        item.addresses = [*item.addresses, *moved]
        item.merged = [*item.merged, other.requester_id, *other.merged]
        _keep_bounced(item, stored.bounced_of(item) | stored.bounced_of(other), gone=set())
        other.merged_into = item.requester_id
        _end_links(item, other)
        transaction = Transaction()
        _put(tenant, transaction, item)
        _put(tenant, transaction, other)
        _hand_over(tenant, transaction, moved, to=item, whose=other)
        after = {"merged": other.requester_id, **_numbered(moved)}
        return transaction, [_entry(tenant, item, AuditAction.REQUESTER_MERGED, by, after=after)]

    _commit_or_overtaken(tenant, build)
    return Requester.of(told[0])


def undo_merge(tenant: TenantContext, other_id: str, *, by: Actor) -> Requester:
    """Let a merged person be one of their own again, with the addresses that they had as far as those are still there.

    Returns that person. Raises NotFound, and Conflict where they are not merged into anybody, or into somebody who was
    merged in turn.
    """
    told: list[ProfileItem] = []

    def build() -> ReadChange:
        other = requesters.profile(tenant, other_id)
        if not other.merged_into:
            raise Conflict(_("This person is not merged into anybody."))
        item = requesters.profile(tenant, other.merged_into)
        if item.merged_into:
            raise Conflict(_("%(label)s was merged too. Undo that merge first.") % {"label": Requester.of(item).label})
        back = [address for address in other.addresses if address in item.addresses]
        separate = {other.requester_id, *other.merged}
        bounced = stored.bounced_of(item)
        item.addresses = [address for address in item.addresses if address not in back]
        item.merged = [one for one in item.merged if one not in separate]
        _keep_bounced(item, bounced, gone=set(back))
        other.addresses, other.merged_into = back, None
        _keep_bounced(other, {address: why for address, why in bounced.items() if address in back}, gone=set())
        _end_links(item, other)
        told[:] = [other]
        transaction = Transaction()
        _put(tenant, transaction, item)
        _put(tenant, transaction, other)
        _hand_over(tenant, transaction, back, to=other, whose=item)
        after = {"separate_again": other.requester_id, **_numbered(back)}
        return transaction, [_entry(tenant, item, AuditAction.REQUESTER_MERGE_UNDONE, by, after=after)]

    _commit_or_overtaken(tenant, build)
    return Requester.of(told[0])


def refuse_merge(tenant: TenantContext, requester_id: str, other_id: str) -> None:
    """Raise what `merge` would raise of these people as they are now."""
    _mergeable(tenant, requester_id, other_id)


def _mergeable(tenant: TenantContext, requester_id: str, other_id: str) -> tuple[ProfileItem, ProfileItem]:
    if requester_id == other_id:
        raise Invalid(_("Choose another person: nobody can be merged into themselves."), field="other")
    item, other = fan_out([partial(_open_profile, tenant, one) for one in (requester_id, other_id)])
    if len(item.merged) + 1 + len(other.merged) > MERGED_LIMIT:
        raise Invalid(_("Up to %(limit)s people can be merged into one.") % {"limit": MERGED_LIMIT}, field="other")
    if len(item.addresses) + len(other.addresses) > ADDRESSES_LIMIT:
        raise Invalid(
            _("A person can have up to %(limit)s addresses; these two have more.") % {"limit": ADDRESSES_LIMIT},
            field="other",
        )
    return item, other


# --- members of a transaction ---


def _open_profile(tenant: TenantContext, requester_id: str) -> ProfileItem:
    """Return the profile of somebody who can be changed. Raises NotFound, and Conflict for one who was merged."""
    item = requesters.profile(tenant, requester_id)
    if item.merged_into:
        raise Conflict(_("This person was merged into another one. Change that one, or undo the merge first."))
    return item


def _end_links(*people: ProfileItem) -> None:
    for item in people:
        item.link_generation = int(item.link_generation or 0) + 1


def _put(tenant: TenantContext, transaction: Transaction, item: ProfileItem) -> None:
    """Write a profile that was changed, as its next version, if it is still the one that was read."""
    seen, item.version = int(item.version), int(item.version) + 1
    transaction.put(requesters.placed(tenant, item), condition=ProfileItem.version == seen)


def _give(tenant: TenantContext, transaction: Transaction, item: ProfileItem, *, known: Iterable[str]) -> None:
    """Write the addresses of a profile, of which these are theirs already and the others nobody's."""
    for address in item.addresses:
        whose = AddressItem.requester_id == item.requester_id
        condition = whose if address in known else AddressItem.pk.does_not_exist()
        transaction.put(requesters.address_item(tenant, address, item), name=address, condition=condition)


def _take(tenant: TenantContext, transaction: Transaction, item: ProfileItem, address: str) -> None:
    key = requesters.address_item(tenant, address, item)
    transaction.delete(key, condition=AddressItem.requester_id == item.requester_id)


def _hand_over(
    tenant: TenantContext, transaction: Transaction, addresses: Iterable[str], *, to: ProfileItem, whose: ProfileItem
) -> None:
    for address in addresses:
        moved = requesters.address_item(tenant, address, to)
        transaction.put(moved, condition=AddressItem.requester_id == whose.requester_id)


def _keep_bounced(item: ProfileItem, bounced: dict[str, str], gone: set[str]) -> None:
    item.bounced = {address: why for address, why in bounced.items() if address not in gone}


def _commit(tenant: TenantContext, build: Callable[[], ReadChange | None]) -> None:
    """Write a change with its audit rows, if whoever makes it still has their role. Raises TransactionRefused."""

    def with_role() -> ReadChange | None:
        built = build()
        if built is not None and tenant.user_id:  # a command is nobody's
            member_changes.require_role(built[0], tenant)
        return built

    try:
        recording.commit_read(tenant.tenant_id, with_role)
    except TransactionRefused as refused:
        member_changes.blame_standing(tenant, refused)
        raise


def _commit_or_overtaken(tenant: TenantContext, build: Callable[[], ReadChange | None]) -> None:
    try:
        _commit(tenant, build)
    except TransactionRefused as refused:
        raise Overtaken(_(_CHANGED)) from refused


def _blame_addresses(refused: TransactionRefused, addresses: Iterable[str]) -> None:
    """Raise AddressTaken where an address is somebody else's."""
    for address in addresses:
        reason = refused.reason(address) if address in refused.names else None
        if reason is not None and reason.item:
            raise AddressTaken(AddressItem.from_raw_data(reason.item)) from refused


def _entry(
    tenant: TenantContext, item: ProfileItem, action: AuditAction, by: Actor, **values: dict[str, str]
) -> AuditEntry:
    name = next(iter(item.addresses), item.requester_id)
    said = {when: {n: v for n, v in told.items() if v} for when, told in values.items()}
    return AuditEntry(tenant.tenant_id, action, by, "requester", item.requester_id, name, **said)


def forget(tenant: TenantContext, person: DeskPerson) -> None:
    """Delete a person with all addresses. This comes last in an erasure: one that is begun again finds their tickets by
    the requester. Raises TransactionRefused where somebody else changes them."""
    transaction = Transaction()
    for one in requesters.stored_people(tenant, person.requesters):
        remove(tenant, transaction, one)
    if transaction.members:
        recording.commit(transaction, [])


def _places(person: DeskPerson, names: Collection[str], one: Requester) -> Iterator[PersonalPlace]:
    yield PersonalPlace(gettext_noop("requester, with name, organisation and notes"), excerpt=one.label)
    if not one.merged_into:
        yield from (
            PersonalPlace(gettext_noop("address of the requester"), excerpt=address) for address in one.addresses
        )


PEOPLE: Final = PersonalData(lambda tenant, person: requesters.stored_people(tenant, person.requesters), _places)
