"""Change who belongs to a tenant: add people, give them another role, remove them.

A membership is stored twice, as the person sees it and as the tenant sees it. Each change writes both and its audit row
in one transaction, on condition that nobody has changed the membership meanwhile.

A tenant always has an owner. A change that ends somebody's ownership is conditional on another owner: on the one who
makes the change, or else on one that is looked up. Transactions are serialisable, so the last of any number of
simultaneous changes finds nobody to name and is refused. No counter can drift, and no item is shared by all changes.

Source: AWS, "Amazon DynamoDB transactions: how it works", isolation levels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo.client import Item
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Condition, Store, Transaction
from portal.errors import Conflict, Forbidden, Invalid, NotFound, TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members, seats
from tenants.membership.members import ListedMember, Member
from tenants.membership.stored import MemberItem
from tenants.sign_in.accounts import User
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.stored import MembershipItem, TenantItem

# Names of members of a transaction.
MEMBERSHIP: Final = "membership"
ACTOR: Final = "role of the actor"
MOST_TOLD: Final = 20  # owners who get a mail: each is a member of the transaction
_OTHER_OWNER: Final = "another owner"
_NAME_LIMIT: Final = 60  # characters of a name in a mail
_REASON_LIMIT: Final = 300  # characters of an operator's reason in a mail
ONLY_OWNER: Final = gettext_noop("Only owner. Add another owner first.")
CHANGED: Final = gettext_noop("Somebody else has just changed this membership. Please check and try again.")


_own_items: Final[list[Callable[[str, str], Item]]] = []


def declare_own_item(key_of: Callable[[str, str], Item]) -> None:
    """Let an item go with the membership of the person whom it belongs to. `key_of` returns it with its key alone, for
    a tenant's id and a user id; its table is not placed, and the platform role may delete there."""
    _own_items.append(key_of)


def add(*, user: User, tenant: TenantItem, role: Role, by: Actor, reason: str = "") -> None:
    """Make a person a member. Operators do this, by their admin or by commands.

    Where there is a reason, the owners get a mail with it. Raises Conflict if the person is a member already, or if
    the tenant is full or closed, and Forbidden where operators add themselves.
    """
    _refuse_oneself(user.id, by)
    tenant_directory.refuse_closed(tenant)
    transaction = Transaction()
    put_member(transaction, user=user, tenant=tenant, role=role)
    entry = _entry(tenant.tenant_id, AuditAction.MEMBER_ADDED, by, user.id, user.email, after=role, reason=reason)
    later = _tell_owners(transaction, tenant, user, role, reason) if reason else ()
    try:
        seats.commit(transaction, [entry], tenant_id=tenant.tenant_id, seat=seats.member(user.id))
    except TransactionRefused as error:
        raise Conflict(
            _("%(email)s is already a member of %(desk)s.") % {"email": user.email, "desk": tenant.name}
        ) from error
    outgoing.send_all(later)


def _refuse_oneself(user_id: str, by: Actor) -> None:
    if user_id == by.id:
        raise Forbidden(_("Nobody gives a role to their own account: ask another operator, or an owner of the desk."))


def _tell_owners(
    transaction: Transaction, tenant: TenantItem, person: Member | User, role: Role, reason: str
) -> Sequence[OutgoingMail]:
    """Add mails to the owners of a desk to a transaction: an operator gives this role. Return those to send after."""
    owners = members.owners_of(Store("tenant", tenant.tenant_id))[:MOST_TOLD]
    letters = [_letter(owner, person=person, role=role, tenant=tenant, reason=reason) for owner in owners]
    return outgoing.join(transaction, letters)


def _letter(owner: Member, *, person: Member | User, role: Role, tenant: TenantItem, reason: str) -> OutgoingMail:
    """Write the mail that tells an owner of a desk that an operator gave somebody a role in it."""
    desk = plain_text.named(tenant.name, limit=_NAME_LIMIT)
    to, who = (plain_text.named(one.name, limit=_NAME_LIMIT) for one in (owner, person))
    with locales.shown_in(owner.locale_at(context.for_system(tenant))):
        made = _("An operator of Pooldesk made %(name)s (%(email)s) %(role)s in %(desk)s.")
        lines = (
            _("Hello %(name)s,") % {"name": to},
            made % {"name": who, "email": person.email, "role": role.with_article, "desk": desk},
            _("The reason given: %(reason)s") % {"reason": plain_text.without_controls(reason, limit=_REASON_LIMIT)},
            _(
                "Your audit trail has the operator's name. If you did not expect this, remove the person on the page "
                "Members, and tell whoever runs this installation of Pooldesk."
            ),
        )
        subject = _("An operator changed who is in %(desk)s") % {"desk": desk}
    return OutgoingMail(
        to=owner.email,
        subject=subject,
        text="\n\n".join(lines) + "\n",
        kind="membership_by_operator",
        about=f"member/{person.id}",
        tenant_id=tenant.tenant_id,
        queues=tuple(json.loads(tenant.queues)) if tenant.queues else (),
    )


