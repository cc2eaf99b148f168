"""The data layer, on every engine: what it asks of DynamoDB, each of them answers in the same way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from portal.dynamo import client, meter
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import RawItems, Store, Transaction, batch_put
from portal.dynamo.transaction import write
from portal.errors import ConditionFailed, TransactionRefused, Unavailable
from portal.schema import keys, registry
from tenants.membership.stored import MEMBERS, MemberItem
from tenants.sign_in.stored import AccountItem, UniqueItem, user_key
from tenants.tenancy.stored import MembershipItem, TenantItem, slug_key
from tests.support.fakes import answering
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import (
    RESOLVER_RAISED,
    STATUS_RESOLVER,
    STATUS_UPDATED,
    TICKETS,
    ActivityItem,
    ChangeMap,
    CounterItem,
    DetailItem,
    RequestItem,
    SummaryItem,
)

if TYPE_CHECKING:
    from tests.support.engines import AnyEngine

pytest_plugins = ["tests.support.engines"]

ACME, GLOBEX = "ac" * 16, "9b" * 16
REQUESTER = "rq_" + "5" * 32
BOB = "b0" * 16


def acme() -> Store:
    return Store("tenant", ACME)


def raw(operation: str, **params: Any) -> dict[str, Any]:
    """Past the repository, as no code of the portal can."""
    answer: dict[str, Any] = platform().dispatch(operation, params)
    return answer


def platform() -> client.SharedConnection:
    return client.connection("platform")


def put(*items: Any) -> None:
    """What no tenant may write itself."""
    batch_put(platform(), items)


def text_of(number: int) -> str | None:
    found = acme().get(DetailItem, ticket_keys.ticket, number, sort=ticket_keys.DETAIL)
    return found.description if found else None


def member(user_id: str, *, tenant_id: str = ACME, name: str = "Bob") -> MemberItem:
    return MemberItem(tenant_id, user_id, name=name, email="bob@example.com", role="agent", created_at="2026")


def detail(number: int, text: str, *, tenant_id: str = ACME) -> DetailItem:
    return DetailItem(ticket_keys.ticket(tenant_id, number), ticket_keys.DETAIL, description=text)


def entry(number: int, at: str) -> ActivityItem:
    return ActivityItem(
        ticket_keys.ticket(ACME, number), ticket_keys.activity(at, "e"), kind="comment", at=at, author_name="Bob"
    )


def summary_of(number: int, *, tags: list[str]) -> SummaryItem:
    row = indexed(number, "2026")
    return SummaryItem(
        ticket_keys.ticket(ACME, number),
        ticket_keys.SUMMARY,
        number=number,
        title="Printer",
        status="open",
        priority="normal",
        tags=tags,
        requester_name="Bob",
        created_at="2026",
        **{name: row[name]["S"] for name in ("tenant_status", "updated_at", "resolver_updated")},
    )


def indexed(number: int, updated_at: str, **more: Any) -> dict[str, Any]:
    """A row of the status indexes with nothing but its keys."""
    return {
        "pk": {"S": ticket_keys.ticket(ACME, number)},
        "sk": {"S": ticket_keys.SUMMARY},
        "tenant_status": {"S": ticket_keys.tenant_status(ACME, "OPEN", 0)},
        "updated_at": {"S": updated_at},
        "resolver_updated": {"S": ticket_keys.resolver_updated("", updated_at)},
        "raised_status": {"S": ticket_keys.raised_status(ACME, "OPEN")},
        "raised_at": {"S": updated_at},
        "resolver_raised": {"S": ticket_keys.resolver_updated("", updated_at)},
        "tenant_requester": {"S": ticket_keys.tenant_requester(ACME, REQUESTER)},
        "created_at": {"S": updated_at},
        "number": {"N": str(number)},
    } | more


# --- reading ---


def test_an_item_is_read_as_it_was_written(any_tables: AnyEngine) -> None:
    written = member(BOB, name="Bób \N{GRINNING FACE}")
    put(written)
    for consistent in (False, True):
        found = acme().get(MemberItem, keys.tenant, sort=BOB, consistent=consistent)
        assert found is not None
        assert found.attribute_values == written.attribute_values


def test_an_item_of_every_shape_comes_back(any_tables: AnyEngine) -> None:
    activity = entry(1, "2026-01-01")
    activity.changes = [ChangeMap(field="title", before="", after="\N{GRINNING FACE}")]
    acme().put_all([activity, summary_of(1, tags=["a", "ü"]), summary_of(2, tags=[])])
    for number, tags in ((1, ["a", "ü"]), (2, [])):
        found = acme().get(SummaryItem, ticket_keys.ticket, number, sort=ticket_keys.SUMMARY)
        assert found is not None
        assert (found.number, found.tags, found.resolver, found.version) == (number, tags, "", 1)
    again = acme().get(ActivityItem, ticket_keys.ticket, 1, sort=activity.sk)
    assert again is not None
    assert (again.body, [(c.field, c.before, c.after) for c in again.changes]) == (
        "",
        [("title", "", "\N{GRINNING FACE}")],
    )


def test_an_item_that_is_not_there_is_none(any_tables: AnyEngine) -> None:
    assert acme().get(MemberItem, keys.tenant, sort=BOB) is None
    assert acme().get(DetailItem, ticket_keys.ticket, 1, sort=ticket_keys.DETAIL) is None


def test_the_same_request_reads_another_item_for_another_tenant(any_tables: AnyEngine) -> None:
    acme().put_all([detail(1, "Acme's")])
    Store("tenant", GLOBEX).put_all([detail(1, "Globex's", tenant_id=GLOBEX)])
    for tenant_id, text in ((ACME, "Acme's"), (GLOBEX, "Globex's")):
        found = Store("tenant", tenant_id).get(DetailItem, ticket_keys.ticket, 1, sort=ticket_keys.DETAIL)
        assert found is not None
        assert found.description == text


@pytest.fixture
def collection(any_tables: AnyEngine) -> list[str]:
    """Sort keys of a ticket with five entries in its history, as the engine orders them."""
    entries = [entry(1, f"2026-01-0{day}") for day in range(1, 6)]
    acme().put_all([*entries, detail(1, "text"), detail(2, "of another ticket"), entry(11, "2026-01-01")])
    return sorted([*(e.sk for e in entries), ticket_keys.DETAIL])


def query(**how: Any) -> tuple[list[str], dict[str, Any] | None]:
    page = acme().query(RawItems(TICKETS), ticket_keys.ticket, 1, **how)
    return [item["sk"]["S"] for item in page.items], page.last_key


def test_a_query_reads_one_partition_in_order(collection: list[str]) -> None:
    assert query() == (collection, None)
    assert query(consistent=True) == (collection, None)
    assert query(descending=True) == (collection[::-1], None)


def test_a_query_of_an_empty_partition_is_empty(any_tables: AnyEngine) -> None:
    assert query() == ([], None)


def test_a_query_is_narrowed_to_a_beginning(collection: list[str]) -> None:
    assert query(begins_with=ticket_keys.ACTIVITY_PREFIX)[0] == collection[:5]
    assert query(begins_with=ticket_keys.ACTIVITY_PREFIX, descending=True)[0] == collection[4::-1]
    assert query(begins_with="X")[0] == []


def test_a_query_is_narrowed_to_a_range_with_both_its_ends(collection: list[str]) -> None:
    between = (collection[1], collection[3])
    assert query(between=between)[0] == collection[1:4]
    assert query(between=between, descending=True)[0] == collection[3:0:-1]
    assert query(between=("B", "C"))[0] == []


def test_a_limited_query_says_where_it_goes_on(collection: list[str]) -> None:
    for descending, wanted in ((False, collection), (True, collection[::-1])):
        first, last_key = query(limit=4, descending=descending)
        assert first == wanted[:4]
        assert last_key == {"pk": {"S": ticket_keys.ticket(ACME, 1)}, "sk": {"S": wanted[3]}}
        rest, last_key = query(limit=4, descending=descending, start=last_key)
        assert (rest, last_key) == (wanted[4:], None)


def test_a_query_goes_on_behind_an_item_that_is_gone(collection: list[str]) -> None:
    gone = {"pk": {"S": ticket_keys.ticket(ACME, 1)}, "sk": {"S": collection[2]}}
    raw("DeleteItem", TableName=TICKETS.full_name, Key=gone)
    assert query(start=gone)[0] == collection[3:]
    assert query(start=gone, descending=True)[0] == collection[1::-1]


@pytest.mark.parametrize("index", TICKETS.indexes, ids=lambda i: i.name)
def test_an_index_is_read_in_order_between_bounds_from_a_start(any_tables: AnyEngine, index: registry.Index) -> None:
    for number in range(1, 7):
        item = indexed(number, f"2026-01-0{number}", description={"S": "not projected"})
        raw("PutItem", TableName=TICKETS.full_name, Item=item)
    raw("PutItem", TableName=TICKETS.full_name, Item={"pk": {"S": "not"}, "sk": {"S": "indexed"}})
    prefix = ticket_keys.resolver_prefix("") if index in (STATUS_RESOLVER, RESOLVER_RAISED) else ""
    where = {
        "raised_status": (ticket_keys.raised_status, "OPEN"),
        "tenant_requester": (ticket_keys.tenant_requester, REQUESTER),
    }.get(index.hash, (ticket_keys.tenant_status, "OPEN", 0))
    bounds = (f"{prefix}2026-01-02", f"{prefix}2026-01-05")

    def read(**how: Any) -> tuple[list[int], dict[str, Any] | None]:
        page = acme().query(RawItems(TICKETS, index), *where, between=bounds, limit=3, **how)
        assert all("description" not in item for item in page.items)
        return [int(item["number"]["N"]) for item in page.items], page.last_key

    for descending, wanted in ((False, [2, 3, 4, 5]), (True, [5, 4, 3, 2])):
        first, last_key = read(descending=descending)
        assert first == wanted[:3]
        assert set(last_key or ()) == {"pk", "sk", index.hash, index.range}
        assert read(descending=descending, start=last_key) == (wanted[3:], None)


def test_rows_of_one_moment_have_one_order_that_turns_around(any_tables: AnyEngine) -> None:
    for number in range(1, 10):
        raw("PutItem", TableName=TICKETS.full_name, Item=indexed(number, "2026-01-01"))

    def read(**how: Any) -> list[str]:
        page = acme().query(RawItems(TICKETS, STATUS_UPDATED), ticket_keys.tenant_status, "OPEN", 0, **how)
        return [item["pk"]["S"] for item in page.items]

    whole = read()
    assert len(whole) == 9
    assert read(descending=True) == whole[::-1]
    row = indexed(1, "2026-01-01")
    place = {name: row[name] for name in ("sk", "tenant_status", "updated_at")}
    for position, pk in enumerate(whole):
        start = place | {"pk": {"S": pk}}
        assert read(start=start) == whole[position + 1 :]
        assert read(start=start, descending=True) == whole[:position][::-1]


def test_everything_in_a_partition_is_read_page_by_page(collection: list[str]) -> None:
    with meter.measure() as bill:
        items = acme().query_all(RawItems(TICKETS), ticket_keys.ticket, 1, limit=4, descending=True)
        assert len(bill.calls) == 0
        first = next(items)
        assert len(bill.calls) == 1
        assert [raw["sk"]["S"] for raw in (first, *items)] == collection[::-1]
        assert len(bill.calls) == 2


# --- batches ---


def test_many_items_are_written_in_groups(any_tables: AnyEngine) -> None:
    entries = [entry(1, f"{n:02}") for n in range(60)]
    with meter.measure() as bill:
        acme().put_all(entries)
    assert len(bill.calls) == 3
    assert query()[0] == [e.sk for e in entries]


def test_nothing_is_sent_for_no_items(any_tables: AnyEngine, bill: meter.Meter) -> None:
    acme().put_all([])
    assert bill.calls == []


def test_a_batch_reads_items_of_several_tables_in_one_call_and_in_the_order_asked(any_tables: AnyEngine) -> None:
    tenant = TenantItem(ACME, name="Acme", slug="acme", created_at="2026")
    put(member(BOB), tenant, UniqueItem(slug_key("acme"), owner=ACME))
    wanted: list[Any] = [
        (UniqueItem, slug_key("acme"), None),
        (MemberItem, ACME, "0" * 32),
        (MemberItem, ACME, BOB),
        (TenantItem, GLOBEX, None),
        (TenantItem, ACME, None),
        (MemberItem, ACME, BOB),
    ]
    units = []
    for consistent in (False, True):
        with meter.measure() as bill:
            slug, nobody, bob, globex, found, bob_again = PLATFORM.get_all(wanted, consistent=consistent)
        assert len(bill.calls) == 1
        assert slug is not None
        assert slug.owner == ACME
        assert nobody is None
        assert globex is None
        assert found is not None
        assert (found.name, found.shards, found.status) == ("Acme", 1, "active")
        assert bob is not None
        assert bob_again is not None
        assert bob.attribute_values == bob_again.attribute_values
        units.append(bill.read_units)
    assert units[1] == 2 * units[0] > 0


def test_keys_that_were_left_unprocessed_are_asked_for_again(any_tables: AnyEngine) -> None:
    put(*(member(f"{n:032x}") for n in range(4)))
    left = [{"tenant_id": {"S": ACME}, "user_id": {"S": f"{n:032x}"}} for n in (1, 3)]
    found = [member(f"{n:032x}").serialize() for n in (0, 2)]
    name = MEMBERS.full_name
    half = (200, {"Responses": {name: found}, "UnprocessedKeys": {name: {"Keys": left, "ConsistentRead": True}}})
    nothing = (200, {"Responses": {}, "UnprocessedKeys": {name: {"Keys": left, "ConsistentRead": True}}})
    with answering("platform", "BatchGetItem", half, nothing) as seen:
        items = PLATFORM.get_all([(MemberItem, ACME, f"{n:032x}") for n in range(4)])
    assert len(seen) == 2
    assert [i.user_id if i else None for i in items] == [f"{n:032x}" for n in range(4)]


def test_keys_that_stay_unprocessed_are_no_missing_items(any_tables: AnyEngine) -> None:
    name = MEMBERS.full_name
    key = {"tenant_id": {"S": ACME}, "user_id": {"S": BOB}}
    nothing = (200, {"Responses": {}, "UnprocessedKeys": {name: {"Keys": [key]}}})
    with answering("platform", "BatchGetItem", *[nothing] * 20) as seen, pytest.raises(Unavailable):
        PLATFORM.get_all([(MemberItem, ACME, BOB)])
    assert 2 <= len(seen) <= 5


def test_items_that_were_left_unprocessed_are_written_again(any_tables: AnyEngine) -> None:
    entries = [entry(1, f"{n:02}") for n in range(30)]
    left = [{"PutRequest": {"Item": e.serialize()}} for e in entries[:25]]
    with answering("seed", "BatchWriteItem", (200, {"UnprocessedItems": {TICKETS.full_name: left}})):
        acme().put_all(entries)
    assert query()[0] == [e.sk for e in entries]


# --- transactions ---


def test_a_transaction_writes_all(any_tables: AnyEngine) -> None:
    acme().put_all([detail(1, "old")])
    transaction = Transaction()
    transaction.update(detail(1, ""), [DetailItem.description.set("new")], condition=DetailItem.pk.exists())
    transaction.put(detail(2, "added"), condition=DetailItem.pk.does_not_exist())
    acme().transact(transaction)
    assert [text_of(n) for n in (1, 2)] == ["new", "added"]


def test_a_transaction_may_delete_and_span_tables(any_tables: AnyEngine) -> None:
    put(member(BOB))
    transaction = Transaction()
    transaction.delete(member(BOB), condition=MemberItem.user_id.exists())
    transaction.put(detail(1, "added"))
    write(platform(), transaction)
    assert text_of(1) == "added"
    assert acme().get(MemberItem, keys.tenant, sort=BOB) is None


def test_a_refused_transaction_writes_nothing_and_gives_its_reasons_in_the_order_sent(any_tables: AnyEngine) -> None:
    put(detail(1, "stays"), detail(2, "stays too"))
    transaction = Transaction()
    # PynamoDB alone would send checks, deletes, puts and updates, in this order.
    transaction.update(detail(1, ""), [DetailItem.description.set("changed")])
    transaction.put(detail(2, "overwritten"), name="second", condition=DetailItem.pk.does_not_exist())
    transaction.put(detail(3, "added"), name="third")
    transaction.delete(entry(4, "000"), condition=ActivityItem.pk.exists())
    transaction.update(detail(5, ""), [DetailItem.description.set("x")], condition=DetailItem.description == "y")
    with pytest.raises(TransactionRefused) as caught:
        write(platform(), transaction)
    refused, reasons = caught.value, caught.value.reasons
    failed = "ConditionalCheckFailed"
    assert [r.code if r else None for r in reasons] == [None, failed, None, failed, failed]
    assert refused.reason("second") is reasons[1]
    assert refused.reason("third") is None
    assert reasons[1] is not None
    assert reasons[1].item == detail(2, "stays too").serialize()
    assert reasons[3] is not None
    assert not reasons[3].item
    assert [text_of(n) for n in (1, 2, 3, 4, 5)] == ["stays", "stays too", None, None, None]


def of_length(count: int) -> Transaction:
    transaction = Transaction()
    for n in range(count):
        transaction.put(entry(1, f"{n:03}"))
    return transaction


def test_a_hundred_members_are_one_transaction(any_tables: AnyEngine) -> None:
    with meter.measure() as bill:
        acme().transact(of_length(100))
    assert len(bill.calls) == 1
    assert len(query()[0]) == 100


def test_a_transaction_of_101_is_refused_before_it_is_sent(bill: meter.Meter) -> None:
    with pytest.raises(ValueError, match="at most 100"):
        acme().transact(of_length(101))
    with pytest.raises(ValueError, match="at most 100"):
        write(platform(), of_length(101))
    assert bill.calls == []


def test_a_transaction_sent_again_with_its_token_is_done_once(any_tables: AnyEngine) -> None:
    if any_tables.kind == "moto":
        pytest.skip("moto ignores the token")
    acme().put_all([request_record(1)])
    transaction = Transaction()
    transaction.update(request_record(0), [RequestItem.number.add(1)])
    for _ in range(3):
        acme().transact(transaction, token="t" * 36)
    found = acme().get(RequestItem, ticket_keys.request, "r", sort="TICKET")
    assert found is not None
    assert found.number == 2


def request_record(number: int) -> RequestItem:
    return RequestItem(ticket_keys.request(ACME, "r"), "TICKET", number=number, expires_at=0)


def test_a_single_write_whose_condition_fails_is_told_so(any_tables: AnyEngine) -> None:
    UniqueItem(slug_key("acme"), owner=ACME).save()
    with pytest.raises(ConditionFailed):
        UniqueItem(slug_key("acme"), owner=GLOBEX).save(condition=UniqueItem.pk.does_not_exist())
    assert UniqueItem.get(slug_key("acme")).owner == ACME


# --- another tenant's keys ---


FOREIGN: list[Callable[[], Any]] = [
    lambda: detail(1, "theirs", tenant_id=GLOBEX),
    lambda: member(BOB, tenant_id=GLOBEX),
    lambda: TenantItem(GLOBEX, name="Globex", slug="globex", created_at="2026"),
    lambda: DetailItem(f"TENANT#{ACME}", ticket_keys.DETAIL),
    lambda: DetailItem(f"TENANT#{ACME}0|TICKET#1", ticket_keys.DETAIL),
    lambda: DetailItem("", ticket_keys.DETAIL),
    # The platform's tables are nobody's.
    lambda: AccountItem(user_key(BOB), user_id=BOB, email="b@x.y", name="B", password="", created_at="2026"),
    lambda: MembershipItem(BOB, ACME, role="owner", tenant_name="Acme", tenant_slug="acme", created_at="2026"),
    lambda: UniqueItem(slug_key("acme"), owner=ACME),
]


@pytest.mark.parametrize("make", FOREIGN)
def test_an_item_of_somebody_else_is_never_sent(bill: meter.Meter, make: Callable[[], Any]) -> None:
    item = make()
    with pytest.raises(ValueError, match="another tenant"):
        acme().put_all([entry(1, "2026"), item])
    key = type(item)._hash_key_attribute()
    update = acme().updating(DetailItem, ticket_keys.DETAIL, [DetailItem.description.set("x")], condition=key.exists())
    with pytest.raises(ValueError, match="another tenant"):
        update(str(getattr(item, key.attr_name)))
    for add in (
        lambda t: t.put(item),
        lambda t: t.delete(item),
        lambda t: t.update(item, [key.set("x")]),
    ):
        transaction = of_length(1)
        add(transaction)
        with pytest.raises(ValueError, match="another tenant"):
            acme().transact(transaction)
    assert bill.calls == []


def test_reading_cannot_name_another_tenant() -> None:
    with pytest.raises((TypeError, ValueError)):
        acme().get(TenantItem, keys.tenant, GLOBEX)
    with pytest.raises((TypeError, ValueError)):
        acme().get(DetailItem, ticket_keys.ticket, GLOBEX, sort=ticket_keys.DETAIL)
    with pytest.raises((TypeError, ValueError)):
        acme().query(RawItems(TICKETS), ticket_keys.ticket, GLOBEX, 1)


@pytest.mark.parametrize("tenant_id", ["", "acme", ACME.upper(), ACME + "\n", "*" * 32])
def test_there_is_no_repository_for_what_is_no_tenant(tenant_id: str) -> None:
    with pytest.raises(ValueError, match="32 lower-case hex"):
        Store("tenant", tenant_id)


# --- counters ---


def test_a_counter_counts_from_one_for_each_tenant(any_tables: AnyEngine) -> None:
    for repository in (acme(), Store("tenant", GLOBEX)):
        assert [
            repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET).last
            for _ in range(3)
        ] == [
            1,
            2,
            3,
        ]
    assert acme().increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=10).last == 13
    assert acme().increment(CounterItem, ticket_keys.counter, sort="OTHER").last == 1


def test_no_number_is_given_twice(any_tables: AnyEngine) -> None:
    together = threading.Barrier(8, timeout=120)

    def count(_: int) -> list[int]:
        together.wait()
        return [
            acme().increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET).last for _ in range(5)
        ]

    with ThreadPoolExecutor(8) as pool:
        given = [n for numbers in pool.map(count, range(8)) for n in numbers]
    assert sorted(given) == list(range(1, 41))


# --- what is a bug stays one ---


def test_a_request_that_dynamodb_does_not_take_stays_the_librarys_error(any_tables: AnyEngine) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        raw("GetItem", TableName=TICKETS.full_name, Key={"pk": {"S": "only half a key"}})


def test_a_missing_table_is_a_deployment_that_has_not_finished(any_tables: AnyEngine) -> None:
    any_tables.clear()
    for call in (
        lambda: text_of(1),
        query,
        lambda: acme().put_all([entry(1, "2026")]),
        lambda: acme().transact(of_length(1)),
        lambda: acme().increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET),
        lambda: PLATFORM.get_all([(TenantItem, ACME, None)]),
    ):
        with pytest.raises(Unavailable):
            call()
