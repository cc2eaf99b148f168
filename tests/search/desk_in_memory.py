"""A desk whose tickets and index lie in memory, for searches by the thousand. Reads are billed as AWS bills them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from portal.dynamo import meter
from portal.dynamo.meter import Call, item_size, read_units
from portal.dynamo.paging import Page
from portal.schema import keys as portal_keys
from portal.schema.tables import Table
from tenants.membership.stored import MemberItem
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tests.search.memory_store import ACME, MemoryStore
from tickets.search import index_lookup, stored
from tickets.search.index import fragments, postings
from tickets.search.index.fragments import Fragment
from tickets.search.index.index_store import RowWrite
from tickets.search.index.segments import SegmentWriter
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import ActivityItem, CounterItem, DetailItem, SummaryItem

Raw = dict[str, Any]
ALICE, BOB = "b" * 32, "c" * 32
DAY = "2026-11-20T09:00:00.000000Z"


class MemoryRepository:
    """What a search asks of `TenantRepository`."""

    def __init__(self, store: MemoryStore) -> None:
        self.tenant_id = store.tenant_id
        self.store = store
        self.partitions: dict[str, dict[str, Raw]] = {}

    def key(self, build: Any, *args: Any) -> str:
        return str(build(self.tenant_id, *args))

    def get(self, model: Any, build: Any, *args: Any, sort: str | None = None) -> Any:
        raw = self.partitions.get(self.key(build, *args), {}).get(sort or "")
        self._bill("GetItem", model.table.full_name, [raw] if raw else [], together=True)
        return model.from_raw_data(raw) if raw else None

    def get_stored(
        self, table: Any, wanted: Sequence[tuple[Any, tuple[Any, ...], str]], *, consistent: bool = False
    ) -> list[Raw]:
        assert len(wanted) <= 100
        found = [self._partition(self.key(build, *args)).get(sort) for build, args, sort in wanted]
        rows = [raw for raw in found if raw]
        self._bill("BatchGetItem", table.full_name, rows, missing=len(wanted) - len(rows), consistent=consistent)
        return rows

    def query(
        self,
        model: Any,
        build: Any,
        *args: Any,
        between: tuple[str, str] | None = None,
        descending: bool = False,
        limit: int | None = None,
        start: Raw | None = None,
        consistent: bool = False,
        **_: Any,
    ) -> Page:
        plain = isinstance(model, Table)
        table, index = (model, None) if plain else (model.table, model.gsi)
        if index is not None:
            rows = self._indexed(index, self.key(build, *args), between or ("", "~"))
        else:
            found = self._partition(self.key(build, *args))
            sorts = sorted(found)
            low, high = between or ("", "\U0010ffff")
            rows = [found[sort] for sort in sorts[bisect_left(sorts, low) : bisect_right(sorts, high)]]
        name = (index or table).range
        if descending:
            rows.reverse()
        if start:
            at = start[name]["S"]
            rows = [r for r in rows if (r[name]["S"] < at if descending else r[name]["S"] > at)]
        page = rows[:limit] if limit else rows
        more = len(page) < len(rows)
        self._bill("Query", table.full_name, page, together=True, consistent=consistent)
        items = page if plain else [*map(model.from_raw_data, page)]
        return Page(items, {n: page[-1][n] for n in (table.hash, table.range)} if more else None)

    def query_all(self, model: Any, build: Any, *args: Any, **how: Any) -> Iterator[Any]:
        return iter(self.query(model, build, *args, **how).items)

    def _partition(self, pk: str) -> dict[str, Raw]:
        if pk == stored.directory(self.tenant_id):
            return {raw["sk"]["S"]: raw for raw in self.store.rows("", "~")}
        name, *rest = pk.partition("|")[2].split("#")
        if name == "SEGMENT":
            of = ((number, data) for (segment, number), data in self.store.stored.items() if segment == rest[0])
            return {
                stored.block(number): {"pk": {"S": pk}, "sk": {"S": stored.block(number)}, "d": {"B": data}}
                for number, data in of
            }
        return self.partitions.get(pk, {})

    def _indexed(self, index: Any, pk: str, between: tuple[str, str]) -> list[Raw]:
        rows = [rows[ticket_keys.SUMMARY] for rows in self.partitions.values() if ticket_keys.SUMMARY in rows]
        rows = [raw for raw in rows if raw["tenant_status"]["S"] == pk]
        rows = [raw for raw in rows if between[0] <= raw[index.range]["S"] <= between[1]]
        return sorted(rows, key=lambda raw: str(raw[index.range]["S"]))

    def _bill(
        self,
        operation: str,
        table: str,
        rows: Sequence[Raw],
        *,
        missing: int = 0,
        together: bool = False,
        consistent: bool = False,
    ) -> None:
        counting = meter.current()
        if counting is None:
            return
        rate = 1.0 if consistent else 0.5
        sizes = [item_size(raw) for raw in rows]
        units = sum(read_units(size, per_4k=rate) for size in sizes) + missing * rate
        if together:
            units = read_units(sum(sizes), per_4k=rate)
        counting.add(Call(operation, table, None, len(rows), sum(sizes), units, 0, 0))


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
        self.repository.partitions.setdefault(portal_keys.tenant(ACME), {})[user_id] = item.serialize()

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
        items = [summary.serialize(), DetailItem(pk, ticket_keys.DETAIL, description=description).serialize()]
        for kind, bodies in (("comment", comments), ("note", notes)):
            for n, body in enumerate(bodies):
                at = DAY.replace("000000Z", f"{n:06d}Z")
                sk = ticket_keys.activity(at, f"{kind}{n}")
                items.append(ActivityItem(pk, sk, kind=kind, at=at, author_name="Bob", body=body).serialize())
        self.repository.partitions[pk] = {raw["sk"]["S"]: raw for raw in items}
        counter = CounterItem(ticket_keys.counter(ACME), ticket_keys.COUNTER_TICKET, last=max(self.last, number))
        self.repository.partitions[counter.pk] = {counter.sk: counter.serialize()}
        if index:
            self.index([number])
        return number

    def fragments(self, numbers: Iterable[int]) -> list[Fragment]:
        found: list[Fragment] = []
        for number in numbers:
            for sk, raw in self.repository.partitions[ticket_keys.ticket(ACME, number)].items():
                of = {ticket_keys.SUMMARY: fragments.of_summary, ticket_keys.DETAIL: fragments.of_detail}
                found += of.get(sk, fragments.of_activity)(raw)
        return found

    def index(self, numbers: Iterable[int], *, version: int = 1) -> None:
        """Index these tickets as one batch of the stream does: an item of the tail."""
        self.put(fragments.inverted(self.fragments(numbers)), version)

    def plant(self, term: bytes, known: dict[int, int]) -> None:
        """Put postings into the index that no text has."""
        self.put([(term, known)])

    def put(self, inverted: Iterable[tuple[bytes, dict[int, int]]], version: int = 1) -> None:
        """Add terms, in order, with their postings to what is new."""
        block = postings.pack_block((term, entry) for term, known in inverted for entry in postings.entries(known))
        name = stored.new(f"{self.store.writes:08}")
        self.store.write(RowWrite(name, {"d": {"B": block}, "v": {"N": str(version)}}))

    def index_as_segment(self, numbers: Iterable[int]) -> None:
        segment = stored.segment_id(self.store.next_number())
        writer = SegmentWriter(self.store, segment, expected=0)
        for term, known in fragments.inverted(self.fragments(numbers)):
            writer.add(term, postings.entries(known))
        self.store.write(RowWrite(stored.header(segment), writer.finish([1]).attributes()))

    def _context(self, role: Role, user_id: str, name: str) -> TenantContext:
        context = TenantContext(ACME, "Acme", "acme", role, user_id, name)
        context.__dict__["repository"] = self.repository
        return context
