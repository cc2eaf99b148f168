"""Find requesters: by id, by address, and by the beginning of a name or an address while somebody types it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.store import Page, Transaction
from portal.errors import ConditionFailed, Invalid, NotFound, Throttled, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.requesters import requester_addresses, stored
from tickets.requesters.stored import ADDRESS, PROFILE, AddressItem, LastWordRow, ProfileItem, RequesterRow

OFFERED: Final = 8  # people, while somebody types
MERGED_LIMIT: Final = 10  # people who were merged into one
NAME_LIMIT: Final = 100  # characters
_ATTEMPTS: Final = 4
_NOBODY: Final = gettext_noop("There is no such requester.")


@dataclass(frozen=True)
class Requester:
    """A person outside the desk. `address`, the first of `addresses`, is the one that mail goes to.

    `merged_into` is the id of the person into whom this one was merged, "" for none. `bounced` says of addresses that
    mail does not reach why it does not. One that completion has found knows `notes` and the like not.
    """

    id: str
    name: str = ""
    addresses: tuple[str, ...] = ()
    organisation: str = ""
    notes: str = ""
    language: str = ""
    version: int = 1
    created_at: str = ""
    merged: tuple[str, ...] = ()
    merged_into: str = ""
    link_generation: int = 0
    bounced: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, item: ProfileItem) -> Requester:
        return cls(
            id=item.requester_id,
            name=item.name,
            addresses=tuple(item.addresses),
            organisation=item.organisation,
            notes=item.notes,
            language=item.language,
            version=int(item.version),
            created_at=item.created_at,
            merged=tuple(item.merged),
            merged_into=item.merged_into or "",
            link_generation=int(item.link_generation or 0),
            bounced=stored.bounced_of(item),
        )

    @property
    def address(self) -> str:
        return self.addresses[0] if self.addresses else ""

    @property
    def label(self) -> str:
        """The name that tickets and pages show: an address for somebody whose name is not known."""
        return self.name or self.address or "Somebody without a name"

    @property
    def typed(self) -> str:
        """The person as one types them: `Name <address>`. Marks that would end the name early are left out."""
        name = "".join(c for c in self.name if c not in '<>"\\(),;:@[]').strip()
        return f"{name} <{self.address}>" if name and self.address else self.address

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that tickets of this person name: the own one, and those of people who were merged into them."""
        return (self.id, *self.merged)


# --- reading ---


def profile(tenant: TenantContext, requester_id: str) -> ProfileItem:
    """Return the stored profile of a person, of one who was merged too: one consistent GetItem. Raises NotFound."""
    item = None
    if stored.is_requester(requester_id):
        item = tenant.repository.get(ProfileItem, stored.requester, requester_id, sort=PROFILE, consistent=True)
    if item is None:
        raise NotFound(_(_NOBODY))
    return item


def find(tenant: TenantContext, requester_id: str) -> Requester | None:
    """Return a person, None where there is none: one GetItem. For one who was merged it is the person who stands for
    both, by one GetItem more for each merge."""
    for _attempt in range(MERGED_LIMIT + 1):
        try:
            item = profile(tenant, requester_id)
        except NotFound:
            return None
        if not item.merged_into:
            return Requester.of(item)
        requester_id = item.merged_into
    return None


def known(tenant: TenantContext, requester_id: str) -> Requester:
    """Do the same, and raise NotFound where there is none."""
    person = find(tenant, requester_id)
    if person is None:
        raise NotFound(_(_NOBODY))
    return person


def id_of_address(tenant: TenantContext, address: str) -> str | None:
    """Return the id of the person who has this address, None where nobody has it or it is none: one GetItem."""
    try:
        key = requester_addresses.normal(address)
    except Invalid:
        return None
    item = tenant.repository.get(AddressItem, stored.address, key, sort=ADDRESS, consistent=True)
    return item.requester_id if item else None


def by_address(tenant: TenantContext, address: str) -> Requester | None:
    """Return the person who has this address, None where nobody has it or it is none: two GetItems."""
    requester_id = id_of_address(tenant, address)
    return find(tenant, requester_id) if requester_id else None


def those_merged(tenant: TenantContext, person: Requester) -> list[Requester]:
    """Return the people who were merged into this one, as they were: one BatchGetItem, none for nobody."""
    return stored_people(tenant, person.merged)


def stored_people(tenant: TenantContext, ids: Sequence[str]) -> list[Requester]:
    """Return those who are stored of the people with these ids, as they are: one BatchGetItem, none for nobody."""
    if not ids:
        return []
    wanted = [(stored.requester, (one,), PROFILE) for one in ids]
    return [Requester.of(item) for item in tenant.repository.get_many(ProfileItem, wanted) if item is not None]


def complete(tenant: TenantContext, typed: str, *, limit: int = OFFERED) -> list[Requester]:
    """Return people whose name or address begins with what somebody has typed, or the last word of whose name does:
    three Queries at the same time, one for what has an @.

    They know their name, organisation and addresses, or of these the one that was found.
    """
    _, _, inner = typed.rpartition("<")
    begun = stored.folded(inner.rstrip("> "))
    if not begun:
        return []
    people = ((RequesterRow, stored.people), (LastWordRow, stored.people))
    asked = (*(() if "@" in begun else people), (RequesterRow, stored.addresses))
    pages = fan_out([partial(_rows, tenant, *one, begins_with=begun, limit=limit) for one in asked])
    found: dict[str, Requester] = {}
    for row in (row for page in pages for row in page.items):
        found.setdefault(row.requester_id, of_row(row))
    return list(found.values())[:limit]


