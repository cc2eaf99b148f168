"""Find and replace what a desk knows of a person beside its tickets: invitations, keys, endpoints, verifications.

Only what holds a name or an address in itself is here. The audit trail is found, and never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from delivery.webhooks import endpoints
from delivery.webhooks.items import EndpointItem
from portal.dynamo.repository import Action, Transaction
from portal.errors import ConditionFailed, Conflict, TransactionRefused
from tenants.api_keys import key_changes
from tenants.api_keys.items import ApiKeyItem
from tenants.audit_trail import recording
from tenants.identity.keys import folded
from tenants.membership import invite_storage, members, undelivered_invites
from tenants.membership.items import InviteItem
from tenants.tenancy.context import TenantContext
from tickets.counting import keys
from tickets.counting.items import VerifiedItem, VerifyLeaseItem
from tickets.privacy import personal_places
from tickets.privacy.personal_places import DeskPerson, PersonalPlace

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


def places(tenant: TenantContext, person: DeskPerson) -> Iterator[PersonalPlace]:
    """Yield where the person occurs beside the tickets."""
    if person.user_id and (member := members.member(tenant.repository, person.user_id)):
        yield PersonalPlace(f"member, {member.role.label}")
    for invite in invite_storage.pending(tenant.repository):
        if folded(invite.email) == person.address:
            yield PersonalPlace("invitation", excerpt=invite.sent_at)
        if person.user_id and invite.invited_by == person.user_id:
            yield PersonalPlace("sender of an invitation", excerpt=invite.sent_at)
    for key in key_changes.listed(tenant.repository):
        if person.name and key.created_by == person.name:
            yield PersonalPlace("maker of an API key", excerpt=key.name)
        if person.is_mentioned_in(key.name):
            yield PersonalPlace("API key, its name", is_text=True, excerpt=key.name)
    for endpoint in endpoints.listed(tenant.repository):
        for what, text in (("description", endpoint.description), ("address", endpoint.url)):
            if person.is_mentioned_in(text):
                yield PersonalPlace(f"endpoint, its {what}", is_text=True, excerpt=text)
    verified = tenant.repository.get(VerifiedItem, keys.aggregate, sort=keys.VERIFIED)
    if verified and person.name and verified.by_name == person.name:
        yield PersonalPlace("verification of the numbers", excerpt=verified.started_at)
    if rows := sum(1 for _ in personal_places.trail_rows(tenant, person)):
        yield PersonalPlace(f"audit trail, {rows:,} row{'s' * (rows != 1)}")


def replace(tenant: TenantContext, new: NewName) -> None:
    """Withdraw the person's invitations, and put the new name wherever else theirs stands.

    An address to which a webhook is sent stays. Raises Conflict where somebody else changes the same things.
    """
    try:
        _invitations(tenant, new)
        _keys(tenant, new)
    except TransactionRefused as refused:
        raise Conflict(CHANGED) from refused
    _endpoints(tenant, new)
    _verifications(tenant, new)


def _invitations(tenant: TenantContext, new: NewName) -> None:
    for invite in invite_storage.pending(tenant.repository):
        transaction = Transaction()
        if folded(invite.email) == new.person.address:
            invite_storage.delete(transaction, invite)
            undelivered_invites.forget_why(tenant.repository, invite.invite_id)
        elif new.person.user_id and invite.invited_by == new.person.user_id:
            _send_by_another(transaction, tenant, invite, new)
        if len(transaction):
            recording.commit(transaction, [])


def _send_by_another(transaction: Transaction, tenant: TenantContext, invite: InviteItem, new: NewName) -> None:
    """Let the invitation be from the pseudonym. Nobody can accept it: its sender is no member any more."""
    invite_storage.rename_sender(
        transaction, invite, sender=new.pseudonym, sender_name=new.name, tenant_name=tenant.name
    )


def _keys(tenant: TenantContext, new: NewName) -> None:
    for key in key_changes.listed(tenant.repository, consistent=True):
        actions: list[Action] = []
        if key.created_by in new.names:
            actions.append(ApiKeyItem.created_by.set(new.name))
        if new.texts and new.person.is_mentioned_in(key.name):
            actions.append(ApiKeyItem.name.set(new.person.pattern.sub(new.name, key.name)[: key_changes.NAME_LIMIT]))
        if actions:
            recording.commit(key_changes.updated(key, actions), [])


def _endpoints(tenant: TenantContext, new: NewName) -> None:
    for endpoint in endpoints.listed(tenant.repository) if new.texts else ():
        if new.person.is_mentioned_in(endpoint.description):
            shown = new.person.pattern.sub(new.name, endpoint.description)[: endpoints.DESCRIPTION_LIMIT]
            _set(tenant, endpoint, [EndpointItem.description.set(shown)], EndpointItem.version == endpoint.version)


def _verifications(tenant: TenantContext, new: NewName) -> None:
    verified = tenant.repository.get(VerifiedItem, keys.aggregate, sort=keys.VERIFIED, consistent=True)
    for name in new.names if verified else ():
        if verified and (verified.by_name == name or name in verified.why):
            by = new.name if verified.by_name == name else verified.by_name
            actions = [VerifiedItem.by_name.set(by), VerifiedItem.why.set(verified.why.replace(name, new.name))]
            _set(tenant, verified, actions, VerifiedItem.run == verified.run)
    lease = tenant.repository.get(VerifyLeaseItem, keys.aggregate, sort=keys.VERIFYING, consistent=True)
    if lease and lease.by in new.names:
        _set(tenant, lease, [VerifyLeaseItem.by.set(new.name)], VerifyLeaseItem.by == lease.by)


def _set(tenant: TenantContext, item: Any, actions: Sequence[Action], condition: Any) -> None:
    try:
        tenant.repository.update(item, [*actions], condition=condition)
    except ConditionFailed as failed:
        raise Conflict(CHANGED) from failed
