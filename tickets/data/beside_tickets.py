"""Find and replace what a desk knows of a person beside its tickets: as a requester, in invitations and so on.

Only what holds a name or an address in itself is here. The audit trail is found, and never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from delivery.webhooks import endpoints
from delivery.webhooks.stored import EndpointItem
from portal.dynamo.store import Action, Transaction
from portal.errors import ConditionFailed, Conflict, TransactionRefused
from portal.plain_text import amount
from tenants.api_keys import key_changes
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail import recording
from tenants.membership import invitations, members
from tenants.membership.stored import InviteItem
from tenants.sign_in.stored import folded
from tenants.tenancy.context import TenantContext
from tickets.articles import people as article_people
from tickets.counting import stored
from tickets.counting.stored import VerifiedItem, VerifyLeaseItem
from tickets.data.desk_person import DeskPerson, PersonalPlace
from tickets.letters import ledger
from tickets.letters.stored import LedgerRow, digest_of
from tickets.replies import mail_settings
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requesters import Requester

MEMBER: Final = "member"
NOT_SEEN: Final = (
    "Letters as they came are found by their sender, and filed ones by the addresses in To and Cc. Their text "
    "and their files are not searched; they are deleted with the letter."
)
CHANGED: Final = "Somebody else has just changed this desk. Please try again."


@dataclass(frozen=True)
class NewName:
    """Say what stands in a person's place: the id and the name, and in place of which names, with `texts` also in
    place of the address in what people wrote."""

    person: DeskPerson
    pseudonym: str
    name: str
    names: Collection[str]
    texts: bool

    def replaces(self, places: Iterable[PersonalPlace]) -> list[PersonalPlace]:
        """Return which of these places it takes."""
        return [place for place in places if not place.stays and (self.texts or not place.is_text)]


def places(tenant: TenantContext, person: DeskPerson, names: Collection[str]) -> Iterator[PersonalPlace]:
    """Yield where the person, who goes by these names, occurs beside the tickets."""
    for user_id in person.accounts:
        if member := members.member(tenant.repository, user_id):
            yield PersonalPlace(MEMBER, excerpt=member.role.label, stays=True)
    yield from _in_profiles(requesters_of(tenant, person))
    for invite in invitations.pending(tenant.repository):
        yield from _in_invitation(person, invite)
    for key in key_changes.listed(tenant.repository):
        yield from _in_key(person, names, key)
    for endpoint in endpoints.listed(tenant.repository):
        yield from _in_endpoint(person, endpoint)
    if verified := tenant.repository.get(VerifiedItem, stored.aggregate, sort=stored.VERIFIED):
        yield from _in_verification(names, verified)
    if lease := tenant.repository.get(VerifyLeaseItem, stored.aggregate, sort=stored.VERIFYING):
        yield from _in_lease(names, lease)
    yield from (_in_letter(row) for row in _letters_of(tenant, person))
    yield from (_in_article(title) for title in article_people.find(tenant, person.mail.is_in))
    if mail_settings.read(tenant).is_blocked(person.address):
        yield PersonalPlace("blocked sender of mail", stays=True)
    if rows := person.trail_rows:
        shown = f", {person.trail_shown:,} of them since the erasure" * bool(person.erased_as and person.trail_shown)
        yield PersonalPlace(f"audit trail, {amount(rows, 'row')}{shown}", stays=True)


def requesters_of(tenant: TenantContext, person: DeskPerson) -> list[Requester]:
    """Return the requester who has the address, and those who were merged into them: one BatchGetItem, or nothing."""
    return requesters.stored_people(tenant, person.requesters)


def _letters_of(tenant: TenantContext, person: DeskPerson) -> list[LedgerRow]:
    """Return the letters that the person sent to the desk: those of an address of theirs."""
    addresses = {person.address, *(one for known in requesters_of(tenant, person) for one in known.addresses)}
    return [*ledger.of_senders(tenant.repository, addresses)]


def _in_article(title: str) -> PersonalPlace:
    return PersonalPlace("article, its text", is_text=True, excerpt=title)


def _articles(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    mail = new.person.mail
    replaced = article_people.replace(tenant, mail.is_in, lambda text: mail.replaced(text, new.name))
    yield from map(_in_article, replaced if new.texts else ())


def _in_letter(row: LedgerRow) -> PersonalPlace:
    return PersonalPlace("letter as it came", excerpt=row.subject)


def _letters(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    for row in _letters_of(tenant, new.person):
        ledger.forget_sender(tenant.repository, digest_of(row.pk))
        yield _in_letter(row)


def _in_profiles(people: Iterable[Requester]) -> Iterator[PersonalPlace]:
    for one in people:
        yield PersonalPlace("requester, with name, organisation and notes", excerpt=one.label)
        if not one.merged_into:
            yield from (PersonalPlace("address of the requester", excerpt=address) for address in one.addresses)


def forget_requesters(tenant: TenantContext, person: DeskPerson) -> None:
    """Delete the requester with all addresses. Raises Conflict where somebody else changes them."""
    transaction = Transaction()
    for one in requesters_of(tenant, person):
        requester_changes.remove(tenant, transaction, one)
    if transaction.members:
        try:
            recording.commit(transaction, [])
        except TransactionRefused as refused:
            raise Conflict(CHANGED) from refused


def _in_invitation(person: DeskPerson, invite: InviteItem) -> Iterator[PersonalPlace]:
    if folded(invite.email) == person.address:
        yield PersonalPlace("invitation", excerpt=invite.sent_at)
    elif person.is_who(invite.invited_by):
        yield PersonalPlace("sender of an invitation", excerpt=invite.sent_at)


def _in_key(person: DeskPerson, names: Collection[str], key: ApiKeyItem) -> Iterator[PersonalPlace]:
    if key.created_by in names:
        yield PersonalPlace("maker of an API key", excerpt=key.name)
    if person.mail.is_in(key.name):
        yield PersonalPlace("API key, its name", is_text=True, excerpt=key.name)


def _in_endpoint(person: DeskPerson, endpoint: EndpointItem) -> Iterator[PersonalPlace]:
    if person.mail.is_in(endpoint.description):
        yield PersonalPlace("endpoint, its description", is_text=True, excerpt=endpoint.description)
    if person.mail.is_in(endpoint.url):
        yield PersonalPlace("endpoint, its address", is_text=True, excerpt=endpoint.url, stays=True)


def _in_verification(names: Collection[str], verified: VerifiedItem) -> Iterator[PersonalPlace]:
    if verified.by_name in names:
        yield PersonalPlace("verification of the numbers", excerpt=verified.started_at)
    if any(name in verified.why for name in names):
        yield PersonalPlace("end of a verification of the numbers", excerpt=verified.why)


def _in_lease(names: Collection[str], lease: VerifyLeaseItem) -> Iterator[PersonalPlace]:
    if lease.by in names:
        yield PersonalPlace("last start of a verification", excerpt=lease.renewed_at)


def replace(tenant: TenantContext, new: NewName) -> list[PersonalPlace]:
    """Withdraw the person's invitations, and put the new name wherever else theirs stands. Returns the places.

    An address to which a webhook is sent stays. Raises Conflict where somebody else changes the same things.
    """
    try:
        # The requester goes last, when no ticket names them any more: an erasure that is begun again finds them by it.
        people = new.replaces(_in_profiles(requesters_of(tenant, new.person)))
        changed = (
            _letters(tenant, new),
            _articles(tenant, new),
            _invitations(tenant, new),
            _keys(tenant, new),
            _endpoints(tenant, new),
            _verifications(tenant, new),
        )
        return [*people, *(place for places in changed for place in places)]
    except (ConditionFailed, TransactionRefused) as refused:
        raise Conflict(CHANGED) from refused


def _invitations(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    for invite in invitations.pending(tenant.repository):
        if not (found := [*_in_invitation(new.person, invite)]):
            continue
        transaction = Transaction()
        if folded(invite.email) == new.person.address:
            invitations.delete_invite(transaction, invite)
            invitations.forget_why(tenant.repository, invite.invite_id)
        else:
            # Nobody can accept it any more: its sender is no member.
            invitations.rename_sender(
                transaction, invite, sender=new.pseudonym, sender_name=new.name, tenant_name=tenant.name
            )
        recording.commit(transaction, [])
        yield from found


def _keys(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    for key in key_changes.listed(tenant.repository, consistent=True):
        found = new.replaces(_in_key(new.person, new.names, key))
        actions: list[Action] = []
        if any(not place.is_text for place in found):
            actions.append(ApiKeyItem.created_by.set(new.name))
        if any(place.is_text for place in found):
            actions.append(ApiKeyItem.name.set(new.person.mail.replaced(key.name, new.name)[: key_changes.NAME_LIMIT]))
        if actions:
            recording.commit(key_changes.updated(key, actions), [])
            yield from found


def _endpoints(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    for endpoint in endpoints.listed(tenant.repository):
        if found := new.replaces(_in_endpoint(new.person, endpoint)):
            shown = new.person.mail.replaced(endpoint.description, new.name)[: endpoints.DESCRIPTION_LIMIT]
            actions: list[Action] = [EndpointItem.description.set(shown)]
            tenant.repository.update(endpoint, actions, condition=EndpointItem.version == endpoint.version)
            yield from found


def _verifications(tenant: TenantContext, new: NewName) -> Iterator[PersonalPlace]:
    verified = tenant.repository.get(VerifiedItem, stored.aggregate, sort=stored.VERIFIED, consistent=True)
    if verified and (found := [*_in_verification(new.names, verified)]):
        by, why = verified.by_name, verified.why
        for name in sorted(new.names, key=len, reverse=True):  # one may be a part of another
            by, why = new.name if by == name else by, why.replace(name, new.name)
        actions: list[Action] = [VerifiedItem.by_name.set(by), VerifiedItem.why.set(why)]
        tenant.repository.update(verified, actions, condition=VerifiedItem.run == verified.run)
        yield from found
    lease = tenant.repository.get(VerifyLeaseItem, stored.aggregate, sort=stored.VERIFYING, consistent=True)
    if lease and (found := [*_in_lease(new.names, lease)]):
        tenant.repository.update(lease, [VerifyLeaseItem.by.set(new.name)], condition=VerifyLeaseItem.by == lease.by)
        yield from found
