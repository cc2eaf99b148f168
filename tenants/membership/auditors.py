"""Give an outsider an auditor's access for a time, change its end, end it, and list who has it. Owners do this.

An auditor is invited as members are, by name, address and purpose, and has an account like everybody. The membership
has the role of an auditor and an end, which each request compares with the clock (`context.of_items`), so that nothing
has to run for the access to end. An auditor is no member: beside the membership there is an item of their own in
Tenants.Auditors and none among the members. So no list of members has one: nobody assigns, mentions or tells an
auditor, and they take no seat. Both items go by DynamoDB's TTL some time after the end; the audit trail says when the
access was given, changed and ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo.store import Store, Transaction
from portal.errors import Conflict, Invalid, NotFound
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import invitations, member_changes, members
from tenants.membership.invitations import SentInvite, Write
from tenants.membership.stored import AuditorItem, InviteItem
from tenants.sign_in import accounts, suppressed_addresses
from tenants.sign_in.accounts import User
from tenants.sign_in.stored import folded
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tenants.tenancy.stored import MembershipItem, TenantItem, TenantStatus

LONGEST: Final = timedelta(days=90)  # of an access, from the moment at which its end is chosen
KEPT: Final = timedelta(days=30)  # for which an access that is over is still listed
NAME_LIMIT: Final = 100  # characters
PURPOSE_LIMIT: Final = 300  # characters


def listed(repository: Store) -> list[AuditorItem]:
    """Return who has or had an auditor's access of late, the latest end first: one Query up to 1 MB."""
    return sorted(
        repository.query_all(AuditorItem, keys.tenant), key=lambda one: (one.ends_at, one.email), reverse=True
    )


def is_over(item: AuditorItem) -> bool:
    """Tell whether the access has ended."""
    return bool(item.ends_at <= clock.stamp())


def invite(
    tenant: TenantContext,
    *,
    name: str,
    address: str,
    purpose: str,
    until: datetime,
    by: Actor,
    write: Write | None = None,
) -> SentInvite:
    """Invite somebody to be an auditor until a moment. `write` is as in `invitations.invite_all`.

    Raises Invalid with the field, and Conflict for a member, for somebody who has the access, and as
    `invitations.send` does.
    """
    address = accounts.normal_address(address)
    name, purpose = _text(name, "name", NAME_LIMIT), _text(purpose, "purpose", PURPOSE_LIMIT)
    _check_end(until)
    known = accounts.id_of(address)
    if known and (person := members.member(tenant.repository, known)) is not None:
        raise Conflict(_("%(name)s is already a member.") % {"name": person.name}, field="email")
    if known and (present := _stored(tenant, known)) is not None and not is_over(present):
        raise Conflict(_("%(name)s is already an auditor. You can change the end below.") % {"name": present.name})
    item = InviteItem(tenant.tenant_id, accounts.new_id(), email=address, role=Role.AUDITOR.value)
    item.created_at, item.access_until = clock.stamp(), clock.stamp(until)
    item.name, item.purpose = name, purpose
    suppressed = suppressed_addresses.of([address]).get(address)
    # Without the name: an erasure knows addresses, and could not take it out of the trail.
    entry = invitations.entry_of(item, AuditAction.AUDITOR_INVITED, by, after=told(item))
    return invitations.send(tenant, item, None, entry, write, suppressed.sentence if suppressed else "")


def told(item: InviteItem) -> dict[str, str]:
    """Return what the audit trail says of the access that an invitation gives."""
    return {"purpose": item.purpose or "", "until": item.access_until or ""}


def put(transaction: Transaction, invitation: InviteItem, *, user: User, tenant: TenantItem) -> None:
    """Add both sides of the access that an invitation gives to a transaction: the part MEMBERSHIP is refused for who is
    a member, or an auditor whose time is not over."""
    at, until = clock.stamp(), invitation.access_until or ""
    membership = MembershipItem(user.id, tenant.tenant_id, role=Role.AUDITOR.value, created_at=at)
    membership.tenant_name, membership.tenant_slug = tenant.name, tenant.slug
    membership.ends_at, membership.kept_until = until, _kept_until(until)
    transaction.put(membership, name=member_changes.MEMBERSHIP, condition=member_changes.none_that_counts(at))
    item = AuditorItem(tenant.tenant_id, user.id, name=user.name, email=user.email, purpose=invitation.purpose or "")
    item.invited_by, item.invited_by_name = invitation.invited_by, invitation.invited_by_name
    item.begun_at, item.ends_at, item.kept_until = at, until, _kept_until(until)
    transaction.put(item)
    transaction.check(TenantItem(keys.tenant(tenant.tenant_id)), TenantItem.status == TenantStatus.ACTIVE.value)


