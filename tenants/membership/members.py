"""Read who belongs to which tenant: the memberships of a person, and the members of a tenant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext_noop

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.schema import keys
from portal.web.locales import Locale
from tenants.membership import mail_choices
from tenants.membership.mail_choices import Choices
from tenants.membership.stored import MemberItem
from tenants.sign_in.profiles import Profile
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
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
    choices: Choices = field(default_factory=Choices)
    profile: Profile = field(default_factory=Profile)
    signature: str = ""

    @property
    def time_zone(self) -> str | None:
        """Return the person's own zone, None where that of the desk holds."""
        return self.profile.own_zone or None

    def locale_at(self, tenant: TenantContext) -> Locale:
        """Return the language and the forms in which mails about a desk are written for the person."""
        return self.profile.locale(tenant.chosen_zone, tenant.chosen_language)

    @property
    def language(self) -> str | None:
        """Return the person's own language, None where that of the desk holds."""
        return self.profile.language or None


def memberships_of(user_id: str) -> list[DeskMembership]:
    """Return the tenants of a person by name: one Query for up to some 5,000, then one for each further 1 MB."""
    memberships = [
        DeskMembership(item.tenant_id, item.tenant_name, item.tenant_slug, Role(item.role))
        for item in PLATFORM.query_all(MembershipItem, user_id)
        if not context.is_over(item)
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
    return Member(
        item.user_id,
        item.name,
        item.email,
        Role(item.role),
        mail_choices.of_item(item),
        Profile.parse(item.profile),
        item.signature or "",
    )


def _all_members(tenant: TenantContext, person: DeskPerson) -> Iterable[Member]:
    return members_of(tenant.repository, consistent=True)


def _places(person: DeskPerson, names: Collection[str], found: Member) -> Iterator[PersonalPlace]:
    """Yield where somebody is a member and has a signature, which go when the membership ends, and where the signature
    of another member mentions them."""
    if person.is_who(found.id):
        yield PersonalPlace(PLACE, excerpt=found.role.label, stays=True)
        if found.signature:
            yield PersonalPlace(gettext_noop("the member's signature"), excerpt=found.signature, stays=True)
    elif person.mail.is_in(found.signature):
        yield PersonalPlace(gettext_noop("signature of another member"), is_text=True, excerpt=found.signature)


def _replace(tenant: TenantContext, new: NewName, found: Member) -> None:
    """Replace a person's address in the signature of another member. Raises ConditionFailed where it was changed."""
    text = new.person.mail.replaced(found.signature, new.name)
    action, seen = MemberItem.signature.set(text), MemberItem.signature == found.signature
    PLATFORM.update(MemberItem(tenant.tenant_id, found.id), [action], condition=seen)


PEOPLE: Final = PersonalData(_all_members, _places, _replace)
