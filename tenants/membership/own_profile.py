"""Change a person's own profile, which is the account's, and the signature that the person has at one desk.

Name and profile are copied to the member item of each of the person's desks: lists of members show the name, and those
who write to members need zone and language. The account is written first, with its audit row; the copies follow desk by
desk, a change of the name with a row in the trail of the desk. Saving again completes an interrupted run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from django.utils.translation import gettext as _

from portal import plain_text
from portal.dynamo.store import Action as UpdateAction
from portal.dynamo.store import Store, Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from portal.schema import keys
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members
from tenants.membership.stored import MemberItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import Profile, User
from tenants.tenancy.context import TenantContext

SIGNATURE_LIMIT: Final = 600  # characters


def change(user_id: str, *, name: str, profile: Profile, by: Actor, made_from: User | None = None) -> int:
    """Store a person's name and profile in the account and in all their desks, and return how many these are. Raises
    what `accounts.set_profile` does."""
    user = accounts.set_profile(user_id, name=name, profile=profile, by=by, made_from=made_from)
    desks = members.memberships_of(user_id)
    for desk in desks:
        _copy(desk.tenant_id, user, by)
    return len(desks)


def note_zone(user: User, zone: str, *, by: Actor) -> int:
    """Store the zone that a person's browser is in, where they have none, and return in how many desks.

    It is not where two pages tell it at the same time, or the person changes the profile meanwhile: the next page tells
    it again, if there is still none.
    """
    profile = Profile.parse(user.profile)
    if profile.zone:
        return 0
    with suppress(Invalid, Conflict):
        return change(user.id, name=user.name, profile=profile.in_zone(zone), by=by, made_from=user)
    return 0


def _copy(tenant_id: str, user: User, by: Actor) -> None:
    item = Store("tenant", tenant_id).get(MemberItem, keys.tenant, sort=user.id, consistent=True)
    if item is None or (item.name, item.profile or "") == (user.name, user.profile):
        return
    actions: list[UpdateAction] = [MemberItem.name.set(user.name)]
    actions.append(MemberItem.profile.set(user.profile) if user.profile else MemberItem.profile.remove())
    transaction = Transaction()
    transaction.update(MemberItem(tenant_id, user.id), actions, condition=MemberItem.user_id.exists())
    # Which name it was is in the list of members alone, where an erasure finds it.
    entries = [_entry(tenant_id, user.id, user.email, by, {"name": "another one"})] if item.name != user.name else []
    with suppress(TransactionRefused):  # no longer a member
        recording.commit(transaction, entries)


def signature_of(tenant: TenantContext) -> str:
    """Return the signature of the person at work: one read."""
    item = tenant.repository.get(MemberItem, keys.tenant, sort=tenant.user_id, consistent=True)
    return (item.signature or "") if item else ""


def change_signature(tenant: TenantContext, text: str, *, by: Actor) -> None:
    """Store the text that stands under the public replies of the person at work, as they leave by mail.

    Raises Invalid with the field, and NotFound for who is no member any more.
    """
    unshown = _("This text has characters that no letter can show.")
    text = locales.typed_lines(text, limit=SIGNATURE_LIMIT, field="signature", unshown=unshown)
    transaction = Transaction()
    action = MemberItem.signature.set(text) if text else MemberItem.signature.remove()
    transaction.update(MemberItem(tenant.tenant_id, tenant.user_id), [action], condition=MemberItem.user_id.exists())
    after = {"signature": plain_text.amount(len(text), "character") if text else "none"}
    gone = NotFound(_("You are no longer a member of this desk."))
    recording.commit(transaction, [_entry(tenant.tenant_id, tenant.user_id, by.email, by, after)], refused=gone)


def _entry(tenant_id: str, user_id: str, email: str, by: Actor, after: dict[str, str]) -> AuditEntry:
    return AuditEntry(tenant_id, AuditAction.MEMBER_PROFILE_CHANGED, by, "user", user_id, email, {}, after)