def put_member(transaction: Transaction, *, user: User, tenant: TenantItem | TenantContext, role: Role) -> None:
    """Add both sides of a new membership to a transaction, on condition that there is none but that of an auditor whose
    time is over: the part MEMBERSHIP. Raises Invalid for the role of an auditor, who is no member."""
    refuse_auditor(role)
    at = clock.stamp()
    membership = MembershipItem(
        user.id,
        tenant.tenant_id,
        role=role.value,
        tenant_name=tenant.name,
        tenant_slug=tenant.slug,
        created_at=at,
    )
    mirror = MemberItem(tenant.tenant_id, user.id, name=user.name, email=user.email, role=role.value, created_at=at)
    mirror.profile = user.profile or None
    transaction.put(membership, name=MEMBERSHIP, condition=none_that_counts(at))
    transaction.put(mirror)


def none_that_counts(at: str) -> Condition:
    """Return the condition that somebody has no membership, or one that was over at this stamp."""
    condition: Condition = MembershipItem.tenant_id.does_not_exist() | (MembershipItem.ends_at <= at)
    return condition


def refuse_auditor(role: Role | None) -> None:
    """Raise Invalid for the role that no member has: auditors are invited for a time."""
    if role is Role.AUDITOR:
        raise Invalid(_("An auditor is no member. Invite them on the page Auditors."))


def require_role(transaction: Transaction, tenant: TenantContext) -> None:
    """Make a transaction depend on the person at work still having their role in the tenant: the part ACTOR.

    Where it is no person, it depends on what the context names in place of a membership.
    """
    if tenant.standing is not None:
        tenant.standing.require(transaction, name=ACTOR)
        return
    membership = MembershipItem(tenant.user_id, tenant.tenant_id)
    transaction.check(membership, MembershipItem.role == tenant.role.value, name=ACTOR)


def blame_standing(tenant: TenantContext, refused: TransactionRefused) -> None:
    """Raise why a system at work has no right to it any more, where that is what refused the transaction."""
    if tenant.standing is not None and ACTOR in refused.names and refused.reason(ACTOR):
        tenant.standing.blame()


def set_role(*, user_id: str, tenant_id: str, role: Role, seen: Role, by: Actor, reason: str = "") -> None:
    """Give a member another role. Operators do this; `seen` is the role that their form showed, `reason` as in `add`.

    Raises Conflict for somebody who is no member, who no longer has the role `seen`, or who is the only owner, and in a
    closed tenant; Forbidden as `add` does.
    """
    _refuse_oneself(user_id, by)
    tenant_directory.refuse_closed(tenant_directory.get(tenant_id))
    person = _member(tenant_id, user_id)
    if person.role is not seen:
        raise Conflict(_(CHANGED))
    action = AuditAction.MEMBER_ROLE_CHANGED
    commit(tenant_id, person, to=role, action=action, by=by, reason=reason)


def remove(*, user_id: str, tenant_id: str, by: Actor) -> None:
    """Remove a member, from their next click on. Operators do this. Raises Conflict as `set_role` does."""
    commit(tenant_id, _member(tenant_id, user_id), to=None, action=AuditAction.MEMBER_REMOVED, by=by)


def commit(
    tenant_id: str,
    person: Member,
    *,
    to: Role | None,
    action: AuditAction,
    by: Actor,
    context: TenantContext | None = None,
    reason: str = "",
) -> None:
    """Give a member another role, or remove the member if `to` is None.

    `person` is the member as read before. An operator has a `reason`, which the owners get by mail. `context` is given
    where somebody acts in their own tenant; the change then depends on that person's role too. Raises Conflict for the
    only owner, and if the membership, or the role of the person who acts, has changed.
    """
    refuse_auditor(to)
    transaction = Transaction()
    membership, mirror = MembershipItem(person.id, tenant_id), MemberItem(tenant_id, person.id)
    unchanged = MembershipItem.role == person.role.value
    if to is None:
        transaction.delete(membership, condition=unchanged, name=MEMBERSHIP)
        transaction.delete(mirror)
        for key_of in _own_items:
            transaction.delete(key_of(tenant_id, person.id))
    else:
        transaction.update(membership, [MembershipItem.role.set(to.value)], condition=unchanged, name=MEMBERSHIP)
        transaction.update(mirror, [MemberItem.role.set(to.value)])
    acts_on_another = context is not None and context.user_id != person.id
    if context is not None and acts_on_another:
        require_role(transaction, context)
    later = _tell_owners(transaction, tenant_directory.get(tenant_id), person, to, reason) if to and reason else ()
    ends_ownership = person.role is Role.OWNER and to is not Role.OWNER

    def build() -> Transaction:
        # Only an owner may act on another one in the tenant, and that they still are one is a condition already.
        if not ends_ownership or acts_on_another:
            return transaction.copy()
        return _with_another_owner(transaction, tenant_id, person)

    entry = _entry(tenant_id, action, by, person.id, person.email, before=person.role, after=to, reason=reason)
    try:
        recording.commit_built(build, [entry], depending=[_OTHER_OWNER])
    except TransactionRefused as error:
        raise Conflict(_(CHANGED)) from error
    outgoing.send_all(later)


