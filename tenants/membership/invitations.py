"""Invite people to a tenant, send an invitation again, revoke it. Admins and owners do this.

An invitation is three items that are written, renewed and deleted together. One is the tenant's own, in
Tenants.Invites. One is the target of its link, found by one GetItem under a hash of the link's secret. One is listed to
the invited person, and makes sure that an address has one invitation per tenant. The secret is in the mail alone.
A mail that did not get through is noted in a table of its own: mail is carried as the tenant, whose role changes no
invitation. With that right it could raise the role that one gives.

An invitation stands with the right of the member who sent it last (`accepting.py`). Mails are limited: an invitation
is sent again after a pause, and a tenant sends a limited number in an hour, counted in the same transaction.

Source: the isolation model, "Row creation happens only through super-admin tenant-create, invite-accept, or the seed".
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import BATCH_GET_LIMIT, Action, Store, Transaction
from portal.errors import ConditionFailed, Conflict, Forbidden, Invalid, NotFound, TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members, seats
from tenants.membership.stored import (
    InvitedItem,
    InviteItem,
    InviteLinkItem,
    UnreachedItem,
    invite_link_key,
    invited_key,
)
from tenants.sign_in import accounts, suppressed_addresses
from tenants.sign_in.stored import ThrottleItem, attempts_key, folded
from tenants.tenancy.context import Role, TenantContext, for_system
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tenants.tenancy.stored import MembershipItem, TenantItem

LIFETIME: Final = timedelta(days=7)  # of an invitation and its link
_TOKEN_BYTES: Final = 32  # 43 characters of an address


def link_key(token: str) -> str:
    """Hash a token into the partition key of what its link leads to."""
    return invite_link_key(keys.digest(token, size=32))


# Names of members of a transaction.
ADDRESS: Final = "one invitation per address"
INVITATION: Final = "invitation"
PROVIDER: Final = "provider"  # in place of an inviter's id: whoever runs the platform invited a desk's first owner


def pending(repository: Store) -> list[InviteItem]:
    """Return the tenant's invitations that are neither used nor revoked, the latest first: one Query up to 1 MB."""
    return sorted(repository.query_all(InviteItem, keys.tenant), key=lambda invite: invite.sent_at, reverse=True)


def waiting_for(address: str) -> list[InvitedItem]:
    """Return up to 100 invitations that an address may accept: one Query, and one BatchGetItem if there are any."""
    try:
        partition = invited_key(address)
    except ValueError:
        return []
    unexpired = [item for item in PLATFORM.query_all(InvitedItem, partition) if not is_expired(item)][:BATCH_GET_LIMIT]
    if not unexpired:
        return []
    inviters = PLATFORM.get_all([(MembershipItem, item.invited_by, item.tenant_id) for item in unexpired])
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
    secret = secrets.token_urlsafe(_TOKEN_BYTES)
    now = clock.now()
    invite.link = link_key(secret)
    invite.sent_at, invite.expires_at = clock.stamp(now), clock.stamp(now + LIFETIME)
    return secret


def put_invite(transaction: Transaction, invite: InviteItem, *, tenant_name: str, replacing: str | None = None) -> None:
    """Add the three items of an invitation to a transaction. Raises Invalid for an address that is none.

    `replacing` is the link that the stored invitation must still have, None for a new invitation. The parts INVITATION
    and, for a new one, ADDRESS can be refused.
    """
    try:
        invited = _listed(invite, tenant_name)
    except ValueError as error:
        raise Invalid(_("That is not an e-mail address."), field="email") from error
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


def delete_invite(transaction: Transaction, invite: InviteItem) -> None:
    """Delete the three items of an invitation if it is still the one that was read: the part INVITATION."""
    unchanged = (InviteItem.link == invite.link) & (InviteItem.role == invite.role)
    transaction.delete(InviteItem(invite.tenant_id, invite.invite_id), condition=unchanged, name=INVITATION)
    transaction.delete(InviteLinkItem(invite.link))
    transaction.delete(InvitedItem(invited_key(invite.email), invite.tenant_id))


def _link(invite: InviteItem) -> InviteLinkItem:
    return InviteLinkItem(
        invite.link, tenant_id=invite.tenant_id, invite_id=invite.invite_id, invited_by=invite.invited_by
    )


