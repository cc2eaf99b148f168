"""Writes the demonstration's accounts, tenants and memberships: what is missing, and nothing that is there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from django.contrib.auth.hashers import make_password

from portal.dynamo.repository import TenantRepository
from portal.errors import Conflict, NotFound
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import member_changes, members
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.seeding.cast import CastDesk, Person

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
            name=desk.name, slug=desk.slug, owner=_user(desk.owner), tenant_id=desk.tenant_id, by=SYSTEM
        )
    if tenant.tenant_id != desk.tenant_id:
        raise Conflict(f"A tenant with the slug {desk.slug} exists already.{_STRANGER}")
    known = {member.id for member in members.members_of(TenantRepository(desk.tenant_id))}
    for member in desk.members:
        if member.person.id not in known:
            # The list above may be a moment behind.
            with suppress(Conflict):
                member_changes.seed_member(_user(member.person), tenant, member.role)
    return tenant


def _user(person: Person) -> User:
    return User(id=person.id, email=person.email, name=person.name)
