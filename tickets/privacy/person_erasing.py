"""Forget one person: replace the name and the id in all tickets by a pseudonym, and the address in texts where wished.

The tenant's item remembers the pseudonym first. Then each ticket is changed in a transaction that holds only if it is
still as it was read; the numbers that are counted stay, under the pseudonym. The row in the audit trail comes last, so
an erasure that was broken off is gone on with by the same command: what is replaced already is not found any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from portal.dynamo.repository import TRANSACTION_LIMIT, Action, Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, Throttled, TransactionRefused
from tenants.audit_trail import erased_people, recording
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity.keys import folded
from tenants.membership import invite_storage, members
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import TenantItem
from tickets.privacy import personal_places
from tickets.privacy.personal_places import Advance, DeskPerson, Raw
from tickets.ticket import keys
from tickets.ticket.items import ActivityItem, ChangeMap, DetailItem, SummaryItem
from tickets.verification.recount import last_number

_ATTEMPTS: Final = 6  # of one ticket, while others change it
_CHANGED = "Somebody else has just changed this desk. Please try again."


@dataclass
class Erasure:
    """Count what was replaced. `name` is the one that the person goes by now."""

    name: str
    tickets: int = 0
    places: int = 0
    texts: int = 0
    names: set[str] = field(default_factory=set)  # by which the desk knew the person


def erase(
    tenant: TenantContext,
    person: DeskPerson,
    *,
    texts: bool = False,
    by: Actor,
    advance: Advance = lambda numbers: None,
) -> Erasure:
    """Erase somebody who is no member. With `texts` the address is replaced in what people wrote, too.

    Raises Conflict for a member, and Throttled where a ticket is being changed again and again.
    """
    if person.user_id and members.member(tenant.repository, person.user_id):
        raise Conflict("This person is a member. Remove them from the desk first; their tickets can be reassigned.")
    pseudonym = _remember(tenant.tenant_id, person.address)
    done = Erasure(erased_people.label(pseudonym))
    _withdraw_invitations(tenant, person)
    done.names |= _names(tenant, person)
    for number in range(1, last_number(tenant.repository) + 1):
        _erase_in(tenant, number, _Replacement(person, pseudonym, texts, done))
        advance(1)
    after = {"tickets": done.tickets, "places": done.places, "texts": done.texts}
    recording.record(
        AuditEntry(tenant.tenant_id, AuditAction.PERSON_ERASED, by, "person", pseudonym, done.name, {}, after)
    )
    return done


def _remember(tenant_id: str, address: str) -> str:
    """Note in the tenant's item that this person is erased, and return the pseudonym."""

    def attempt() -> str:
        tenant = tenant_directory.get(tenant_id)
        known = ErasedPeople.parse(tenant.erased).salted()
        pseudonym = known.pseudonym(address)
        if pseudonym not in known.pseudonyms:
            unchanged = TenantItem.erased == tenant.erased if tenant.erased else TenantItem.erased.does_not_exist()
            transaction = Transaction()
            transaction.update(tenant, [TenantItem.erased.set(str(known.with_one(pseudonym)))], condition=unchanged)
            recording.commit(transaction, [])
        return pseudonym

    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=Conflict(_CHANGED),
    )


def _withdraw_invitations(tenant: TenantContext, person: DeskPerson) -> None:
    for invite in invite_storage.pending(tenant.repository):
        if folded(invite.email) == person.address:
            transaction = Transaction()
            invite_storage.delete(transaction, invite)
            try:
                recording.commit(transaction, [])
            except TransactionRefused as refused:
                raise Conflict(_CHANGED) from refused


def _names(tenant: TenantContext, person: DeskPerson) -> set[str]:
    """Return by which names the tickets know the person: entries of their history tell of people by names alone."""
    found: set[str] = set()
    for number in range(1, last_number(tenant.repository) + 1) if person.user_id else ():
        for raw in personal_places.items_of(tenant, number):
            for name in ("author", "requester", "resolver"):
                if raw.get(name, {}).get("S") == person.user_id:
                    found.add(raw.get(f"{name}_name", {}).get("S", ""))
            if raw.get("former_resolver", {}).get("S") == person.user_id:
                changes = personal_places.changes_of(raw)
                found |= {one.get("before", "") for one in changes if one["field"] == "resolver"}
    return found - {""}


