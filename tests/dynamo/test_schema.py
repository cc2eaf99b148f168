"""The tables as they are declared, on every engine: created once, compared ever after, never changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from portal.dynamo import client, provisioning
from portal.errors import Conflict
from portal.schema import registry, tables
from tenants.membership.tables import MEMBERS
from tickets.ticket.tables import TICKETS

if TYPE_CHECKING:
    from tests.support.engines import AnyEngine

pytest_plugins = ["tests.support.engines"]


def test_tables_are_created_once(any_tables: AnyEngine) -> None:
    any_tables.clear()
    first, second = provisioning.create_all(), provisioning.create_all()
    assert first == {t.full_name: True for t in registry.tables()}
    assert second == {t.full_name: False for t in registry.tables()}


def test_two_processes_may_create_the_tables_at_the_same_time(any_tables: AnyEngine) -> None:
    any_tables.clear()
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda _: provisioning.create_all(wait=True), range(2)))
    for table in registry.tables():
        assert sum(o[table.full_name] for o in outcomes) == 1


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
    def is_refused(*args: Any, made: Any = tables.Table, **more: Any) -> bool:
        try:
            made(*args, shared=shared, **more)
        except ValueError:
            return True
        return False

    without = not shared
    assert is_refused("New.Table", "platform", "kind") == without
    assert is_refused("New.Table", "platform", "tenant_id") != without
    assert is_refused("New.Table", "tenant", "pk") != without
    assert is_refused("gsi-new", "status", "at", (), "", made=tables.Index) == without
    assert is_refused("gsi-new", "tenant_status", "at", (), made=tables.Index) != without


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
    other = tables.Table(MEMBERS.name, "tenant", "tenant_id", "email")
    client.connection("platform").call("CreateTable", **other.definition())
    with pytest.raises(Conflict, match="other keys"):
        provisioning.create_all()
    found = provisioning.describe(other)
    assert found is not None
    assert names(found["KeySchema"]) == ["tenant_id", "email"]
