"""Accept an invitation, which makes the invited person a member.

The transaction deletes the invitation and makes the membership, so a link works once, however often it is sent at the
same moment. It depends on the inviter's right as well: an invitation is void once the member who sent it last has left,
or may no longer give the role.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Forbidden, NotFound, TransactionRefused
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import auditors, invitations, member_changes, seats
from tenants.membership.invitations import GONE
from tenants.membership.stored import InvitedItem, InviteItem, InviteLinkItem, invited_key
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import context
from tenants.tenancy.context import Role
from tenants.tenancy.stored import MembershipItem, TenantItem, TenantStatus

_INVITER: Final = "right of the inviter"  # names a member of a transaction
_UNKNOWN: Final = gettext_noop(
    "It has been used, revoked, or replaced by a newer one. If you got several e-mails, use the latest."
)


@dataclass(frozen=True)
class InviteOffer:
    """An invitation as the invited person meets it. `inviter_role` is None if the inviter is no longer a member."""

    invite: InviteItem
    tenant: TenantItem
    inviter_role: Role | None

    @property
    def role(self) -> Role:
        return Role(self.invite.role)

    @property
    def obstacle(self) -> str:
        """Say in a sentence why the invitation cannot be accepted now; "" if it can."""
        if invitations.is_expired(self.invite):
            return _("This invitation has expired. Ask %(name)s to send it again.") % {
                "name": self.invite.invited_by_name
            }
        if self.inviter_role is None or not invitations.may_invite(self.inviter_role, self.role):
            return self.inviter_left
        if self.invite.access_until and self.invite.access_until <= clock.stamp():
            return _("The time for which you were invited is over. Ask %(name)s for a new invitation.") % {
                "name": self.invite.invited_by_name
            }
        if self.tenant.status in (TenantStatus.CLOSING, TenantStatus.PURGING):
            return _("This desk is being closed.")
        if self.tenant.status != TenantStatus.ACTIVE:
            return _("This desk is suspended at the moment. Please try again later.")
        return ""

    @property
    def inviter_left(self) -> str:
        return _("%(name)s can no longer invite you. Ask an admin of the desk for a new invitation.") % {
            "name": self.invite.invited_by_name
        }


def by_secret(secret: str) -> InviteOffer:
    """Return the invitation of a link: two round trips, for the link and for all it leads to. Raises NotFound."""
    (link,) = PLATFORM.get_all([(InviteLinkItem, invitations.link_key(secret), None)], consistent=True)
    return _offer(link)


def by_address(address: str, tenant_id: str) -> InviteOffer:
    """Return the invitation of an address to a tenant: two round trips. Raises NotFound."""
    if not keys.TENANT_ID.match(tenant_id):
        raise NotFound(_(_UNKNOWN))
    (invited,) = PLATFORM.get_all([(InvitedItem, invited_key(address), tenant_id)], consistent=True)
    return _offer(invited)


def _offer(reference: InviteLinkItem | InvitedItem | None) -> InviteOffer:
    if reference is None:
        raise NotFound(_(_UNKNOWN))
    tenant_id = reference.tenant_id
    wanted: list[Any] = [
        (InviteItem, tenant_id, reference.invite_id),
        (TenantItem, keys.tenant(tenant_id), None),
        (MembershipItem, reference.invited_by, tenant_id),
    ]
    invite, tenant, inviter = PLATFORM.get_all(wanted, consistent=True)
    if invite is None or tenant is None:
        raise NotFound(_(_UNKNOWN))
    return InviteOffer(invite, tenant, invitations.role_of_inviter(invite, inviter))


def accept(offer: InviteOffer, *, user: User, by: Actor) -> None:
    """Make the invited person a member. Somebody who is a member already keeps the role and uses the invitation up.

    Raises Forbidden for somebody else's invitation, and Conflict if it can no longer be accepted, if the tenant is
    full, or for an auditor, who is no member and could be one only once that access has ended.
    """
    if accounts.normal_address(user.email) != offer.invite.email:
        raise Forbidden(_("This invitation is for another address."))
    try:
        _admit(offer, user, by, Transaction())
    except TransactionRefused as refused:
        if not refused.reason(member_changes.MEMBERSHIP):
            raise Conflict(_sentence(offer, refused)) from refused
        here = context.enter(user, offer.tenant.tenant_id)
        if here is not None and here.is_auditor and offer.role is not Role.AUDITOR:
            name = {"name": offer.invite.invited_by_name}
            raise Conflict(
                _("You are an auditor of this desk. Ask %(name)s to end that access, then accept again.") % name
            ) from refused
        _use_up(offer, by)


def accept_as_new(offer: InviteOffer, *, name: str, password: str, origin: str) -> User:
    """Create an account for the invited address, and make it a member, in one transaction.

    Raises Conflict if the address has an account by now, and as `accept` does.
    """
    account = accounts.draft(email=offer.invite.email, name=name, password=password)
    user = User.from_item(account)
    by = Actor(user.id, user.email, origin)
    transaction = Transaction()
    accounts.add_to(transaction, account)
    created = AuditEntry.of_user(user.id, user.email, AuditAction.USER_CREATED, by, after={"name": user.name})
    try:
        _admit(offer, user, by, transaction, created)
    except TransactionRefused as refused:
        if refused.reason(accounts.ACCOUNT):
            raise Conflict(_("This address now has an account. Sign in with it."), field="name") from refused
        raise Conflict(_sentence(offer, refused)) from refused
    return user


def _admit(offer: InviteOffer, user: User, by: Actor, transaction: Transaction, *more: AuditEntry) -> None:
    """Commit the transaction with everything that turns the invitation into a membership, and the audit rows."""
    if offer.obstacle:
        raise Conflict(offer.obstacle)
    invite, tenant_id = offer.invite, offer.tenant.tenant_id
    invitations.delete_invite(transaction, invite)
    if offer.role is Role.AUDITOR:
        auditors.put(transaction, invite, user=user, tenant=offer.tenant)
    else:
        member_changes.put_member(transaction, user=user, tenant=offer.tenant, role=offer.role)
    if invite.invited_by != invitations.PROVIDER:
        rightful = [role.value for role in Role if invitations.may_invite(role, offer.role)]
        inviter = MembershipItem(invite.invited_by, tenant_id)
        transaction.check(inviter, MembershipItem.role.is_in(*rightful), name=_INVITER)
    if offer.role is Role.AUDITOR:
        admitted = auditors.entry_of(tenant_id, user, AuditAction.AUDITOR_ADMITTED, by, after=auditors.told(invite))
        recording.commit(transaction, [admitted, *more])
        return
    after = {"role": invite.role, "invited_by": invite.invited_by_name}
    accepted = AuditEntry(tenant_id, AuditAction.INVITATION_ACCEPTED, by, "user", user.id, invite.email, after=after)
    seats.commit(
        transaction,
        [accepted, *more],
        tenant_id=tenant_id,
        seat=seats.member(user.id),
        instead_of=seats.invite(invite.invite_id),
        status=TenantStatus.ACTIVE,
    )


def _sentence(offer: InviteOffer, refused: TransactionRefused) -> str:
    return offer.inviter_left if refused.reason(_INVITER) else GONE


def _use_up(offer: InviteOffer, by: Actor) -> None:
    """Delete the invitation of somebody who is a member already."""
    invite, transaction = offer.invite, Transaction()
    invitations.delete_invite(transaction, invite)
    before, after = {"role": invite.role}, {"because": "already a member"}
    entry = invitations.entry_of(invite, AuditAction.INVITATION_REVOKED, by, before=before, after=after)
    recording.commit(transaction, [entry], refused=Conflict(GONE))
