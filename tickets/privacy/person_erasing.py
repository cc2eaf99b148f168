"""Forget one person: replace the name and the id in all tickets by a pseudonym, and the address in texts where wished.

The tenant's item remembers the pseudonym first. Then what stands beside the tickets is changed, and each ticket in a
transaction that holds only if it is still as it was read; the numbers that are counted stay, under the pseudonym. The
row in the audit trail comes last, so an erasure that was broken off is gone on with by beginning it again: what is
replaced already is not found any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from portal import clock
from portal.dynamo.repository import Action, Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, Invalid, Throttled, TransactionRefused
from tenants.audit_trail import erased_people, recording
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import TenantItem
from tickets.privacy import beside_tickets, personal_places
from tickets.privacy.beside_tickets import CHANGED, NewName
from tickets.privacy.desk_person import DeskPerson, Raw
from tickets.privacy.person_finding import PersonFound
from tickets.privacy.personal_places import Advance, PersonalPlace
from tickets.ticket import keys
from tickets.ticket.items import ActivityItem, ChangeMap, DetailItem, SummaryItem
from tickets.verification.recount import last_number

ENTITY: Final = ("person", "erased")  # of all rows about erasures, so that one Query lists them
_ATTEMPTS: Final = 6  # of one ticket, while others change it
_MEMBERS: Final = 40  # of one transaction beside the summary


@dataclass
class Erasure:
    """Say who is erased, and count what was replaced so far, in the tickets up to the number `reached`, of `last`.

    `name` is the one that the person goes by now, `names` are those by which the desk knew them. With `with_texts` the
    address is replaced in what people wrote, too. `named` and `texts` count as `PersonFound` does, and `tickets` those
    in which something was replaced.
    """

    person: DeskPerson
    pseudonym: str
    name: str
    names: list[str]
    with_texts: bool
    last: int
    reached: int = 0
    tickets: int = 0
    named: int = 0
    texts: int = 0
    beside: int = 0

    @classmethod
    def load(cls, told: dict[str, Any]) -> Erasure:
        """Return what `dumped` made."""
        return cls(**{**told, "person": DeskPerson.load(told["person"])})

    def dumped(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)

    @property
    def is_whole(self) -> bool:
        return self.reached >= self.last

    @property
    def new_name(self) -> NewName:
        return NewName(self.person, self.pseudonym, self.name, self.names, self.with_texts)

    @property
    def counted(self) -> str:
        """Return in words what was replaced."""
        return personal_places.counted(**self.counts)

    @property
    def counts(self) -> dict[str, int]:
        """Return what was replaced: `beside` is how much of it beside the tickets."""
        return {"named": self.named, "texts": self.texts, "tickets": self.tickets, "beside": self.beside}

    def count(self, replaced: Iterable[PersonalPlace]) -> None:
        """Add places that were replaced."""
        for place in replaced:
            self.texts += place.is_text
            self.named += not place.is_text


def begin(tenant: TenantContext, found: PersonFound, *, texts: bool = False) -> Erasure:
    """Note in the tenant's item that this person is erased, and replace what stands beside the tickets.

    `found` is what a whole search has found. Where a person is at work it depends on their role. Raises Conflict for a
    member, and Invalid for an address of which nothing here would be replaced.
    """
    person = found.person
    if any(members.member(tenant.repository, user_id) for user_id in person.user_ids):
        raise Conflict("This person is a member. Remove them from the desk first; their tickets can be reassigned.")
    _refuse_unknown(found, texts=texts)
    pseudonym = _remember(tenant, person.address)
    last = last_number(tenant.repository)
    erasure = Erasure(person, pseudonym, erased_people.label(pseudonym), found.names, texts, last)
    erasure.count(replaced := beside_tickets.replace(tenant, erasure.new_name))
    erasure.beside = len(replaced)
    return erasure


def go_on(
    tenant: TenantContext, erasure: Erasure, *, most: int | None = None, advance: Advance = lambda numbers: None
) -> None:
    """Erase in the next `most` numbers, or in all that are left. Raises Throttled where a ticket is being changed again
    and again."""
    until = erasure.last if most is None else min(erasure.last, erasure.reached + most)
    for number in range(erasure.reached + 1, until + 1):
        _erase_in(tenant, number, _Replacement(erasure))
        erasure.reached = number
        advance(1)


def end(tenant: TenantContext, erasure: Erasure, *, by: Actor) -> None:
    """Record it in the audit trail: how much was replaced, and not of whom."""
    entry = AuditEntry(tenant.tenant_id, AuditAction.PERSON_ERASED, by, *ENTITY, erasure.name, {}, erasure.counts)
    recording.record(entry)


def _refuse_unknown(found: PersonFound, *, texts: bool) -> None:
    """Raise Invalid where an erasure would do nothing."""
    person = found.person
    if not found.is_to_be_erased:
        if person.erased_as:
            raise Invalid(f"{person.address} was erased before, as {person.erased_as}. Nothing is left to be erased.")
        raise Invalid(f"This desk knows nobody with the address {person.address}. Nothing was erased.", field="address")
    if found.has_texts_alone and not texts:
        raise Invalid(
            f"{person.address} occurs here in texts alone, and texts were not to be changed. Nothing was erased.",
            field="texts",
        )


def _remember(tenant: TenantContext, address: str) -> str:
    """Note in the tenant's item that this person is erased, and return the pseudonym."""

    def attempt() -> str:
        stored = tenant_directory.get(tenant.tenant_id)
        known = ErasedPeople.parse(stored.erased).salted()
        pseudonym = known.pseudonym(address)
        erased = known.with_one(pseudonym, at=clock.stamp())
        unchanged = TenantItem.erased == stored.erased if stored.erased else TenantItem.erased.does_not_exist()
        transaction = Transaction()
        transaction.update(stored, [TenantItem.erased.set(str(erased))], condition=unchanged)
        if tenant.user_id:  # a command is nobody's
            member_changes.require_role(transaction, tenant)
        recording.commit(transaction, [])
        return pseudonym

    return retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=Conflict(CHANGED),
    )