def _listed(invite: InviteItem, tenant_name: str) -> InvitedItem:
    return InvitedItem(
        invited_key(invite.email),
        invite.tenant_id,
        invite_id=invite.invite_id,
        role=invite.role,
        tenant_name=tenant_name,
        invited_by=invite.invited_by,
        invited_by_name=invite.invited_by_name,
        expires_at=invite.expires_at,
    )


WHY_LIMIT: Final = 400  # characters
_KEPT: Final = timedelta(days=30)


def unreached(repository: Store) -> dict[str, UnreachedItem]:
    """Return what is known of a tenant's invitations, by the invitation's id: one Query up to 1 MB."""
    return {item.invite_id: item for item in repository.query_all(UnreachedItem, keys.tenant)}


def is_about(item: UnreachedItem, invite: InviteItem) -> bool:
    """Tell whether it is about the mail that was sent last, and not about one before."""
    return bool(item.sent_at >= invite.sent_at)


def note_unreached(repository: Store, invite_id: str, *, why: str, sent_at: str) -> None:
    """Write it down of the mail that was written at `sent_at`: one UpdateItem. Nothing where a later mail is known."""
    if not keys.USER_ID.match(invite_id):
        return
    actions: list[Action] = [
        UnreachedItem.sent_at.set(sent_at),
        UnreachedItem.at.set(clock.stamp()),
        UnreachedItem.why.set(why[:WHY_LIMIT]),
        UnreachedItem.expires_at.set(_expiry()),
    ]
    newest = UnreachedItem.sent_at.does_not_exist() | (UnreachedItem.sent_at <= sent_at)
    with suppress(ConditionFailed):
        repository.update(UnreachedItem(repository.tenant_id, invite_id), actions, condition=newest)


def forget_why(repository: Store, invite_id: str) -> None:
    """Take away what a mail server said, in which an address may be: one UpdateItem. Nothing where nothing is known."""
    item, known = UnreachedItem(repository.tenant_id, invite_id), UnreachedItem.why.exists()
    with suppress(ConditionFailed):
        repository.update(item, [UnreachedItem.why.set("")], condition=known)


def put_unreached(transaction: Transaction, invite: InviteItem, *, why: str) -> None:
    """Add to the transaction of an invitation that no mail brings it."""
    transaction.put(
        UnreachedItem(
            invite.tenant_id,
            invite.invite_id,
            sent_at=invite.sent_at,
            at=clock.stamp(),
            why=why[:WHY_LIMIT],
            expires_at=_expiry(),
        )
    )


def _expiry() -> int:
    return int(time.time() + _KEPT.total_seconds())


MOST_AT_ONCE: Final = 50  # addresses in one pasted list
MAILS_PER_HOUR: Final = 100  # of one tenant
PAUSE: Final = timedelta(minutes=5)  # before an invitation can be sent again
GONE: Final = gettext_noop("This invitation has just been used, revoked or sent again.")
_HOUR: Final = 3600  # seconds
_MAILS: Final = "limit of mails"  # names a member of a transaction


# Writes the mail of an invitation, given the secret of its link.
Write = Callable[[InviteItem, str], OutgoingMail]


@dataclass(frozen=True)
class SentInvite:
    """An invitation that is stored. `secret` belongs in the link and is stored nowhere.

    `mails` are still to be sent, by who asked for the invitation. `unreached` says why its address gets none, "" where
    it does.
    """

    invite: InviteItem
    secret: str
    mails: Sequence[OutgoingMail] = ()
    unreached: str = ""


@dataclass(frozen=True)
class InviteOutcome:
    """The outcome for one address of a list: sent, or refused with a sentence."""

    address: str
    sent: SentInvite | None
    error: str = ""


def invite_all(
    tenant: TenantContext, *, addresses: Sequence[str], role: Role, by: Actor, write: Write | None = None
) -> list[InviteOutcome]:
    """Invite each address in a transaction of its own, and return the outcomes. Raises Invalid and Forbidden.

    The mail of `write` is written in the transaction, or is in the outcome for the caller to send; without `write`
    there is no mail. An address that mail does not reach is invited, and told so in the outcome.
    """
    if len(addresses) > MOST_AT_ONCE:
        raise Invalid(
            _("You can invite up to %(most)s people at once. This list has %(count)s.")
            % {"most": MOST_AT_ONCE, "count": len(addresses)}
        )
    _refuse_above(tenant, role)
    wanted = [*dict.fromkeys(map(accounts.normal_address, addresses))]
    reads: list[Callable[[], Any]] = [lambda: accounts.ids_of(wanted), lambda: suppressed_addresses.of(wanted)]
    ids, suppressed = fan_out(reads)
    inside = {person.id: person.name for person in members.members_with(tenant.repository, ids.values())}
    names = {address: inside[user_id] for address, user_id in ids.items() if user_id in inside}
    outcomes = []
    for address in wanted:
        if address in names:
            outcomes.append(InviteOutcome(address, None, _("%(name)s is already a member.") % {"name": names[address]}))
            continue
        try:
            unreached = suppressed[address].sentence if address in suppressed else ""
            sent = _invite(tenant, address, role, by, write, unreached)
            outcomes.append(InviteOutcome(address, sent))
        except (Conflict, Invalid) as error:
            outcomes.append(InviteOutcome(address, None, error.message))
    return outcomes


