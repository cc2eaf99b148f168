"""A desk whose tickets and index lie in memory, for searches by the thousand. Reads are billed as AWS bills them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from portal.dynamo.client import Item
from portal.dynamo.store import Store
from tenants.membership.stored import MemberItem
from tenants.tenancy.context import Role, TenantContext
from tests.search.memory_store import ACME, MemoryStore
from tickets.search import index_lookup, stored
from tickets.search.index import fragments, postings, publishing
from tickets.search.index.fragments import Fragment
from tickets.search.stored import NewItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKET_ITEMS, TICKETS, ActivityItem, CounterItem, DetailItem, SummaryItem

ALICE, BOB = "b" * 32, "c" * 32
DAY = "2026-11-20T09:00:00.000000Z"


class MemoryRepository(Store):
    """The tenant's own repository, on the engine of its index."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__("tenant", store.tenant_id)
        self.engine = store.engine

    def _connection(self, *_: object) -> AbstractContextManager[Any]:
        return self.engine.connected()


class MemoryDesk:
    """Tickets that are written and indexed by one call. `viewer` and `agent` are who searches."""

    def __init__(self) -> None:
        self.store = MemoryStore(ACME)
        self.repository = MemoryRepository(self.store)
        self.agent = self._context(Role.AGENT, ALICE, "Alice Example")
        self.viewer = self._context(Role.VIEWER, BOB, "Vera Example")
        self.last = 0
        for user_id, name in ((ALICE, "Alice Example"), (BOB, "Bob Example")):
            self.member(user_id, name)
        index_lookup.forget()

    def member(self, user_id: str, name: str, role: Role = Role.AGENT) -> None:
        email = f"{name.split()[0].lower()}@example.com"
        item = MemberItem(ACME, user_id, name=name, email=email, role=role.value, created_at=DAY)
        self.write(item)

    def ticket(
        self,
        title: str,
        description: str = "",
        *,
        comments: Iterable[str] = (),
        notes: Iterable[str] = (),
        index: bool = True,
        number: int = 0,
        **values: Any,
    ) -> int:
        """Write a ticket, index it at once where that is wanted, and return its number."""
        self.last = number = number or self.last + 1
        status = values.get("status", "open")
        known = {
            "status": status, "priority": "normal", "tags": [], "resolver": "", "resolver_name": "", "requester": "",
            "requester_name": "", "created_at": DAY, "updated_at": DAY,
        } | values  # fmt: skip
        pk = ticket_keys.ticket(ACME, number)
        summary = SummaryItem(
            pk,
            ticket_keys.SUMMARY,
            number=number,
            title=title,
            tenant_status=ticket_keys.tenant_status(ACME, status.upper(), 0),
            resolver_updated=ticket_keys.resolver_updated(known["resolver"], known["updated_at"]),
            **known,
        )
        self.erase(number)
        self.write(summary)
        self.write(DetailItem(pk, ticket_keys.DETAIL, description=description))
        for kind, bodies in (("comment", comments), ("note", notes)):
            for n, body in enumerate(bodies):
                at = DAY.replace("000000Z", f"{n:06d}Z")
                sk = ticket_keys.activity(at, f"{kind}{n}")
                self.write(ActivityItem(pk, sk, kind=kind, at=at, author_name="Bob", body=body))
        self.write(CounterItem(ticket_keys.counter(ACME), ticket_keys.COUNTER_TICKET, last=max(self.last, number)))
        if index:
            self.index([number])
        return number

    def erase(self, number: int) -> None:
        self.store.engine.partitions.pop((TICKETS.full_name, ticket_keys.ticket(ACME, number)), None)

    def write(self, item: Item) -> None:
        """Write an item past all policies."""
        self.store.engine.dispatch("PutItem", {"TableName": item.table.full_name, "Item": item.serialize()})

    def fragments(self, numbers: Iterable[int]) -> list[Fragment]:
        return [
            fragment
            for number in numbers
            for item in self.repository.query_all(TICKET_ITEMS, ticket_keys.ticket, number)
            for fragment in fragments.of_item(item)
        ]

    def index(self, numbers: Iterable[int], *, version: int = 1) -> None:
        """Index these tickets as one batch of the stream does: an item of the tail."""
        self.put(fragments.inverted(self.fragments(numbers)), version)

    def plant(self, term: bytes, known: dict[int, int]) -> None:
        """Put postings into the index that no text has."""
        self.put([(term, known)])

    def put(self, inverted: Iterable[tuple[bytes, dict[int, int]]], version: int = 1) -> None:
        """Add terms, in order, with their postings to what is new."""
        block = postings.pack_block((term, entry) for term, known in inverted for entry in postings.entries(known))
        self.store.put(
            self.store.row(NewItem, stored.new(f"{self.store.engine.writes:08}"), block=block, version=version)
        )

    def index_as_segment(self, numbers: Iterable[int]) -> None:
        found = fragments.inverted(self.fragments(numbers))
        publishing.write(self.store, ((term, postings.entries(known)) for term, known in found), 1)

    def _context(self, role: Role, user_id: str, name: str) -> TenantContext:
        context = TenantContext(ACME, "Acme", "acme", role, user_id, name)
        context.__dict__["repository"] = self.repository
        return context
