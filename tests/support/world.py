"""The small world of the tests: Alice owns Acme and is an agent in Globex, Bob is an agent in Acme, Vera only
looks on there, Charlie belongs only to Globex."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.test import Client

from portal.dynamo.placement import Placement
from proofs.isolation.walk import visitors
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import member_changes, members
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.context import Role, TenantContext, enter, page_mark_of
from tenants.tenancy.request import Ids, Pin, read_cookie, write_cookie
from tenants.tenancy.stored import TENANTS, TenantItem
from tests.support import engine_memory
from tickets.desk import creating

PASSWORD = "a long enough password"


@dataclass
class World:
    users: dict[str, User] = field(default_factory=dict)
    tenants: dict[str, TenantItem] = field(default_factory=dict)

    @classmethod
    def create(cls, *, shards: int = 1, placements: Mapping[str, Placement] = MappingProxyType({})) -> World:
        """The world; desks lie where `placements` says by slug, else where the settings of the tests say."""
        world = cls()
        for name in ("Alice", "Bob", "Charlie", "Vera"):
            world.add_user(name)
        for slug, owner in (("acme", "alice"), ("globex", "charlie")):
            world.tenants[slug] = tenant_lifecycle.create(
                name=slug.capitalize(),
                owner=world.users[owner],
                shards=shards,
                placement=placements.get(slug, Placement.parse(settings.PLACEMENT)),
                by=SYSTEM,
            )
        world.join("bob", "acme", Role.AGENT)
        world.join("vera", "acme", Role.VIEWER)
        world.join("alice", "globex", Role.AGENT)
        return world

    def add_user(self, name: str) -> User:
        user = accounts.seed(
            email=f"{name.lower()}@example.com", name=f"{name} Example", password_hash=make_password(PASSWORD)
        )
        self.users[name.lower()] = user
        return user

    def join(self, who: str, where: str, role: Role) -> None:
        member_changes.seed_member(self.users[who], self.tenants[where], role)

    def context(self, who: str, where: str) -> TenantContext:
        found = enter(self.users[who], self.tenants[where].tenant_id)
        assert found is not None, f"{who} is not a member of {where}"
        return found

    def tickets(self, where: str, count: int, *, who: str | None = None) -> list[int]:
        """Open tickets, one write after the other."""
        author = self.context(who or ("alice" if where == "acme" else "charlie"), where)

        def make() -> list[int]:
            return [creating.create(author, title=f"Ticket {i + 1}", description="It *broke*.") for i in range(count)]

        return engine_memory.continued(f"{count}-of-{author.user_id}-in-{where}", make)

    def browser(self, who: str, where: str | None = None, **kwargs: object) -> Browser:
        """A signed-in test client, in the tenant that is named, or in the only one of this person."""
        client = Browser(**kwargs)
        client.slugs.update({tenant.tenant_id: tenant.slug for tenant in self.tenants.values()})
        user = self.users[who]
        mine = [m.tenant_id for m in members.memberships_of(user.id)] if where is None else []
        only = mine[0] if len(mine) == 1 else ""
        tenant_id = self.tenants[where].tenant_id if where else only
        ids = engine_memory.continued(f"{who}-at-{tenant_id}", lambda: visitors.mint(user, tenant_id))
        client.cookies[settings.SESSION_COOKIE_NAME] = write_cookie(ids)
        return client


class Browser(Client):
    """Django's test client that behaves like a person: it sends what the page's forms hold.

    An address like `/tickets/1/` stands for the page of the desk that is pinned now: `/acme/tickets/1/`.
    """

    slugs: ClassVar[dict[str, str]] = {}

    def generic(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        return super().generic(method, self.at_desk(path), *args, **kwargs)

    def at_desk(self, path: str) -> str:
        """The address with the pinned desk's name in front, where it is one of a desk's pages without it."""
        tenant_id = self.ids.tenant_id if self.ids else ""
        if not tenant_id or not path.startswith(("/tickets/", "/search/", "/requesters/", "/desk/")):
            return path
        with suppress(OSError):  # as it was then
            # Past the portal's clients, which some tests count or fail: it is the test that asks.
            key = {TENANTS.hash: {"S": tenant_id}}
            found = engine_memory.wire().call("GetItem", TableName=TENANTS.full_name, Key=key, ConsistentRead=True)
            self.slugs[tenant_id] = found["Item"]["slug"]["S"]
        return f"/{self.slugs[tenant_id]}{path}"

    @property
    def ids(self) -> Ids | None:
        """What this browser's cookie holds, None where nobody is signed in."""
        cookie = self.cookies.get(settings.SESSION_COOKIE_NAME)
        return read_cookie(cookie.value) if cookie else None

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The desks that this browser's cookie names, the last used one first."""
        return self.ids.pins if self.ids else ()

    def sign_in(self, email: str, password: str = PASSWORD, **extra: str) -> Any:
        return self.post("/login/", {"email": email, "password": password, **extra})

    @property
    def session_key(self) -> str:
        """The key in this browser's cookie, "" where nobody is signed in."""
        return self.ids.session_key if self.ids else ""

    def enter(self, tenant_id: str) -> None:
        assert self.post("/tenants/switch/", {"tenant": tenant_id}).status_code == 302

    def mark(self) -> str:
        """The page mark of the pages that this browser is shown now."""
        ids = self.ids
        return page_mark_of(ids.user_id, ids.tenant_id) if ids and ids.tenant_id else ""

    def send(self, path: str, data: dict[str, object] | None = None, **extra: object) -> Any:
        """POST from a page of the tenant that is pinned now."""
        return self.post(path, {"_page": self.mark(), **(data or {})}, **extra)


def account_of(email: str) -> User:
    """The account that has this address, as it is stored now."""
    found = accounts.find_by_email(email)
    assert found is not None, f"{email} has no account"
    return found


def captured(pattern: str, where: Any) -> str:
    """What the group of this pattern captures, in a text or in the page of a response."""
    text = where if isinstance(where, str) else where.content.decode()
    found = re.search(pattern, text)
    assert found is not None, f"{pattern} is not in {text[:2000]}"
    return found[1]
