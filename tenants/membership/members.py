"""Read who belongs to which tenant: the memberships of a person, and the members of a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.schema import keys
from tenants.membership import mail_choices
from tenants.membership.mail_choices import MailKind
from tenants.membership.stored import MemberItem
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, PersonalData, PersonalPlace
from tenants.tenancy.roles import Role
from tenants.tenancy.stored import MembershipItem

PLACE: Final = "member"  # what a membership is called where a person is looked for


@dataclass(frozen=True)
class DeskMembership:
    """One of the tenants that a person may choose."""

    tenant_id: str
    name: str
    slug: str
    role: Role


@dataclass(frozen=True)
class Member:
    """One of the people to whom a ticket may be assigned."""

    id: str
    name: str
    email: str
    role: Role
    unwanted_mail: frozenset[MailKind] = frozenset()


def memberships_of(user_id: str) -> list[DeskMembership]:
    """Return the tenants of a person by name: one Query for up to some 5,000, then one for each further 1 MB."""
    memberships = [
        DeskMembership(item.tenant_id, item.tenant_name, item.tenant_slug, Role(item.role))
        for item in PLATFORM.query_all(MembershipItem, user_id)
    ]
    return sorted(memberships, key=lambda m: (m.name.casefold(), m.tenant_id))


def members_of(repository: Store, *, consistent: bool = False) -> list[Member]:
    """Return the members of a tenant by name: one Query for up to some 6,000, then one for each further 1 MB."""
    people = map(_member, repository.query_all(MemberItem, keys.tenant, consistent=consistent))
    return sorted(people, key=lambda m: (m.name.casefold(), m.id))


def owners_of(repository: Store, *, but: str = "") -> list[Member]:
    """Return the owners of a tenant except one person, read consistently. Costs what `members_of` does."""
    return [m for m in members_of(repository, consistent=True) if m.role is Role.OWNER and m.id != but]


def member(repository: Store, user_id: str) -> Member | None:
    """Return one member, or None: one consistent GetItem."""
    if not keys.USER_ID.match(user_id):
        return None
    item = repository.get(MemberItem, keys.tenant, sort=user_id, consistent=True)
    return _member(item) if item else None


def members_with(repository: Store, user_ids: Iterable[str]) -> list[Member]:
    """Return those of these up to 100 people who are members: one consistent BatchGetItem."""
    wanted = [repository.wanted(MemberItem, keys.tenant, sort=one) for one in sorted(set(user_ids))]
    found = repository.get_all(wanted, consistent=True) if wanted else []
    return [_member(item) for item in found if item is not None]


def _member(item: MemberItem) -> Member:
    return Member(item.user_id, item.name, item.email, Role(item.role), mail_choices.of_item(item))


def _of_person(tenant: TenantContext, person: DeskPerson) -> Iterator[Member]:
    return (found for user_id in person.accounts if (found := member(tenant.repository, user_id)))


PEOPLE: Final = PersonalData(
    _of_person, lambda person, names, found: [PersonalPlace(PLACE, excerpt=found.role.label, stays=True)]
)
