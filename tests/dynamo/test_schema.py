"""The tables as they are declared, on every engine: created once, compared ever after, upgraded by order."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import pytest

from portal.dynamo import client, provisioning
from portal.errors import Conflict
from portal.isolation import policies
from portal.schema import registry
from portal.streams.stored import LEASES
from tenants.membership.stored import MEMBERS
from tenants.tenancy.stored import DIRECTORY
from tests.support.commands import run
from tickets.ticket.stored import STATUS_RESOLVER, STATUS_UPDATED, TICKETS

if TYPE_CHECKING:
    from tests.support.engines import AnyEngine

pytest_plugins = ["tests.support.engines"]


def test_tables_are_created_once(chosen: AnyEngine) -> None:
    chosen.clear()
    first, second = provisioning.create_all(), provisioning.create_all()
    assert first == {t.full_name: True for t in registry.tables()}
    assert second == {t.full_name: False for t in registry.tables()}


def test_two_processes_may_create_the_tables_at_the_same_time(chosen: AnyEngine) -> None:
    chosen.clear()
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda _: provisioning.create_all(wait=True), range(2)))
    for table in registry.tables():
        assert sum(o[table.full_name] for o in outcomes) == 1
    chosen.whole = True


def test_tables_are_what_was_declared(any_tables: AnyEngine) -> None:
    for table in registry.tables():
        found = provisioning.describe(table)
        assert found is not None
        assert found["TableStatus"] == "ACTIVE"
        assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert names(found["KeySchema"]) == [n for n in (table.hash, table.range) if n]
        used = {table.hash, table.range, *(n for i in table.indexes for n in (i.hash, i.range))} - {None}
        assert {(a["AttributeName"], a["AttributeType"]) for a in found["AttributeDefinitions"]} == {
            (name, "S") for name in used
        }


def names(key_schema: list[dict[str, str]]) -> list[str]:
    assert [k["KeyType"] for k in key_schema] == ["HASH", "RANGE"][: len(key_schema)]
    return [k["AttributeName"] for k in key_schema]


@pytest.mark.parametrize("shared", ["", "operators look at all"])
def test_keys_without_a_tenant_need_a_reason_and_keys_of_a_tenant_none(shared: str) -> None:
    def is_refused(*args: Any, made: Any = registry.Table, **more: Any) -> bool:
        try:
            made(*args, shared=shared, **more)
        except ValueError:
            return True
        return False

    without = not shared
    assert is_refused("New.Table", "platform", "kind") == without
    assert is_refused("New.Table", "platform", "tenant_id") != without
    assert is_refused("New.Table", "tenant", "pk") != without
    assert is_refused("gsi-new", "status", "at", (), "", made=registry.Index) == without
    assert is_refused("gsi-new", "tenant_status", "at", (), made=registry.Index) != without


def test_indexes_project_what_a_list_shows_and_nothing_else(any_tables: AnyEngine) -> None:
    for table in registry.tables():
        found = provisioning.describe(table)
        assert found is not None
        indexes = {i["IndexName"]: i for i in found.get("GlobalSecondaryIndexes") or ()}
        assert set(indexes) == {i.name for i in table.indexes}
        for index in table.indexes:
            assert names(indexes[index.name]["KeySchema"]) == [index.hash, index.range]
            projection = indexes[index.name]["Projection"]
            assert projection["ProjectionType"] == ("INCLUDE" if index.include else "KEYS_ONLY")
            assert sorted(projection.get("NonKeyAttributes") or []) == sorted(index.include)


def test_changes_of_tickets_are_streamed_with_both_images(any_tables: AnyEngine) -> None:
    for table in registry.tables():
        found = provisioning.describe(table)
        assert found is not None
        stream = found.get("StreamSpecification") or {}
        assert stream.get("StreamEnabled", False) is table.stream
        assert stream.get("StreamViewType") == ("NEW_AND_OLD_IMAGES" if table.stream else None)
    assert TICKETS.stream


def test_items_with_an_end_are_removed_by_the_engine(any_tables: AnyEngine) -> None:
    for table in registry.tables():
        answer = client.connection("platform").call("DescribeTimeToLive", TableName=table.full_name)
        found = answer["TimeToLiveDescription"]
        assert (found["TimeToLiveStatus"] in ("ENABLED", "ENABLING")) is bool(table.ttl)
        if table.ttl:
            assert found["AttributeName"] == table.ttl


def test_a_table_with_other_keys_than_declared_is_not_touched(any_tables: AnyEngine) -> None:
    any_tables.drop(MEMBERS)
    other = registry.Table(MEMBERS.name, "tenant", "tenant_id", "email")
    client.connection("platform").call("CreateTable", **other.definition())
    with pytest.raises(Conflict, match="other keys"):
        provisioning.create_all()
    found = provisioning.describe(other)
    assert found is not None
    assert names(found["KeySchema"]) == ["tenant_id", "email"]


# --- upgrades ---

# DynamoDB Local leaves some indexes CREATING that are added to a table.
where_indexes_are_added = pytest.mark.parametrize("chosen", ["ministack", "moto"], indirect=True, scope="module")


@pytest.fixture
def few_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tables that the commands read, and the one that changes: each command asks for all that are declared."""
    monkeypatch.setattr(registry, "tables", lambda: (DIRECTORY, LEASES, TICKETS))


@pytest.fixture
def few_tables(few_declared: None, any_tables: AnyEngine) -> AnyEngine:
    return any_tables


LESS = replace(STATUS_UPDATED, include=STATUS_UPDATED.include[:-1])
BEFORE = replace(TICKETS, indexes=(LESS, STATUS_RESOLVER))


