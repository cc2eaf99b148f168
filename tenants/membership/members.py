"""Read who belongs to which tenant: the memberships of a person, and the members of a tenant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from django.utils.translation import gettext_noop

from portal.dynamo import paging
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.schema import keys
from portal.web.locales import Locale
from tenants.membership import mail_choices
from tenants.membership.mail_choices import Choices
from tenants.membership.stored import MemberByName, MemberItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import Profile
from tenants.tenancy import context
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tenants.tenancy.stored import MembershipItem

PLACE: Final = "member"  # what a membership is called where a person is looked for
_LIST: Final = (PLACE,)  # what a cursor of the list is bound to
# As many rows of the index as fit 4 KB, which half a read unit buys: they cost what ten cost. A row has 97 bytes of ids
# and attribute names, and a name, an address and a profile: 200 bytes hold all but long ones.
AT_HAND: Final = 20  # members that a page offers and names at once; it finds others by name
SEARCHED: Final = 100  # members that a search reads whole: in a desk with no more, a text is found anywhere in a name
_LONGEST: Final = 254  # characters of a name or an address; a key has up to 1,024 bytes, and four are the most of each
_BY_ID: Final = 5  # members whom a BatchGetItem reads for what a Query of SEARCHED rows costs


@dataclass(frozen=True)
class DeskMembership:
    """One of the tenants that a person may choose."""

    tenant_id: str
    name: str
    slug: str
    role: Role


@dataclass(frozen=True)
class ListedMember:
    """A member as lists have them."""

    id: str
    name: str
    email: str
    role: Role
    profile: Profile = field(default_factory=Profile)

    def has(self, text: str) -> bool:
        """Tell whether the person's name or address contains a text, in any case."""
        sought = text.casefold()
        return sought in self.name.casefold() or sought in self.email.casefold()

    @property
    def is_agent(self) -> bool:
        """Tell whether a ticket may be assigned to this person."""
        return self.role.at_least(Role.AGENT)

    @property
    def time_zone(self) -> str | None:
        """Return the person's own zone, None where that of the desk holds."""
        return self.profile.own_zone or None

    @property
    def language(self) -> str | None:
        """Return the person's own language, None where that of the desk holds."""
        return self.profile.language or None


@dataclass(frozen=True)
class Member(ListedMember):
    """A member with what they chose for themselves."""

    choices: Choices = field(default_factory=Choices)
    signature: str = ""

    def locale_at(self, tenant: TenantContext) -> Locale:
        """Return the language and the forms in which mails about a desk are written for the person."""
        return self.profile.locale(tenant.chosen_zone, tenant.chosen_language)


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


@dataclass(frozen=True)
class AtHand:
    """The first members of a desk in the order of their names, and others who were read by their ids. `me` is who is at
    work, known without a read, and `more` the cursor of the members behind the first ones, "" where these are all."""

    people: tuple[ListedMember, ...]
    more: str = ""
    me: ListedMember | None = None

    @property
    def is_all(self) -> bool:
        return not self.more

    @property
    def names(self) -> dict[str, str]:
        return {one.id: one.name for one in self.people}


def at_hand(tenant: TenantContext) -> AtHand:
    """Return all members of a desk that has few, else the first ones: one Query of at most AT_HAND short rows."""
    people, more = page(tenant.repository)
    return AtHand(people, more, ListedMember(tenant.user_id, tenant.user_name, "", tenant.role))


def page(repository: Store, *, after: str = "", size: int = AT_HAND) -> tuple[tuple[ListedMember, ...], str]:
    """Return some members in the order of names, and the cursor of the next page, "" at the end: one Query.

    Within a page case is ignored; between pages the order is that of code points. Raises Invalid for a damaged cursor.
    """
    tenant_id, start = repository.tenant_id, None
    if after:
        name, user_id = paging.load(after, tenant_id=tenant_id, query=_LIST)
        start = {"tenant_id": {"S": tenant_id}, "name": {"S": name}, "user_id": {"S": user_id}}
    read = repository.query(MemberByName, keys.tenant, limit=size, start=start)
    last = [read.last_key[key]["S"] for key in ("name", "user_id")] if read.last_key else []
    return _listed(read.items), paging.dump(last, tenant_id=tenant_id, query=_LIST) if last else ""


def names_of(repository: Store, known: AtHand, user_ids: Iterable[str]) -> Mapping[str, str]:
    """Return the names of these people, as far as they are members. Costs what `with_ids` does."""
    return with_ids(repository, known, user_ids).names


