"""Invitations: the only way into a tenant from the portal.

An invitation is three items that come and go together: the tenant's own, in Tenants.Invites; what its link leads to,
found by one GetItem under a hash of the link's secret; and that the address is invited to this tenant, which makes it
so once and shows it to the person who chooses a desk. The secret is in the mail alone. Accepting deletes all three and
makes the membership in one transaction, so a link works once, however often it is sent at the same moment.

Source: the isolation model, "Row creation happens only through super-admin tenant-create, invite-accept, or the seed".
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Conflict, Forbidden, Invalid, NotFound, TransactionRefused
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity import accounts
from tenants.identity.models import User
from tenants.membership import keys as membership_keys
from tenants.membership import members, seats
from tenants.membership.items import InvitedItem, InviteItem, InviteLinkItem
from tenants.membership.tables import INVITES
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import MembershipItem, TenantItem
from tenants.tenancy.roles import Role

LIFETIME: Final = timedelta(days=7)
_SECRET_BYTES: Final = 32
MOST_AT_ONCE: Final = 50  # addresses in one pasted list
_ADDRESS, _MEMBERSHIP = "address", "membership"
_GONE: Final = "This invitation was used, revoked or sent again in the meantime."


@dataclass(frozen=True)
class Sent:
    """An invitation to be mailed. `secret` goes into the link and is stored nowhere."""

    invite: InviteItem
    secret: str


@dataclass(frozen=True)
class Outcome:
    """What became of one address of a list: sent, or refused for a reason."""

    address: str
    sent: Sent | None
    error: str = ""


@dataclass(frozen=True)
class Offer:
    """An invitation as the invited person sees it."""

    invite: InviteItem
    tenant: TenantItem

    @property
    def expired(self) -> bool:
        return is_expired(self.invite)


def is_expired(invite: InviteItem | InvitedItem) -> bool:
    return invite.expires_at <= clock.stamp()


def pending(repository: TenantRepository) -> list[InviteItem]:
    """The tenant's invitations that are neither used nor revoked, the latest first: one Query up to 1 MB."""
    stored = repository.query_all(INVITES, keys.tenant)
    return sorted(map(InviteItem.from_raw_data, stored), key=lambda invite: invite.sent_at, reverse=True)


def waiting_for(address: str) -> list[InvitedItem]:
    """The invitations that wait for an address and are still good: one Query."""
    try:
        partition = membership_keys.invited(address)
    except ValueError:
        return []
    return [item for item in InvitedItem.query(partition) if not is_expired(item)]


# --- inviting ---


def invite_all(tenant: TenantContext, *, addresses: Sequence[str], role: Role, by: Actor) -> list[Outcome]:
    """Invite each address, one transaction each, and say what became of it. Raises Invalid, Forbidden."""
    if len(addresses) > MOST_AT_ONCE:
        raise Invalid(f"At most {MOST_AT_ONCE} people can be invited together; these are {len(addresses)}.")
    _refuse_higher(tenant, role)
    inside = {member.email: member.name for member in members.members_of(tenant.repository)}
    outcomes = []
    for address in dict.fromkeys(accounts.normal_address(a) for a in addresses):
        if address in inside:
            outcomes.append(Outcome(address, None, f"{inside[address]} is a member already."))
            continue
        try:
            outcomes.append(Outcome(address, _invite(tenant, address, role, by)))
        except (Conflict, Invalid) as error:
            outcomes.append(Outcome(address, None, error.message))
    return outcomes


def _refuse_higher(tenant: TenantContext, role: Role) -> None:
    if not tenant.is_admin or not tenant.role.at_least(role):
        raise Forbidden(f"You cannot invite somebody as {role.value}; that is above your role.")


def _invite(tenant: TenantContext, address: str, role: Role, by: Actor) -> Sent:
    now = clock.stamp()
    invite = InviteItem(
        tenant.tenant_id,
        accounts.new_id(),
        email=address,
        role=role.value,
        invited_by_name=tenant.user_name,
        created_at=now,
    )
    secret = _renew(invite)
    link, invited = _companions(invite, tenant.name)
    transaction = Transaction()
    transaction.put(invited, name=_ADDRESS, condition=InvitedItem.tenant_id.does_not_exist())
    transaction.put(invite, condition=InviteItem.tenant_id.does_not_exist())
    transaction.put(link, condition=InviteLinkItem.pk.does_not_exist())
    _if_still_in_role(transaction, tenant)
    entries = [_entry(invite, AuditAction.MEMBER_INVITED, by, after={"role": role.value})]
    try:
        seats.commit(transaction, entries, tenant_id=tenant.tenant_id, seat=seats.invite(invite.invite_id))
    except TransactionRefused as error:
        if error.reason(_ADDRESS):
            raise Conflict("There is an invitation for this address already. You can send it again.") from error
        raise Conflict("Your role has just changed.") from error
    return Sent(invite, secret)