def _rows(tenant: TenantContext, model: Any, group: Any, **how: Any) -> Page[RequesterRow | LastWordRow]:
    page: Page[RequesterRow | LastWordRow] = tenant.repository.query(model, group, **how)
    return page


def of_row(row: RequesterRow | LastWordRow) -> Requester:
    """Return the person of a row, as far as the row knows them."""
    address = getattr(row, "address", None)
    addresses = (address,) if address else tuple(row.addresses)
    bounced = {address: why} if address and (why := getattr(row, "bounced_because", None)) else {}
    return Requester(
        id=row.requester_id, name=row.name, addresses=addresses, organisation=row.organisation, bounced=bounced
    )


# --- people who are not known yet ---


def ensure(
    tenant: TenantContext,
    address: str,
    *,
    name: str = "",
    language: str = "",
    also: Sequence[str] = (),
    comes_again: bool = False,
) -> Requester:
    """Return the person who has this address, made where nobody has it. Two at the same time make one person.

    Somebody new gets the addresses of `also` beside it, unless one of those is somebody's. A name that is too long or
    shows nothing is cut or left out: it comes from a letter. Where `comes_again` says that the caller does the same
    again after a kill, somebody new costs 5 write units instead of 7. Raises Invalid for an address that is none.
    """
    key = requester_addresses.normal(address)
    others = list(dict.fromkeys(map(requester_addresses.normal, also)))
    for _attempt in range(_ATTEMPTS):
        begun = id_of_address(tenant, key)
        if begun and (known := find(tenant, begun)):
            return known
        made = new_profile(
            tenant,
            begun or stored.new_id(),
            name=_name_in_letter(name),
            addresses=dict.fromkeys([key, *(() if begun else others)]),
            language=language.strip()[:35],
        )
        if begun or (comes_again and not others):
            if _add_in_turn(tenant, made, has_address=bool(begun)):
                return Requester.of(made)
            continue
        transaction = Transaction()
        add(tenant, transaction, made)
        try:
            tenant.repository.transact(transaction)
        except TransactionRefused:
            others = []  # One of them is somebody's, or another letter of the same person has just been faster.
            continue
        return Requester.of(made)
    raise Throttled(_("The database is busy."))


def _add_in_turn(tenant: TenantContext, made: ProfileItem, *, has_address: bool) -> bool:
    """Write the address, then the profile that it names. Return False where somebody else has just written one of them.

    A kill in between leaves an address that names nobody: whoever is ensured next by it gets the profile.
    """
    try:
        if not has_address:
            item = address_item(tenant, made.addresses[0], made)
            tenant.repository.put(item, condition=AddressItem.pk.does_not_exist())
        tenant.repository.put(made, condition=ProfileItem.pk.does_not_exist())
    except ConditionFailed:
        return False
    return True


def _name_in_letter(name: str) -> str:
    shown = plain_text.line(name)[:NAME_LIMIT].strip()
    return shown if plain_text.has_visible_text(shown) else ""


def new_profile(tenant: TenantContext, requester_id: str, *, addresses: Iterable[str], **values: Any) -> ProfileItem:
    """Return the profile of somebody new, who is not stored yet."""
    return placed(
        tenant,
        ProfileItem(
            tenant.repository.key(stored.requester, requester_id),
            PROFILE,
            requester_id=requester_id,
            addresses=list(addresses),
            created_at=clock.stamp(),
            **values,
        ),
    )


def placed(tenant: TenantContext, item: ProfileItem) -> ProfileItem:
    """Put a profile at its place in the index, which follows from its other attributes, and return it."""
    item.tenant_group = tenant.repository.key(stored.merged_people if item.merged_into else stored.people)
    item.found_by = stored.found_by(item.name or next(iter(item.addresses), ""), item.requester_id)
    item.found_by_last = stored.found_by_last_word(item.name, item.requester_id)
    return item


def address_item(tenant: TenantContext, address: str, of: ProfileItem) -> AddressItem:
    """Return the item that makes an address this person's."""
    return AddressItem(
        tenant.repository.key(stored.address, address),
        ADDRESS,
        tenant_group=tenant.repository.key(stored.addresses),
        found_by=stored.found_by(address, of.requester_id),
        requester_id=of.requester_id,
        address=address,
        name=of.name,
        organisation=of.organisation,
        bounced_because=stored.bounced_of(of).get(address),
    )


def add(tenant: TenantContext, transaction: Transaction, made: ProfileItem) -> None:
    """Add somebody new to a transaction. Its members are named by the id and by the addresses."""
    transaction.put(made, name=made.requester_id, condition=ProfileItem.pk.does_not_exist())
    for address in made.addresses:
        item = address_item(tenant, address, made)
        transaction.put(item, name=address, condition=AddressItem.pk.does_not_exist())