def _with_another_owner(transaction: Transaction, tenant_id: str, person: Member) -> Transaction:
    """Return a copy that depends on somebody else being an owner. Raises Conflict if nobody is."""
    others = members.owners_of(Store("tenant", tenant_id), but=person.id)
    if not others:
        raise Conflict(_(ONLY_OWNER), field="role")
    copy = transaction.copy()
    copy.check(MembershipItem(others[0].id, tenant_id), MembershipItem.role == Role.OWNER.value, name=_OTHER_OWNER)
    return copy


def _member(tenant_id: str, user_id: str) -> Member:
    person = members.member(Store("tenant", tenant_id), user_id)
    if person is None:
        raise Conflict(_("This person is not a member."))
    return person


def _entry(
    tenant_id: str,
    action: AuditAction,
    by: Actor,
    user_id: str,
    email: str,
    *,
    before: Role | None = None,
    after: Role | None = None,
    reason: str = "",
) -> AuditEntry:
    was = {"role": before.value} if before else {}
    now = ({"role": after.value} if after else {}) | ({"reason": reason} if reason else {})
    return AuditEntry(tenant_id, action, by, "user", user_id, email, was, now)


def change_role(tenant: TenantContext, *, user_id: str, to: Role, seen: Role | None = None, by: Actor) -> Member:
    """Give a member who still has the role that was `seen` another one, and return the member as it was.

    Raises NotFound, Invalid for the role that the member has, Forbidden above one's own role, and Conflict for the only
    owner or if somebody else was faster.
    """
    person = member_to_change(tenant, user_id)
    if not tenant.role.at_least(to):
        raise Forbidden(_("Only %(role)s can make somebody %(role)s.") % {"role": to.with_article})
    if seen not in (None, person.role, to):
        now = {"name": person.name, "role": person.role.with_article}
        raise Conflict(_("Somebody else has just made %(name)s %(role)s. Choose the role again to replace that.") % now)
    if person.role is to:
        raise Invalid(_("%(name)s is already %(role)s.") % {"name": person.name, "role": to.with_article})
    commit(tenant.tenant_id, person, to=to, action=AuditAction.MEMBER_ROLE_CHANGED, by=by, context=tenant)
    return person


def remove_member(tenant: TenantContext, *, user_id: str, by: Actor) -> Member:
    """Remove a member, or leave: access ends at once. Return the member as it was. Raises what `change_role` does."""
    person = member_to_change(tenant, user_id)
    action = AuditAction.MEMBER_LEFT if person.id == tenant.user_id else AuditAction.MEMBER_REMOVED
    commit(tenant.tenant_id, person, to=None, action=action, by=by, context=tenant)
    return person


def may_touch(tenant: TenantContext, person: ListedMember) -> bool:
    """Tell whether the person at work may change or remove this member."""
    return person.id == tenant.user_id or (tenant.is_admin and tenant.role.at_least(person.role))


def member_to_change(tenant: TenantContext, user_id: str) -> Member:
    """Return the member whom the person at work may change or remove. Raises NotFound and Forbidden."""
    person = members.member(tenant.repository, user_id)
    if person is None:
        raise NotFound(_("This person is not a member."))
    if not may_touch(tenant, person):
        raise Forbidden(
            _("%(name)s is %(role)s, and only %(role)s can do that.")
            % {"name": person.name, "role": person.role.with_article}
        )
    return person


def is_only_owner(tenant: TenantContext) -> bool:
    """Tell whether the person at work is known to be the tenant's only owner, for a page: one Query if the person is an
    owner. False where not all members are at hand; the rule asks all of them when somebody leaves."""
    if not tenant.is_owner:
        return False
    known = members.at_hand(tenant)
    return known.is_all and not any(m.role is Role.OWNER and m.id != tenant.user_id for m in known.people)


# For seeds, proofs and tests, whose tenants these are: without an audit row, a limit or the rule of the last owner.


def seed_member(user: User, tenant: TenantItem | TenantContext, role: Role) -> None:
    """Make a person a member. Raises Conflict if they are one already."""
    transaction = Transaction()
    put_member(transaction, user=user, tenant=tenant, role=role)
    try:
        PLATFORM.transact(transaction)
    except TransactionRefused as error:
        raise Conflict(
            _("%(email)s is already a member of %(desk)s.") % {"email": user.email, "desk": tenant.name}
        ) from error


def unseed_member(user_id: str, tenant_id: str) -> None:
    """Remove a member. Raises Conflict if they are none."""
    transaction = Transaction()
    transaction.delete(MembershipItem(user_id, tenant_id), condition=MembershipItem.tenant_id.exists())
    transaction.delete(MemberItem(tenant_id, user_id))
    try:
        PLATFORM.transact(transaction)
    except TransactionRefused as error:
        raise Conflict(_("This person is not a member.")) from error