def resend(tenant: TenantContext, *, invite_id: str, by: Actor) -> Sent:
    """A new link, good for the whole time again, also where the old one has expired; the old one ends.

    Raises NotFound, Forbidden, and Conflict where it was used or revoked at this moment.
    """
    invite = own(tenant, invite_id)
    old, seen = InviteLinkItem(invite.link), invite.link
    secret = _renew(invite)
    link, invited = _companions(invite, tenant.name)
    transaction = Transaction()
    transaction.put(invite, condition=InviteItem.link == seen)
    transaction.delete(old)
    transaction.put(link, condition=InviteLinkItem.pk.does_not_exist())
    transaction.put(invited)
    _if_still_in_role(transaction, tenant)
    _commit(transaction, _entry(invite, AuditAction.INVITATION_RESENT, by))
    return Sent(invite, secret)


def revoke(tenant: TenantContext, *, invite_id: str, by: Actor) -> InviteItem:
    """The link ends, and the address may be invited anew. Raises as `resend` does."""
    invite = own(tenant, invite_id)
    transaction = Transaction()
    _take_away(transaction, invite)
    _if_still_in_role(transaction, tenant)
    _commit(transaction, _entry(invite, AuditAction.INVITATION_REVOKED, by, before={"role": invite.role}))
    return invite


def own(tenant: TenantContext, invite_id: str) -> InviteItem:
    """A pending invitation that the person at work may change. Raises NotFound, Forbidden."""
    found = None
    if keys.USER_ID.match(invite_id):
        found = tenant.repository.get(InviteItem, keys.tenant, sort=invite_id, consistent=True)
    if found is None:
        raise NotFound("There is no such invitation; it may have been used or revoked.")
    _refuse_higher(tenant, Role(found.role))
    return found


def _if_still_in_role(transaction: Transaction, tenant: TenantContext) -> None:
    actor = MembershipItem(tenant.user_id, tenant.tenant_id)
    transaction.check(actor, MembershipItem.role == tenant.role.value)


def _renew(invite: InviteItem) -> str:
    """Give the invitation a new secret and a new time to live; the secret is returned."""
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    now = clock.now()
    invite.link = membership_keys.invite_token(secret)
    invite.sent_at, invite.expires_at = clock.stamp(now), clock.stamp(now + LIFETIME)
    return secret


def _companions(invite: InviteItem, tenant_name: str) -> tuple[InviteLinkItem, InvitedItem]:
    try:
        partition = membership_keys.invited(invite.email)
    except ValueError as error:
        raise Invalid("That is not an e-mail address.", field="email") from error
    return (
        InviteLinkItem(invite.link, tenant_id=invite.tenant_id, invite_id=invite.invite_id),
        InvitedItem(
            partition,
            invite.tenant_id,
            invite_id=invite.invite_id,
            role=invite.role,
            tenant_name=tenant_name,
            invited_by_name=invite.invited_by_name,
            expires_at=invite.expires_at,
        ),
    )


def _take_away(transaction: Transaction, invite: InviteItem) -> None:
    """All three items, if the invitation is still the one that was seen."""
    seen = (InviteItem.link == invite.link) & (InviteItem.role == invite.role)
    transaction.delete(InviteItem(invite.tenant_id, invite.invite_id), condition=seen)
    transaction.delete(InviteLinkItem(invite.link))
    transaction.delete(InvitedItem(membership_keys.invited(invite.email), invite.tenant_id))


# --- accepting ---


def of_link(secret: str) -> Offer:
    """The invitation that a link leads to: two round trips, for it and for its tenant. Raises NotFound."""
    (link,) = platform.get_all([(InviteLinkItem, membership_keys.invite_token(secret), None)], consistent=True)
    offer = _offer(link.tenant_id, link.invite_id) if link else None
    if offer is None:
        raise NotFound("This invitation does not exist any more.")
    return offer