def extend(tenant: TenantContext, *, user_id: str, until: datetime, by: Actor) -> AuditorItem:
    """Give an access that goes on another end, and return it as it was. Raises Invalid, NotFound and Conflict."""
    _check_end(until)
    return _change(tenant, user_id, until, AuditAction.AUDITOR_EXTENDED, by)


def end(tenant: TenantContext, *, user_id: str, by: Actor) -> AuditorItem:
    """End an access from the auditor's next click on, and return it as it was. Owners do it, and auditors for
    themselves. Raises NotFound and Conflict."""
    return _change(tenant, user_id, clock.now(), AuditAction.AUDITOR_ENDED, by)


def _change(tenant: TenantContext, user_id: str, until: datetime, action: AuditAction, by: Actor) -> AuditorItem:
    item, at = find(tenant, user_id), clock.stamp(until)
    if is_over(item):
        raise Conflict(_("The access of %(name)s is over already.") % {"name": item.name})
    unchanged = (MembershipItem.role == Role.AUDITOR.value) & (MembershipItem.ends_at == item.ends_at)
    kept, transaction = _kept_until(at), Transaction()
    transaction.update(
        MembershipItem(user_id, tenant.tenant_id),
        [MembershipItem.ends_at.set(at), MembershipItem.kept_until.set(kept)],
        condition=unchanged,
    )
    transaction.update(
        AuditorItem(tenant.tenant_id, user_id),
        [AuditorItem.ends_at.set(at), AuditorItem.kept_until.set(kept)],
        condition=AuditorItem.user_id.exists(),
    )
    if user_id != tenant.user_id:  # of an auditor's own membership the role is a condition already
        member_changes.require_role(transaction, tenant)
    entry = AuditEntry(
        tenant.tenant_id, action, by, "user", user_id, item.email, {"until": item.ends_at}, {"until": at}
    )
    recording.commit(transaction, [entry], refused=Conflict(_(member_changes.CHANGED)))
    return item


def entry_of(tenant_id: str, user: User, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    """Return the audit entry of an act of an auditor about their access."""
    return AuditEntry(tenant_id, action, by, "user", user.id, user.email, **values)


def find(tenant: TenantContext, user_id: str) -> AuditorItem:
    """Return the access of somebody, over or not: one consistent GetItem. Raises NotFound."""
    if (item := _stored(tenant, user_id)) is None:
        raise NotFound(_("This person is not an auditor."))
    return item


def _stored(tenant: TenantContext, user_id: str) -> AuditorItem | None:
    if not keys.USER_ID.match(user_id):
        return None
    return tenant.repository.get(AuditorItem, keys.tenant, sort=user_id, consistent=True)


def _check_end(until: datetime) -> None:
    if until <= clock.now():
        raise Invalid(_("Choose a day that is not over."), field="until")
    if until > clock.now() + LONGEST:
        raise Invalid(_("Choose a day within the next %(days)s days.") % {"days": LONGEST.days}, field="until")


def _text(text: str, field: str, limit: int) -> str:
    text = text.strip()
    if not text:
        raise Invalid(_("This field is required."), field=field)
    if len(text) > limit or plain_text.has_controls(text):
        raise Invalid(_("Write at most %(limit)s characters, in one line.") % {"limit": limit}, field=field)
    return text


def _kept_until(at: str) -> int:
    return int((clock.parse(at) + KEPT).timestamp())


def _places(person: DeskPerson, names: Collection[str], item: AuditorItem) -> Iterator[PersonalPlace]:
    """Yield where somebody is an auditor, which goes by itself some time after the access, and where they gave one."""
    if person.is_who(item.user_id) or folded(item.email) == person.address:
        yield PersonalPlace(gettext_noop("access as an auditor"), excerpt=item.ends_at)
    elif person.is_who(item.invited_by):
        yield PersonalPlace(gettext_noop("giver of an auditor's access"), excerpt=item.begun_at)


def _replace(tenant: TenantContext, new: NewName, item: AuditorItem) -> None:
    """End the access of the person and forget it, or let one be given by the new name."""
    transaction = Transaction()
    if folded(item.email) == new.person.address:
        is_auditors = MembershipItem.tenant_id.does_not_exist() | (MembershipItem.role == Role.AUDITOR.value)
        transaction.delete(MembershipItem(item.user_id, tenant.tenant_id), condition=is_auditors)
        transaction.delete(item)
    else:
        item.invited_by, item.invited_by_name = new.pseudonym, new.name
        transaction.put(item, condition=AuditorItem.ends_at == item.ends_at)
    recording.commit(transaction, [])


PEOPLE: Final = PersonalData(lambda tenant, person: listed(tenant.repository), _places, _replace)