def with_ids(repository: Store, known: AtHand, user_ids: Iterable[str]) -> AtHand:
    """Return those at hand, and those of these people who are members beside them.

    Reads nothing where all of them are at hand, or who is at work. Else one BatchGetItem for each hundred; where many
    are missing, before it a Query of the next SEARCHED names, which costs less and is enough for most desks.
    """
    have = known.names
    sought = {one for one in user_ids if one not in have and keys.USER_ID.match(one)} if not known.is_all else set()
    found = [known.me] if known.me and known.me.id in sought else []
    sought -= {one.id for one in found}
    if len(sought) > _BY_ID:
        found += [one for one in page(repository, after=known.more, size=SEARCHED)[0] if one.id in sought]
        sought -= {one.id for one in found}
    wanted = [repository.wanted(MemberItem, keys.tenant, sort=one) for one in sorted(sought)]
    found += [_member(item) for item in repository.get_all(wanted) if item is not None] if wanted else []
    return replace(known, people=(*known.people, *found))


def matching(repository: Store, typed: str, *, known: AtHand | None = None) -> list[ListedMember]:
    """Return members whose name or address contains a text: all of them in a desk of up to SEARCHED members, `known`
    where they were read, in one Query.

    Of a larger desk up to SEARCHED members whose names begin with the text, in the case in which it is typed or in
    usual ones, and only where there is nobody those who have it within: one round trip more for each of the two. The
    last one reads the whole index, up to 1 MB, some 0.5 units for 20 members.
    """
    if len(typed) > _LONGEST:
        return []
    known = known or AtHand(*page(repository, size=SEARCHED))
    if known.is_all:
        return [one for one in known.people if one.has(typed)]
    cases = _cases(typed)
    if found := _beginning_with(repository, cases):
        return found
    texts = [(MemberByName.name.attr_name, text) for text in cases]
    texts.append((MemberByName.email.attr_name, typed.lower()))
    return list(_listed(repository.query(MemberByName, keys.tenant, containing=texts).items)[:SEARCHED])


def beginning_with(repository: Store, words: Iterable[str]) -> list[ListedMember]:
    """Return all members of a desk of up to SEARCHED; of a larger one up to SEARCHED for each word with which names
    begin."""
    people, more = page(repository, size=SEARCHED)
    if not more:
        return list(people)
    found = (_beginning_with(repository, _cases(word)) for word in dict.fromkeys(words) if len(word) <= _LONGEST)
    return list(dict.fromkeys(one for some in found for one in some))


def _beginning_with(repository: Store, cases: Collection[str]) -> list[ListedMember]:
    query = partial(repository.query, MemberByName, keys.tenant, limit=SEARCHED)
    pages = fan_out([partial(query, begins_with=text) for text in cases])
    return list(_listed(row for some in pages for row in some.items)[:SEARCHED])


def _cases(typed: str) -> tuple[str, ...]:
    """Return a text as names may have it, each once: as it is typed, ada, Ada, ADA."""
    return tuple(dict.fromkeys((typed, typed.lower(), typed.title(), typed.upper())))


def _listed(rows: Iterable[MemberByName]) -> tuple[ListedMember, ...]:
    people = (
        ListedMember(row.user_id, row.name, row.email, Role(row.role), Profile.parse(row.profile)) for row in rows
    )
    return tuple(sorted(people, key=lambda one: (one.name.casefold(), one.id)))


def by_address(repository: Store, address: str) -> Member | None:
    """Return the member with this address, or None: a GetItem of who has it anywhere, then one of the membership."""
    user_id = accounts.id_of(address)
    return member(repository, user_id) if user_id else None


def of_roles(repository: Store, *roles: Role, consistent: bool = True) -> list[Member]:
    """Return the members of these roles, by name: Queries that read what `members_of` does, of which these alone come
    back."""
    sought = [(MemberItem.role.attr_name, role.value) for role in roles]
    found = repository.query_all(MemberItem, keys.tenant, consistent=consistent, containing=sought)
    return sorted(map(_member, found), key=lambda m: (m.name.casefold(), m.id))


def owners_of(repository: Store, *, but: str = "") -> list[Member]:
    """Return the owners of a tenant except one person, read consistently. Costs what `of_roles` does."""
    return [m for m in of_roles(repository, Role.OWNER) if m.id != but]


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
        Profile.parse(item.profile),
        mail_choices.of_item(item),
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
