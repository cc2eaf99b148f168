"""Begin and end that an operator acts as a member, each with its row in the tenant's audit trail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Forbidden, NotFound, TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.nosql import stored as session_keys
from portal.nosql.stored import SessionItem
from portal.schema import keys
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.browsing import TrailFilter, TrailRow
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.sign_in import accounts, impersonation_session
from tenants.sign_in.accounts import User
from tenants.sign_in.impersonation_session import ActingIds, Impersonation
from tenants.sign_in.stored import AccountItem, user_key
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import MembershipItem, TenantItem

# What the rows of the audit trail are about, so that one Query finds all of a tenant's.
ENTITY: Final = ("access", "platform")
READING, WRITING = gettext_noop("reading"), gettext_noop("reading and changing tickets")
WriteMails = Callable[[TenantContext, Impersonation, str], Sequence[OutgoingMail]]


@dataclass(frozen=True)
class Begun:
    """An impersonation that has begun. `cookie` is for the operator's browser."""

    impersonation: Impersonation
    tenant: TenantContext
    cookie: str


def begin(
    tenant_id: str,
    member_id: str,
    *,
    operator: User,
    operator_session: str,
    reason: str,
    may_write: bool,
    write: WriteMails,
) -> Begun:
    """Let the operator act as this member for IMPERSONATION_MINUTES, in the browser with this session.

    The notice of `write` is written in the transaction, if the installation's owners want it. Raises NotFound where
    there is no such member, Forbidden where the member is an operator or nobody may be acted as, and Conflict where the
    account may not sign in, or tickets are to be changed that the member cannot change.
    """
    if settings.IMPERSONATION_MINUTES <= 0:
        raise Forbidden("Nobody acts as a member in this installation: IMPERSONATION_MINUTES is 0.")
    user, tenant = _member(tenant_id, member_id, may_write=may_write)
    impersonation = Impersonation(
        visit=accounts.new_id()[:12],
        operator_session=session_keys.session(operator_session),
        operator_id=operator.id,
        operator_email=operator.email,
        operator_name=operator.name,
        member_id=user.id,
        member_email=user.email,
        member_name=user.name,
        tenant_id=tenant_id,
        until=int(time.time()) + settings.IMPERSONATION_MINUTES * 60,
        may_write=may_write,
    )
    key = get_random_string(32, "abcdefghijklmnopqrstuvwxyz0123456789")
    transaction = Transaction()
    transaction.put(
        impersonation_session.item_of(key, impersonation), condition=SessionItem.session_key.does_not_exist()
    )
    mails = write(tenant, impersonation, reason) if settings.IMPERSONATION_MAILS else ()
    later = outgoing.join(transaction, mails)
    after = {
        "visit": impersonation.visit,
        "reason": reason,
        "rights": WRITING if may_write else READING,
        "until": clock.stamp(impersonation.ends_at),
    }
    by = impersonation.of_operator("admin")
    recording.commit(transaction, [_entry(impersonation, AuditAction.IMPERSONATION_BEGUN, by, after)])
    outgoing.send_all(later)
    return Begun(impersonation, tenant, impersonation_session.write_cookie(ActingIds(key, user.id, tenant_id)))


def _member(tenant_id: str, member_id: str, *, may_write: bool) -> tuple[User, TenantContext]:
    """Return the person and their context in the tenant: one consistent BatchGetItem."""
    try:
        tenant_key, account_key = keys.tenant(tenant_id), user_key(member_id)
    except ValueError as error:
        raise NotFound("There is no such member.") from error
    wanted: list[Any] = [
        (AccountItem, account_key, None),
        (MembershipItem, member_id, tenant_key),
        (TenantItem, tenant_key, None),
    ]
    account, *rest = PLATFORM.get_all(wanted, consistent=True)
    user = User.from_item(account) if account else None
    tenant = context.of_items(user, *rest) if user else None
    if user is None or tenant is None:
        raise NotFound("There is no such member.")
    if user.is_operator:
        raise Forbidden(f"{user.name} is an operator. Nobody acts as an operator.")
    if not user.is_active:
        raise Conflict(f"The account of {user.name} is disabled.")
    if tenant.is_auditor:
        raise Forbidden(f"{user.name} is an auditor. Nobody acts as an auditor.")
    if may_write and not tenant.is_agent:
        raise Conflict(f"{user.name} is {tenant.role.with_article}, and can change no tickets.")
    if tenant.where.purged:
        raise Conflict(f"{tenant.name} is being deleted. Nobody gets in any more.")
    return user, tenant


def end(ids: ActingIds, *, origin: str, why: str) -> Impersonation | None:
    """End an impersonation, and return it; None where it has been ended already."""
    impersonation = impersonation_session.read(ids)
    if impersonation is None:
        return None
    transaction = Transaction()
    item = impersonation_session.item_of(ids.session_key, impersonation)
    transaction.delete(item, condition=SessionItem.session_key.exists())
    try:
        note_end(impersonation, origin=origin, why=why, transaction=transaction)
    except TransactionRefused:
        return None  # by another click at the same moment
    return impersonation


def note_end(impersonation: Impersonation, *, origin: str, why: str, transaction: Transaction | None = None) -> None:
    """Write the row that says that a visit has ended, with what ends it."""
    by, after = impersonation.of_operator(origin), {"visit": impersonation.visit, "why": why}
    entry = _entry(impersonation, AuditAction.IMPERSONATION_ENDED, by, after)
    recording.commit(transaction or Transaction(), [entry])


def _entry(impersonation: Impersonation, action: AuditAction, by: Actor, after: Mapping[str, object]) -> AuditEntry:
    return AuditEntry(impersonation.tenant_id, action, by, *ENTITY, impersonation.member_email, after=after)


@dataclass(frozen=True)
class PlatformVisit:
    """One time that an operator acted as a member, or without a `member` looked at the desk's content in the admin.

    `ended_at` is None where it ran out, or still goes on.
    """

    began_at: datetime
    operator: str
    member: str
    reason: str
    may_write: bool
    until: datetime
    ended_at: datetime | None

    @property
    def goes_on(self) -> bool:
        return self.ended_at is None and self.until > clock.now()


@dataclass(frozen=True)
class PlatformVisits:
    """A page of visits. `next` is the cursor to older ones, None at the end."""

    visits: list[PlatformVisit]
    next: str | None


def visits_page(tenant: TenantContext, *, after: str | None = None) -> PlatformVisits:
    """Return a page of visits: one Query. Raises Invalid for a cursor of another list."""
    trail = browsing.page(
        tenant.repository, only=TrailFilter(entity=ENTITY), after=after, erased=ErasedPeople.parse(tenant.erased)
    )
    ends = {row.after.get("visit"): row.at for row in trail.rows if row.action == AuditAction.IMPERSONATION_ENDED}
    begun = [row for row in trail.rows if row.action in (AuditAction.IMPERSONATION_BEGUN, AuditAction.CONTENT_OPENED)]
    return PlatformVisits([_visit(row, ends.get(row.after.get("visit", row.id))) for row in begun], trail.next)


def _visit(row: TrailRow, ended_at: datetime | None) -> PlatformVisit:
    told = row.after
    return PlatformVisit(
        began_at=row.at,
        operator=row.actor,
        member=row.entity if row.action == AuditAction.IMPERSONATION_BEGUN else "",
        reason=told["reason"],
        may_write=told.get("rights") == WRITING,
        until=clock.parse(told["until"]),
        ended_at=ended_at,
    )