@dataclass(frozen=True)
class _Replacement:
    """Replace one person in the items of a ticket."""

    done: Erasure

    @property
    def person(self) -> DeskPerson:
        return self.done.person

    def actions(self, model: Any, raw: Raw) -> list[Action]:
        """Return what is to be set in an item."""
        item = model.from_raw_data(raw)
        actions: list[Action] = []
        for name in ("author", "requester", "resolver"):
            if self.person.is_who(getattr(item, name, "")):
                actions.append(getattr(model, name).set(self.done.pseudonym))
                actions.append(getattr(model, f"{name}_name").set(self.done.name))
                if name == "resolver":
                    moved = keys.resolver_updated(self.done.pseudonym, item.updated_at)
                    actions.append(SummaryItem.resolver_updated.set(moved))
        if self.person.is_who(getattr(item, "former_resolver", "")):
            actions.append(ActivityItem.former_resolver.set(self.done.pseudonym))
        told = personal_places.changes_of(raw)
        if (changes := [self._change(**one) for one in told]) != told:
            actions.append(ActivityItem.changes.set([_stored(one) for one in changes]))
        return actions + [getattr(model, name).set(text) for name, text in self._written(raw).items()]

    def places(self, number: int, raw: Raw) -> list[PersonalPlace]:
        """Return the places in an item that the actions replace."""
        return self.done.new_name.replaces(personal_places.places(self.person, self.done.names, number, raw))

    def _written(self, raw: Raw) -> dict[str, str | list[str]]:
        """Return what people wrote with the address in it, by attribute, as it is without the address."""
        if not self.done.with_texts:
            return {}
        others = [f"{name}_name" for name in personal_places.others_shown(self.person, raw)]
        told = personal_places.texts_of(raw) | {name: raw[name]["S"] for name in others}
        changed: dict[str, str | list[str]] = {
            name: new for name, text in told.items() if (new := self._new(text)) != text
        }
        tags = personal_places.tags_of(raw)
        if (new_tags := [self._new(tag, tag=True) for tag in tags]) != tags:
            changed["tags"] = [*dict.fromkeys(new_tags)]
        return changed

    def _new(self, text: str, *, tag: bool = False) -> str:
        name = self.done.name.lower().replace(" ", "-") if tag else self.done.name
        return self.person.mail.replaced(text, name)

    def _change(self, field: str, before: str = "", after: str = "") -> dict[str, str]:
        """Return what an entry tells of one field, with the new name: of an assignee by the name alone."""
        values = {"before": before, "after": after}
        if field == "resolver":
            values = {when: self.done.name if text in self.done.names else text for when, text in values.items()}
        if self.done.with_texts:
            values = {when: self._new(text, tag=field == "tags") for when, text in values.items()}
        return {"field": field, **values}


def _stored(change: dict[str, str]) -> ChangeMap:
    return ChangeMap(**change)  # type: ignore[no-untyped-call]  # PynamoDB leaves it unannotated


def _erase_in(tenant: TenantContext, number: int, replacement: _Replacement) -> None:
    done = replacement.done
    before = done.named + done.texts
    is_more = True
    while is_more:
        is_more = retrying(
            lambda: _erase_some(tenant, number, replacement),
            again=lambda error: isinstance(error, TransactionRefused),
            attempts=_ATTEMPTS,
            given_up=Throttled("A ticket is being changed by others again and again."),
        )
    done.tickets += done.named + done.texts > before


def _erase_some(tenant: TenantContext, number: int, replacement: _Replacement) -> bool:
    """Replace as much of a ticket as one transaction takes, and tell whether there is more."""
    items = {raw["sk"]["S"]: raw for raw in personal_places.items_of(tenant, number)}
    summary = items.pop(keys.SUMMARY, None)
    models: Any = {sort: DetailItem if sort == keys.DETAIL else ActivityItem for sort in items}
    found = [(sort, todo) for sort, raw in items.items() if (todo := replacement.actions(models[sort], raw))]
    actions = replacement.actions(SummaryItem, summary) if summary else []
    if not found and not actions:
        return False
    replaced = replacement.places(number, summary) if summary else []
    transaction = Transaction()
    for sort, changed in found[:_MEMBERS]:
        raw = items[sort]
        replaced += replacement.places(number, raw)
        transaction.update(models[sort](raw["pk"]["S"], sort), changed, condition=_as_read(models[sort], raw))
    if summary:
        # Whatever of the ticket is replaced raises its version: a form that was opened before, and another erasure
        # that has read the ticket already, would otherwise write back what they hold.
        stored = SummaryItem.from_raw_data(summary)
        version = int(stored.version) + 1
        made = [*(stored.erased_versions or ()), version]
        actions += [SummaryItem.version.set(version), SummaryItem.erased_versions.set(made)]
        transaction.update(
            SummaryItem(summary["pk"]["S"], keys.SUMMARY), actions, condition=_as_read(SummaryItem, summary)
        )
    tenant.repository.transact(transaction)
    replacement.done.count(replaced)
    return len(found) > _MEMBERS


def _as_read(model: Any, raw: Raw) -> Any:
    """Return the condition that an item is as it was read. Nothing but an erasure changes an entry of the history, and
    that raises the version."""
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
