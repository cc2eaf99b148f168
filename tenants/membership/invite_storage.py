"""Store an invitation: three items that are written, renewed and deleted together.

One is the tenant's own, in Tenants.Invites. One is the target of its link, found by one GetItem under a hash of the
link's secret. One is listed to the invited person, and makes sure that an address has one invitation per tenant. The
secret itself is in the mail alone.
"""

from __future__ import annotations

from typing import Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import BATCH_GET_LIMIT, TenantRepository, Transaction
from portal.errors import Invalid
from portal.schema import keys
from tenants.membership import invite_tokens
from tenants.membership import keys as membership_keys
from tenants.membership.items import InvitedItem, InviteItem, InviteLinkItem
from tenants.membership.tables import INVITES
from tenants.tenancy.roles import Role
from tenants.tenancy.stored import MembershipItem

# Names of members of a transaction.
ADDRESS: Final = "one invitation per address"
INVITATION: Final = "invitation"
PROVIDER: Final = "provider"  # in place of an inviter's id: whoever runs the platform invited a desk's first owner


def pending(repository: TenantRepository) -> list[InviteItem]:
    """Return the tenant's invitations that are neither used nor revoked, the latest first: one Query up to 1 MB."""
    stored = repository.query_all(INVITES, keys.tenant)
    return sorted(map(InviteItem.from_raw_data, stored), key=lambda invite: invite.sent_at, reverse=True)


def waiting_for(address: str) -> list[InvitedItem]:
    """Return up to 100 invitations that an address may accept: one Query, and one BatchGetItem if there are any."""
    try:
        partition = membership_keys.invited(address)
    except ValueError:
        return []
    unexpired = [item for item in InvitedItem.query(partition) if not is_expired(item)][:BATCH_GET_LIMIT]
    if not unexpired:
        return []
    inviters = platform.get_all([(MembershipItem, item.invited_by, item.tenant_id) for item in unexpired])
    return [
        item
        for item, inviter in zip(unexpired, inviters, strict=True)
        if (role := role_of_inviter(item, inviter)) and may_invite(role, Role(item.role))
    ]


def role_of_inviter(invite: InviteItem | InvitedItem, membership: MembershipItem | None) -> Role | None:
    """Return the role with which an invitation was sent, as it is now; None where the inviter has left."""
    if invite.invited_by == PROVIDER:
        return Role.OWNER
    return Role(membership.role) if membership else None


def is_expired(invite: InviteItem | InvitedItem) -> bool:
    """Tell whether an invitation is past its time."""
    return bool(invite.expires_at <= clock.stamp())


def may_invite(inviter: Role, role: Role) -> bool:
    """Tell whether somebody with the first role may invite people to the second."""
    return inviter.at_least(Role.ADMIN) and inviter.at_least(role)


def renew(invite: InviteItem) -> str:
    """Give an invitation a new secret and a new time to live, and return the secret, which is not stored."""
    secret = invite_tokens.new()
    now = clock.now()
    invite.link = invite_tokens.link_key(secret)
    invite.sent_at, invite.expires_at = clock.stamp(now), clock.stamp(now + invite_tokens.LIFETIME)
    return secret


def put(transaction: Transaction, invite: InviteItem, *, tenant_name: str, replacing: str | None = None) -> None:
    """Add the three items of an invitation to a transaction. Raises Invalid for an address that is none.

    `replacing` is the link that the stored invitation must still have, None for a new invitation. The parts INVITATION
    and, for a new one, ADDRESS can be refused.
    """
    try:
        invited = _listed(invite, tenant_name)
    except ValueError as error:
        raise Invalid("That is not an e-mail address.", field="email") from error
    transaction.put(_link(invite), condition=InviteLinkItem.pk.does_not_exist())
    if replacing is None:
        transaction.put(invited, condition=InvitedItem.tenant_id.does_not_exist(), name=ADDRESS)
        transaction.put(invite, condition=InviteItem.tenant_id.does_not_exist(), name=INVITATION)
    else:
        transaction.put(invited)
        transaction.put(invite, condition=InviteItem.link == replacing, name=INVITATION)
        transaction.delete(InviteLinkItem(replacing))


def rename_sender(
    transaction: Transaction, invite: InviteItem, *, sender: str, sender_name: str, tenant_name: str
) -> None:
    """Let a stored invitation, if it is still the one that was read, be from somebody else: the part INVITATION."""
    link = invite.link
    invite.invited_by, invite.invited_by_name = sender, sender_name
    transaction.put(_link(invite), condition=InviteLinkItem.pk.exists())
    transaction.put(_listed(invite, tenant_name))
    transaction.put(invite, condition=InviteItem.link == link, name=INVITATION)


def delete(transaction: Transaction, invite: InviteItem) -> None:
    """Delete the three items of an invitation if it is still the one that was read: the part INVITATION."""
    unchanged = (InviteItem.link == invite.link) & (InviteItem.role == invite.role)
    transaction.delete(InviteItem(invite.tenant_id, invite.invite_id), condition=unchanged, name=INVITATION)
    transaction.delete(InviteLinkItem(invite.link))
    transaction.delete(InvitedItem(membership_keys.invited(invite.email), invite.tenant_id))


def _link(invite: InviteItem) -> InviteLinkItem:
    return InviteLinkItem(
        invite.link, tenant_id=invite.tenant_id, invite_id=invite.invite_id, invited_by=invite.invited_by
    )


def _listed(invite: InviteItem, tenant_name: str) -> InvitedItem:
    return InvitedItem(
        membership_keys.invited(invite.email),
        invite.tenant_id,
        invite_id=invite.invite_id,
        role=invite.role,
        tenant_name=tenant_name,
        invited_by=invite.invited_by,
        invited_by_name=invite.invited_by_name,
        expires_at=invite.expires_at,
    )
