"""Writes the demonstration's accounts, tenants and memberships: what is missing, and nothing that is there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from django.contrib.auth.hashers import make_password

from portal.dynamo import client, keys
from portal.dynamo.client import Item
from portal.dynamo.repository import BATCH_GET_LIMIT, TenantRepository, batch_get
from portal.errors import Conflict
from tenants import accounts, lifecycle, members
from tenants.items import AccountItem, TenantItem
from tenants.models import User
from tickets.seeding.cast import Desk, Person

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
        for start in range(0, len(people), BATCH_GET_LIMIT):
            group = people[start : start + BATCH_GET_LIMIT]
            wanted: list[tuple[type[Item], str, str | None]] = [(AccountItem, keys.user(p.id), None) for p in group]
            found = batch_get(client.connection("platform"), wanted, consistent=True)
            for person, item in zip(group, found, strict=True):
                if item is None:
                    self._create(person)

    def _create(self, person: Person) -> None:
        try:
            accounts.create(
                email=person.email,
                name=person.name,
                password=None,
                password_hash=self._hash,
                is_operator=person.is_operator,
                user_id=person.id,
            )
        except Conflict as error:
            raise Conflict(error.message + _STRANGER) from error
        self.made += 1


def ensure_tenant(desk: Desk) -> TenantItem:
    """The desk's tenant with all its members, made now if need be. Raises Conflict where the slug is taken."""
    wanted: list[tuple[type[Item], str, str | None]] = [(TenantItem, keys.tenant(desk.tenant_id), None)]
    (item,) = batch_get(client.connection("platform"), wanted, consistent=True)
    if not isinstance(item, TenantItem):
        try:
            item = lifecycle.create(name=desk.name, slug=desk.slug, owner=_user(desk.owner), tenant_id=desk.tenant_id)
        except Conflict as error:
            raise Conflict(error.message + _STRANGER) from error
    known = {member.id for member in members.members_of(TenantRepository(desk.tenant_id))}
    for member in desk.members:
        if member.person.id not in known:
            # The list above may be a moment behind.
            with suppress(Conflict):
                members.add(
                    user=_user(member.person),
                    tenant_id=desk.tenant_id,
                    tenant_name=desk.name,
                    tenant_slug=desk.slug,
                    role=member.role,
                )
    return item


def _user(person: Person) -> User:
    return User(id=person.id, email=person.email, name=person.name)