def of_address(address: str, tenant_id: str) -> Offer:
    """The invitation of an address to a tenant: two round trips. Raises NotFound."""
    if not keys.TENANT_ID.match(tenant_id):
        raise NotFound("This invitation does not exist any more.")
    (invited,) = platform.get_all([(InvitedItem, membership_keys.invited(address), tenant_id)], consistent=True)
    offer = _offer(tenant_id, invited.invite_id) if invited else None
    if offer is None:
        raise NotFound("This invitation does not exist any more.")
    return offer


def _offer(tenant_id: str, invite_id: str) -> Offer | None:
    wanted: list[Any] = [(InviteItem, tenant_id, invite_id), (TenantItem, keys.tenant(tenant_id), None)]
    invite, tenant = platform.get_all(wanted, consistent=True)
    return Offer(invite, tenant) if invite and tenant else None


def accept(offer: Offer, *, user: User, by: Actor) -> None:
    """Make the invited person a member. Whoever is one already keeps their role, and the invitation is used up.

    Raises Forbidden for somebody else's invitation, Conflict where it has expired or was used or revoked, or where the
    tenant has no room any more.
    """
    if accounts.normal_address(user.email) != offer.invite.email:
        raise Forbidden("This invitation is for another address.")
    transaction = _acceptance(offer, user)
    try:
        _seat(offer, user, transaction, [_accepted(offer, user, by)])
    except TransactionRefused as error:
        if not error.reason(_MEMBERSHIP):
            raise Conflict(_GONE) from error
        used = Transaction()
        _take_away(used, offer.invite)
        after = {"because": "a member already"}
        _commit(
            used,
            _entry(offer.invite, AuditAction.INVITATION_REVOKED, by, before={"role": offer.invite.role}, after=after),
        )


def accept_as_new(offer: Offer, *, name: str, password: str, origin: str) -> User:
    """An account for the invited address, and the membership, in one transaction.

    Raises Conflict where the address has an account by now, or the invitation has ended.
    """
    unique, account = accounts.draft(email=offer.invite.email, name=name, password=password)
    user = User.from_item(account)
    by = Actor(user.id, user.email, origin)
    transaction = _acceptance(offer, user)
    accounts.add_to(transaction, unique, account)
    entries = [
        _accepted(offer, user, by),
        AuditEntry(
            recording.PLATFORM, AuditAction.USER_CREATED, by, "user", user.id, user.email, after={"name": user.name}
        ),
    ]
    try:
        _seat(offer, user, transaction, entries)
    except TransactionRefused as error:
        if error.reason(accounts.ACCOUNT):
            raise Conflict("This address has an account by now. Sign in with it.", field="name") from error
        raise Conflict(_GONE) from error
    return user


def _acceptance(offer: Offer, user: User) -> Transaction:
    """The transaction that takes the invitation away and makes the membership."""
    if offer.expired:
        raise Conflict("This invitation has expired. Ask for a new one.")
    tenant, transaction = offer.tenant, Transaction()
    _take_away(transaction, offer.invite)
    membership, mirror = members.pair(
        user=user,
        tenant_id=tenant.tenant_id,
        tenant_name=tenant.name,
        tenant_slug=tenant.slug,
        role=Role(offer.invite.role),
    )
    transaction.put(membership, name=_MEMBERSHIP, condition=MembershipItem.tenant_id.does_not_exist())
    transaction.put(mirror)
    return transaction


def _seat(offer: Offer, user: User, transaction: Transaction, entries: list[AuditEntry]) -> None:
    seats.commit(
        transaction,
        entries,
        tenant_id=offer.tenant.tenant_id,
        seat=seats.member(user.id),
        for_invite=seats.invite(offer.invite.invite_id),
        status=tenant_directory.ACTIVE,
    )


def _accepted(offer: Offer, user: User, by: Actor) -> AuditEntry:
    after = {"role": offer.invite.role, "invited_by": offer.invite.invited_by_name}
    tenant_id = offer.tenant.tenant_id
    return AuditEntry(tenant_id, AuditAction.INVITATION_ACCEPTED, by, "user", user.id, offer.invite.email, after=after)


def _commit(transaction: Transaction, entry: AuditEntry) -> None:
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as error:
        raise Conflict(_GONE) from error


def _entry(invite: InviteItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    return AuditEntry(invite.tenant_id, action, by, "invitation", invite.invite_id, invite.email, **values)
