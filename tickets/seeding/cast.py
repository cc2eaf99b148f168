"""Cast the demonstration: desks and people, with ids that follow from the seed, and write those that are missing."""

from __future__ import annotations

import hashlib
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal

from django.contrib.auth.hashers import make_password

from portal.dynamo.store import Store
from portal.errors import Conflict, NotFound
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import member_changes, members
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tenants.tenancy.stored import TenantItem
from tenants.tenancy.tenant_directory import slug_of

# --- texts ---


By = Literal["agent", "customer", "note"]


@dataclass(frozen=True)
class Turn:
    """One contribution to a conversation; `says` has one text for each way that the scenario may go."""

    by: By
    says: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """One kind of ticket. It goes one of two ways; titles, description and turns of one way belong together."""

    tags: tuple[str, ...]
    urgency: int  # 0, a wish, to 3, an outage
    titles: tuple[str, ...]
    descriptions: tuple[str, ...]
    talk: tuple[Turn, ...]


@dataclass(frozen=True)
class Words:
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    customers: tuple[str, ...]
    companies: tuple[str, ...]
    relapses: tuple[str, ...]
    remedies: tuple[str, ...]
    products: Mapping[str, str]
    slots: Mapping[str, tuple[str, ...]]


@cache
def scenarios() -> tuple[Scenario, ...]:
    return tuple(
        Scenario(
            tags=tuple(raw["tags"]),
            urgency=raw["urgency"],
            titles=tuple(raw["titles"]),
            descriptions=tuple(raw["descriptions"]),
            talk=tuple(Turn(turn["by"], tuple(turn["says"])) for turn in raw["talk"]),
        )
        for raw in load("scenarios.toml")["scenario"]
    )


@cache
def words() -> Words:
    raw = load("words.toml")
    slots = {name: tuple(values) for name, values in raw.pop("slots").items()}
    products = raw.pop("products")
    return Words(products=products, slots=slots, **{name: tuple(values) for name, values in raw.items()})


def made_id(*parts: object) -> str:
    """Return 32 hex digits that follow from the parts: an id that the same seed makes again."""
    return hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def load(name: str) -> dict[str, Any]:
    """Return a file of texts of this package."""
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


_SEED: Final = Actor(origin="seed")  # in audit trails
_STRANGER = " This seed did not make it: use the --seed that did, or an empty database."


class Accounts:
    """Makes accounts that share one password, which is hashed once: at 50 ms each, that is most of the work."""

    def __init__(self, password: str) -> None:
        self._password = password
        self.made = 0

    @cached_property
    def _hash(self) -> str:
        return make_password(self._password)

    def ensure(self, people: Sequence[Person]) -> None:
        """Create those who have no account. Raises Conflict where somebody else has the address."""
        for person in people:
            if accounts.find_by_id(person.id) is None:
                self._create(person)

    def _create(self, person: Person) -> None:
        try:
            accounts.seed(
                email=person.email,
                name=person.name,
                password_hash=self._hash,
                is_operator=person.is_operator,
                user_id=person.id,
            )
        except Conflict as error:
            raise Conflict(error.message + _STRANGER) from error
        self.made += 1


def ensure_tenant(desk: CastDesk) -> TenantItem:
    """Return the desk's tenant with all its members, made now if need be. Raises Conflict where the slug is taken."""
    try:
        tenant = tenant_directory.find(desk.slug)
    except NotFound:
        tenant = tenant_lifecycle.create(
            name=desk.name, slug=desk.slug, owner=_user(desk.owner), tenant_id=desk.tenant_id, by=_SEED
        )
    if tenant.tenant_id != desk.tenant_id:
        raise Conflict(f"A tenant with the slug {desk.slug} exists already.{_STRANGER}")
    known = {member.id for member in members.members_of(Store("tenant", desk.tenant_id))}
    for member in desk.members:
        if member.person.id not in known:
            # The list above may be a moment behind.
            with suppress(Conflict):
                member_changes.add(user=_user(member.person), tenant=tenant, role=member.role, by=_SEED)
    return tenant


def _user(person: Person) -> User:
    return User(id=person.id, email=person.email, name=person.name)


# --- desks and people ---


DEFAULT_TENANTS: Final = 5
DEFAULT_USERS: Final = 6  # invented colleagues per tenant
# The named desks and their tickets where nobody asks for another number. The largest stays below the 1,000 rows
# per status that the embedded engine lists quickly.
_DESKS: Final = (
    ("Acme", 240),
    ("Globex", 120),
    ("Initech", 60),
    ("Umbrella Care", 40),
    ("Hooli", 25),
    ("Vandelay", 15),
)
_FURTHER_DESK: Final = 20
_CONTACTS: Final = 24  # customers who write to one desk