def _invite(
    tenant: TenantContext, address: str, role: Role, by: Actor, write: Write | None, unreached: str
) -> SentInvite:
    invite = InviteItem(tenant.tenant_id, accounts.new_id(), email=address, role=role.value, created_at=clock.stamp())
    entry = entry_of(invite, AuditAction.MEMBER_INVITED, by, after={"role": role.value})
    return send(tenant, invite, None, entry, write, unreached)


@dataclass(frozen=True)
class FirstOwner:
    """The invitation of a new tenant's owner, to be written with the tenant itself. Raises Invalid for an address that
    is none, or that mail does not reach."""

    address: str
    write: Callable[[TenantContext], Write]
    mails: list[OutgoingMail] = field(default_factory=list)  # still to be sent once it is written

    def __post_init__(self) -> None:
        address = accounts.normal_address(self.address)
        try:
            validate_email(address)
        except ValidationError:
            raise Invalid(_("That is not an e-mail address."), field="email") from None
        object.__setattr__(self, "address", address)
        if (suppressed := suppressed_addresses.of([address]).get(address)) is not None:
            raise Invalid(suppressed.sentence, field="email")

    def add(self, transaction: Transaction, tenant: TenantItem) -> None:
        context = for_system(tenant)
        invite = InviteItem(tenant.tenant_id, accounts.new_id(), email=self.address, role=Role.OWNER.value)
        invite.created_at, invite.invited_by = clock.stamp(), PROVIDER
        invite.invited_by_name = context.user_name
        secret = renew(invite)
        self.mails[:] = outgoing.join(transaction, [self.write(context)(invite, secret)])
        put_invite(transaction, invite, tenant_name=tenant.name)


def of_first_owner(tenant: TenantContext) -> InviteItem | None:
    """Return the invitation of a tenant's first owner while it is not accepted: one Query."""
    waiting = pending(tenant.repository)
    return next((invite for invite in waiting if invite.invited_by == PROVIDER), None)


def resend(tenant: TenantContext, *, invite_id: str, by: Actor, write: Write | None = None) -> SentInvite:
    """Send an invitation again, with a new link and the full time to accept it. The old link stops working.

    The invitation then stands with the right of the person who sends it again; `write` is as in `invite_all`. Raises
    NotFound, Forbidden, and Conflict if it was sent a moment ago, if it was used or revoked meanwhile, or if the tenant
    is full or has sent too much.
    """
    invite = require_pending(tenant, invite_id)
    seconds = (clock.parse(invite.sent_at) + PAUSE - clock.now()).total_seconds()
    if seconds > 0:
        raise Conflict(
            _("This invitation was sent a moment ago. You can send it again in %(wait)s.") % {"wait": _minutes(seconds)}
        )
    suppressed = suppressed_addresses.of([invite.email]).get(invite.email)
    entry = entry_of(invite, AuditAction.INVITATION_RESENT, by)
    return send(tenant, invite, invite.link, entry, write, suppressed.sentence if suppressed else "")