def made_as(engine: AnyEngine, table: registry.Table, **definition: Any) -> None:
    """The table is there as another version declares it, the others are as they should be."""
    provisioning.create_all(compare=False)
    engine.drop(table)
    client.connection("platform").call("CreateTable", **{**table.definition(), **definition})


WRONG: dict[str, tuple[registry.Table, dict[str, Any], str]] = {
    "an index with fewer attributes": (BEFORE, {}, f"index {STATUS_UPDATED.name} is missing"),
    "no index": (replace(TICKETS, indexes=(STATUS_RESOLVER,)), {}, f"index {STATUS_UPDATED.name} is missing"),
    "the name with another projection": (
        TICKETS,
        {
            "GlobalSecondaryIndexes": [
                STATUS_UPDATED.definition() | {"Projection": {"ProjectionType": "KEYS_ONLY"}},
                *(index.definition() for index in TICKETS.indexes if index != STATUS_UPDATED),
            ]
        },
        f"index {STATUS_UPDATED.name} has other keys or attributes",
    ),
    "an index too many": (
        replace(TICKETS, indexes=(*TICKETS.indexes, LESS)),
        {},
        f"index {LESS.name} is not declared",
    ),
    "no stream": (replace(TICKETS, stream=False), {}, "stream is off, declared NEW_AND_OLD_IMAGES"),
    "no TTL": (TICKETS, {}, "TTL is off, declared expires_at"),
}


@where_indexes_are_added
@pytest.mark.parametrize("case", WRONG)
def test_a_difference_is_named_with_the_command_that_mends_it(few_tables: AnyEngine, case: str) -> None:
    table, definition, says = WRONG[case]
    made_as(few_tables, table, **definition)
    ended = run("check_health")
    assert ended.status == 1
    assert f"{TICKETS.full_name}: {says}" in ended.err
    assert "Mend it: python manage.py create_tables --" in ended.err
    if case != "no TTL":  # which create_tables turns on
        assert run("create_tables").status == 1
    ended = run("create_tables", "--upgrade", "--drop-old")
    assert (ended.status, ended.err) == (0, "")
    assert run("create_tables", "--upgrade", "--drop-old").out.count("\n") == 1  # nothing is left to do
    assert provisioning.differences(TICKETS) == []


@where_indexes_are_added
def test_an_index_is_upgraded_beside_the_old_one_while_both_versions_read_and_write(few_tables: AnyEngine) -> None:
    made_as(few_tables, BEFORE)
    platform, pk = client.connection("platform"), f"TENANT#{'a' * 32}|TICKET#"
    shard, written, faults, done = f"TENANT#{'a' * 32}|STATUS#OPEN#0", [0], list[str](), threading.Event()

    def write() -> None:
        number = written[0]
        row = {"pk": f"{pk}{number}", "sk": "DETAILS", "tenant_status": shard, "updated_at": f"{number:06}"}
        item = {name: {"S": value} for name, value in row.items()} | {
            name: {"S": "marked"} for name in STATUS_UPDATED.include if name not in row
        }
        platform.dispatch("PutItem", {"TableName": TICKETS.full_name, "Item": item})
        written[0] += 1

    def read(index: registry.Index) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            answer = platform.dispatch(
                "Query",
                {
                    "TableName": TICKETS.full_name,
                    "IndexName": index.name,
                    "KeyConditionExpression": "tenant_status = :shard",
                    "ExpressionAttributeValues": {":shard": {"S": shard}},
                    **start,
                },
            )
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return found
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def serve() -> None:
        while not done.is_set():
            write()
            before = written[0]
            if len(read(LESS)) != before:
                faults.append(f"the old index lacks something of {before}")
            done.wait(0.1)  # else it keeps the engine in memory from its work

    for _ in range(50):
        write()
    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(serve)
        ended = run("create_tables", "--upgrade")
        done.set()
        serving.result(timeout=60)
    assert (ended.status, faults) == (0, [])
    assert f"index {LESS.name} is not declared" in ended.out
    rows = read(STATUS_UPDATED)
    assert len(rows) == written[0] > 50
    assert all(row[STATUS_UPDATED.include[-1]] == {"S": "marked"} for row in rows)
    assert run("create_tables", "--drop-old").status == 0
    assert provisioning.differences(TICKETS) == []


@where_indexes_are_added
def test_old_indexes_stay_until_the_new_ones_are_there(few_tables: AnyEngine) -> None:
    made_as(few_tables, BEFORE)
    ended = run("create_tables", "--drop-old")
    assert ended.status == 1
    assert f"index {STATUS_UPDATED.name} is missing" in ended.err
    found = provisioning.describe(TICKETS)
    assert found
    assert LESS.name in {index["IndexName"] for index in found["GlobalSecondaryIndexes"]}


@where_indexes_are_added
def test_an_upgrade_that_was_interrupted_goes_on(few_tables: AnyEngine) -> None:
    both = (replace(STATUS_UPDATED, include=()), replace(STATUS_RESOLVER, include=()))
    made_as(few_tables, replace(TICKETS, indexes=both))

    def interrupt(line: str) -> None:
        if STATUS_RESOLVER.name in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        provisioning.upgrade(TICKETS, say=interrupt)
    assert run("create_tables", "--upgrade", "--drop-old").status == 0
    assert provisioning.differences(TICKETS) == []


def test_policies_cover_an_index_of_both_versions() -> None:
    assert LESS.name != STATUS_UPDATED.name
    policy = json.dumps(policies.document("tenant"))
    assert f"/index/{STATUS_UPDATED.any_version}" in policy
    for index in (LESS, STATUS_UPDATED):
        assert fnmatch(index.name, index.any_version)