_NAMED: Final = {
    "alice@example.com": "Alice Hartmann",
    "bob@example.com": "Bob Okafor",
    "charlie@example.com": "Charlie Nguyen",
    "vera@example.com": "Vera Lindgren",
    "root@example.com": "Root Operator",
}
OPERATOR: Final = "root@example.com"
# Alice is in several desks and may do something else in each; Charlie is in one only.
_ROLES: Final[dict[str, dict[str, Role]]] = {
    "acme": {"alice@example.com": Role.OWNER, "bob@example.com": Role.AGENT, "vera@example.com": Role.VIEWER},
    "globex": {"charlie@example.com": Role.OWNER, "alice@example.com": Role.AGENT},
    "initech": {"alice@example.com": Role.ADMIN},
    "umbrella-care": {"alice@example.com": Role.AGENT},
    "hooli": {"alice@example.com": Role.VIEWER},
}


@dataclass(frozen=True)
class Person:
    id: str
    email: str
    name: str
    is_operator: bool = False


@dataclass(frozen=True)
class CastMember:
    person: Person
    role: Role


@dataclass(frozen=True)
class Contact:
    """A customer who writes to one desk: a requester, without an account."""

    id: str
    name: str
    company: str
    address: str


@dataclass(frozen=True)
class CastDesk:
    """One tenant of the demonstration. `members` begins with the owner; `contacts` are customers, without accounts."""

    tenant_id: str
    name: str
    slug: str
    tickets: int
    members: tuple[CastMember, ...]
    contacts: tuple[Contact, ...]

    @property
    def owner(self) -> Person:
        return self.members[0].person

    @property
    def agents(self) -> list[Person]:
        return [m.person for m in self.members if m.role.at_least(Role.AGENT)]

    @property
    def product(self) -> str:
        return words().products.get(self.slug, "the platform")


def operator(seed: int) -> Person:
    """Return the one who is a member nowhere and runs the platform."""
    return _named(seed, OPERATOR)


def desks(*, seed: int, tenants: int, tickets: int | None, users: int) -> Iterator[CastDesk]:
    """Yield the desks in the order in which they are written. `tickets` is for each of them; None is a modest
    choice."""
    for index in range(tenants):
        name, usual = _DESKS[index] if index < len(_DESKS) else (_further_name(index - len(_DESKS)), _FURTHER_DESK)
        yield desk(name, seed=seed, tickets=usual if tickets is None else tickets, users=users)


def desk(name: str, *, seed: int, tickets: int, users: int) -> CastDesk:
    slug = slug_of(name)
    named = [CastMember(_named(seed, email), role) for email, role in _ROLES.get(slug, {}).items()]
    needs_owner = not any(m.role is Role.OWNER for m in named)
    # A desk without a single colleague still has somebody to own it.
    invented = list(_colleagues(seed, slug, max(users, 1 if needs_owner else 0), needs_owner))
    members = sorted([*named, *invented], key=lambda m: m.role is not Role.OWNER)
    contacts = tuple(_contacts(seed, slug, not_called={m.person.name for m in members}))
    return CastDesk(made_id(seed, "tenant", slug), name, slug, tickets, tuple(members), contacts)


def _named(seed: int, email: str) -> Person:
    return Person(made_id(seed, "user", email), email, _NAMED[email], email == OPERATOR)


def _colleagues(seed: int, slug: str, count: int, owner: bool) -> Iterator[CastMember]:
    """Yield invented members: one who runs the desk, agents, and from the fourth on every sixth who only looks on."""
    rng = _random(seed, slug, "colleagues")
    known: set[str] = set()
    for index in range(count):
        first, last = rng.choice(words().first_names), rng.choice(words().last_names)
        local = f"{slug_of(first)}.{slug_of(last)}"
        email = f"{local}@{slug}.example" if local not in known else f"{local}.{index}@{slug}.example"
        known.add(local)
        role = (Role.OWNER if owner else Role.ADMIN) if index == 0 else Role.VIEWER if index % 6 == 3 else Role.AGENT
        yield CastMember(Person(made_id(seed, "user", email), email, f"{first} {last}"), role)


def _contacts(seed: int, slug: str, *, not_called: set[str]) -> Iterator[Contact]:
    """Yield customers, none of them with the name of a member: a timeline would not tell the two apart."""
    rng = _random(seed, slug, "contacts")
    for number in range(_CONTACTS):
        name = f"{rng.choice(words().first_names)} {rng.choice(words().last_names)}"
        while name in not_called:
            name = f"{rng.choice(words().first_names)} {rng.choice(words().last_names)}"
        company = rng.choice(words().customers)
        address = f"{slug_of(name)}.{number}@{slug_of(company)}.example"
        yield Contact(f"rq_{made_id(seed, 'contact', slug, number)}", name, company, address)


def _random(*parts: object) -> random.Random:
    return random.Random("/".join(map(str, parts)))  # noqa: S311  # invented people need no secrecy


def _further_name(index: int) -> str:
    """Return a name for any number of further desks: each combination once, then with a number behind it."""
    last, kinds = words().last_names, words().companies
    turn, place = divmod(index, len(last) * len(kinds))
    name = f"{last[place % len(last)]} {kinds[place // len(last)]}"
    return f"{name} {turn + 1}" if turn else name
