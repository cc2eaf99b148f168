"""The small world of the tests: Alice owns Acme and is an agent in Globex, Bob is an agent in Acme, Vera only
looks on there, Charlie belongs only to Globex."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from django.test import Client

from tenants import accounts, context, lifecycle, members
from tenants.context import TenantContext
from tenants.items import TenantItem
from tenants.models import User
from tenants.roles import Role
from tickets import lifecycle as tickets

PASSWORD = "a long enough password"


@dataclass
class World:
    users: dict[str, User] = field(default_factory=dict)
    tenants: dict[str, TenantItem] = field(default_factory=dict)

    @classmethod
    def create(cls, *, shards: int = 1) -> World:
        world = cls()
        for name in ("Alice", "Bob", "Charlie", "Vera"):
            world.add_user(name)
        world.tenants["acme"] = lifecycle.create(name="Acme", owner=world.users["alice"], shards=shards)
        world.tenants["globex"] = lifecycle.create(name="Globex", owner=world.users["charlie"], shards=shards)
        world.join("bob", "acme", Role.AGENT)
        world.join("vera", "acme", Role.VIEWER)
        world.join("alice", "globex", Role.AGENT)
        return world

    def add_user(self, name: str) -> User:
        user = accounts.create(email=f"{name.lower()}@example.com", name=f"{name} Example", password=PASSWORD)
        self.users[name.lower()] = user
        return user

    def join(self, who: str, where: str, role: Role) -> None:
        tenant = self.tenants[where]
        members.add(
            user=self.users[who],
            tenant_id=tenant.tenant_id,
            tenant_name=tenant.name,
            tenant_slug=tenant.slug,
            role=role,
        )

    def context(self, who: str, where: str) -> TenantContext:
        found = context.enter(self.users[who], self.tenants[where].tenant_id)
        assert found is not None, f"{who} is not a member of {where}"
        return found

    def tickets(self, where: str, count: int, *, who: str | None = None) -> list[int]:
        """Open tickets, one write after the other."""
        author = self.context(who or ("alice" if where == "acme" else "charlie"), where)
        return [tickets.create(author, title=f"Ticket {i + 1}", description="It *broke*.") for i in range(count)]

    def browser(self, who: str, where: str | None = None, **kwargs: object) -> Browser:
        """A signed-in test client, in a tenant where one is named."""
        client = Browser(**kwargs)
        client.sign_in(f"{who}@example.com")
        if where:
            client.enter(self.tenants[where].tenant_id)
        return client


class Browser(Client):
    """Django's test client that behaves like a person: it sends what the page's forms hold."""

    def sign_in(self, email: str, password: str = PASSWORD, **extra: str) -> object:
        return self.post("/login/", {"email": email, "password": password, **extra})

    def enter(self, tenant_id: str) -> None:
        assert self.post("/tenants/switch/", {"tenant": tenant_id}).status_code == 302

    def mark(self) -> str:
        """The page mark of the pages that this browser is shown now."""
        page = self.get("/tickets/new/")
        if page.status_code != 200:
            page = self.get("/tickets/")
        found = re.search(r'name="_page" value="([0-9a-f]+)"', page.content.decode())
        return found[1] if found else ""

    def send(self, path: str, data: dict[str, object] | None = None, **extra: object) -> object:
        """POST from a page of the tenant that is pinned now."""
        return self.post(path, {"_page": self.mark(), **(data or {})}, **extra)