@dataclass(frozen=True)
class _Replacement:
    """Replace one person in the items of a ticket."""

    person: DeskPerson
    pseudonym: str
    texts: bool
    done: Erasure

    def actions(self, model: Any, raw: Raw) -> tuple[list[Action], int, int]:
        """Return what is to be set in an item, and how many places and texts that replaces."""
        item = model.from_raw_data(raw)
        actions: list[Action] = []
        places = 0
        for name in ("author", "requester", "resolver"):
            if self.person.user_id and getattr(item, name, "") == self.person.user_id:
                actions.append(getattr(model, name).set(self.pseudonym))
                actions.append(getattr(model, f"{name}_name").set(self.done.name))
                places += 1
                if name == "resolver":
                    moved = keys.resolver_updated(self.pseudonym, item.updated_at)
                    actions.append(SummaryItem.resolver_updated.set(moved))
        if self.person.user_id and getattr(item, "former_resolver", "") == self.person.user_id:
            actions.append(ActivityItem.former_resolver.set(self.pseudonym))
            places += 1
        told = personal_places.changes_of(raw)
        if (changes := [self._change(**one) for one in told]) != told:
            actions.append(ActivityItem.changes.set([_stored(one) for one in changes]))
            places += 1
        written = personal_places.texts_of(raw) if self.texts else {}
        mentions = {name: text for name, text in written.items() if self.person.is_mentioned_in(text)}
        for name, text in mentions.items():
            actions.append(getattr(model, name).set(self.person.pattern.sub(self.done.name, text)))
        return actions, places, len(mentions)

    def _change(self, field: str, before: str = "", after: str = "") -> dict[str, str]:
        """Return what an entry tells of one field, with the new name: of an assignee by the name alone."""
        values = {"before": before, "after": after}
        if field == "resolver":
            values = {when: self.done.name if text in self.done.names else text for when, text in values.items()}
        if self.texts:
            values = {when: self.person.pattern.sub(self.done.name, text) for when, text in values.items()}
        return {"field": field, **values}


def _stored(change: dict[str, str]) -> ChangeMap:
    return ChangeMap(**change)  # type: ignore[no-untyped-call]  # PynamoDB leaves it unannotated


def _erase_in(tenant: TenantContext, number: int, replacement: _Replacement) -> None:
    def attempt() -> tuple[int, int]:
        places = texts = 0
        transaction = Transaction()
        for raw in personal_places.items_of(tenant, number):
            sort = raw["sk"]["S"]
            model: Any = {keys.SUMMARY: SummaryItem, keys.DETAIL: DetailItem}.get(sort, ActivityItem)
            actions, named, written = replacement.actions(model, raw)
            if actions:
                places, texts = places + named, texts + written
                transaction.update(model(raw["pk"]["S"], sort), actions, condition=_as_read(model, raw))
            if len(transaction) == TRANSACTION_LIMIT:
                tenant.repository.transact(transaction)
                transaction = Transaction()
        if len(transaction):
            tenant.repository.transact(transaction)
        return places, texts

    places, texts = retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=Throttled("A ticket is being changed by others again and again."),
    )
    replacement.done.tickets += bool(places or texts)
    replacement.done.places += places
    replacement.done.texts += texts


def _as_read(model: Any, raw: Raw) -> Any:
    """Return the condition that an item is as it was read, in what is replaced and in what its keys follow from."""
    item = model.from_raw_data(raw)
    if model is SummaryItem:
        return (
            (SummaryItem.version == item.version)
            & (SummaryItem.updated_at == item.updated_at)
            & (SummaryItem.resolver == item.resolver)
        )
    if model is DetailItem:
        return DetailItem.description == item.description
    return ActivityItem.at == item.at