def send(
    tenant: TenantContext,
    invite: InviteItem,
    replacing: str | None,
    entry: AuditEntry,
    write: Write | None,
    unreached: str,
) -> SentInvite:
    """Store a new invitation, or a renewed one in place of the stored one with the link `replacing`. That of an auditor
    takes no seat. Raises Conflict as `resend` does, and for an address that has an invitation."""
    invite.invited_by = tenant.user_id or PROVIDER  # who runs the platform is no member
    invite.invited_by_name = tenant.user_name
    secret = renew(invite)
    transaction = Transaction()
    if unreached:
        put_unreached(transaction, invite, why=unreached)
    mails = outgoing.join(transaction, [write(invite, secret)]) if write and not unreached else ()
    put_invite(transaction, invite, tenant_name=tenant.name, replacing=replacing)
    if tenant.user_id:
        member_changes.require_role(transaction, tenant)
    _count_mail(transaction, tenant.tenant_id)
    try:
        if invite.role == Role.AUDITOR:
            recording.commit(transaction, [entry])
        else:
            seats.commit(transaction, [entry], tenant_id=tenant.tenant_id, seat=seats.invite(invite.invite_id))
    except TransactionRefused as refused:
        if refused.reason(_MAILS):
            wait = _minutes(_HOUR - time.time() % _HOUR)
            raise Conflict(
                _("This desk has sent %(count)s invitations within an hour. You can send more in %(wait)s.")
                % {"count": MAILS_PER_HOUR, "wait": wait}
            ) from refused
        if tenant.user_id and refused.reason(member_changes.ACTOR):
            raise Conflict(_("Your role has just changed.")) from refused
        if replacing is None and refused.reason(ADDRESS):
            raise Conflict(_("This address already has an invitation. You can send it again.")) from refused
        raise Conflict(_(GONE)) from refused
    return SentInvite(invite, secret, mails, unreached)


def _count_mail(transaction: Transaction, tenant_id: str) -> None:
    """Count one more mail of the tenant in this hour, on condition that there is room: the part _MAILS."""
    now = int(time.time())
    counter = ThrottleItem(attempts_key("invitations", tenant_id, now // _HOUR))
    actions: list[Action] = [ThrottleItem.attempts.add(1), ThrottleItem.expires_at.set(now + 2 * _HOUR)]
    has_room = ThrottleItem.attempts.does_not_exist() | (ThrottleItem.attempts < MAILS_PER_HOUR)
    transaction.update(counter, actions, condition=has_room, name=_MAILS)


def revoke(tenant: TenantContext, *, invite_id: str, by: Actor) -> InviteItem:
    """Delete an invitation, so that its link stops working and the address can be invited anew.

    Raises NotFound, Forbidden, and Conflict if it was used, revoked or sent again meanwhile.
    """
    invite = require_pending(tenant, invite_id)
    transaction = Transaction()
    delete_invite(transaction, invite)
    member_changes.require_role(transaction, tenant)
    entry = entry_of(invite, AuditAction.INVITATION_REVOKED, by, before={"role": invite.role})
    recording.commit(transaction, [entry], refused=Conflict(_(GONE)))
    return invite


def require_pending(tenant: TenantContext, invite_id: str) -> InviteItem:
    """Return a pending invitation that the person at work may change. Raises NotFound and Forbidden."""
    invite = None
    if keys.USER_ID.match(invite_id):
        invite = tenant.repository.get(InviteItem, keys.tenant, sort=invite_id, consistent=True)
    if invite is None:
        raise NotFound(_("This invitation no longer exists. It may have been used or revoked."))
    _refuse_above(tenant, Role(invite.role))
    return invite


def _refuse_above(tenant: TenantContext, role: Role) -> None:
    if not may_invite(tenant.role, role):
        raise Forbidden(_("Only %(role)s can invite somebody as %(role)s.") % {"role": role.with_article})


def _minutes(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return ngettext("%(num)s minute", "%(num)s minutes", minutes) % {"num": minutes}


def entry_of(invite: InviteItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    return AuditEntry(invite.tenant_id, action, by, "invitation", invite.invite_id, invite.email, **values)


def _places(person: DeskPerson, names: Collection[str], invite: InviteItem) -> Iterator[PersonalPlace]:
    if folded(invite.email) == person.address:
        yield PersonalPlace(gettext_noop("invitation"), excerpt=invite.sent_at)
    elif person.is_who(invite.invited_by):
        yield PersonalPlace(gettext_noop("sender of an invitation"), excerpt=invite.sent_at)


def _replace(tenant: TenantContext, new: NewName, invite: InviteItem) -> None:
    transaction = Transaction()
    if folded(invite.email) == new.person.address:
        delete_invite(transaction, invite)
        forget_why(tenant.repository, invite.invite_id)
    else:  # nobody can accept it any more: its sender is no member
        rename_sender(transaction, invite, sender=new.pseudonym, sender_name=new.name, tenant_name=tenant.name)
    recording.commit(transaction, [])


PEOPLE: Final = PersonalData(lambda tenant, person: pending(tenant.repository), _places, _replace)
