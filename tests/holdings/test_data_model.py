"""The documents of the data model say what is declared and stored. `WRITE_DOCS=1` writes them anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache

from portal.dynamo import meter
from portal.schema import registry
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import IDENTITY, _watching
from tests.support import data_model, embedded, used_desk
from tests.support.commands import everything
from tests.support.data_model import Rows
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating
from tickets.desk.changing import TicketState
from tickets.ticket.fields import Status

PAGE = Path(settings.BASE_DIR) / "docs" / "data-model.md"
MODEL = PAGE.with_suffix(".json")


# Entities of which a used desk has no item, bases of others, and those with an attribute for each count.
WITHOUT_EXAMPLE = {
    "AggregateItem", "ArticleItem", "AuthenticatorItem", "CertificateItem", "CountsItem", "DamageItem", "DepthsItem",
    "ExcessItem", "FaultItem", "FenceItem", "FinishedShardItem", "FrozenItem", "JobItem", "PartItem", "PasskeyItem",
    "PlatformProofItem", "PurgeItem", "Recent", "RecoveryItem", "ReplayedItem", "RoundItem", "SearchItem",
    "SuppressedItem", "VerifiedItem", "WatermarkItem",
}  # fmt: skip


def page(address: str) -> Callable[[World], Callable[[], object]]:
    def prepare(world: World) -> Callable[[], object]:
        browser = world.browser("alice", "acme")

        def load() -> None:
            assert browser.get(address).status_code == 200, address

        return load

    return prepare


def rule(do: Callable[[TenantContext], object]) -> Callable[[World], Callable[[], object]]:
    return lambda world: partial(do, world.context("alice", "acme"))


# Each as a person or a rule does it, in a world with some tickets.
PATTERNS: dict[str, Callable[[World], Callable[[], object]]] = {
    "which tenants am I in": page("/tenants/"),
    "open tickets, the newest first": page("/tickets/?status=open"),
    "open tickets of one resolver": page("/tickets/?status=open&resolver=me"),
    "one ticket with its comments": page("/tickets/1/"),
    "one summary": rule(lambda tenant: changing.read(tenant, 1)),
    "the dashboard": page("/tickets/dashboard/"),
    "members": page("/desk/members/"),
    "the audit trail, the newest first": page("/desk/audit/"),
    "API keys": page("/desk/settings/api-keys/"),
    "webhooks": page("/desk/settings/webhooks/"),
    "a search": page("/search/?q=ticket"),
    "create a ticket": rule(lambda tenant: creating.create(tenant, title="New")),
    "comment": rule(lambda tenant: commenting.comment(tenant, 1, body="Hello.")),
    "change a ticket's status": rule(lambda tenant: changing.change_status(tenant, 2, to=Status.PENDING, version=1)),
    "change the status of three tickets, all or none": lambda world: close_three(world.context("alice", "acme")),
}


def close_three(tenant: TenantContext) -> Callable[[], object]:
    states = [TicketState.of(changing.read(tenant, number)) for number in (3, 4, 5)]
    return lambda: bulk.change_status(tenant, states, to=Status.CLOSED)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    used_desk.keep_to_its_minutes(monkeypatch)
    used_desk.prepared(tmp_path)
    return {table.name: everything(table) for table in registry.tables()}


def patterns(world: World) -> Iterator[tuple[str, str, str]]:
    """Each pattern: its name, what it asked for beside who is calling, and what that cost."""
    world.tickets("acme", 5)
    for name, prepare in PATTERNS.items():
        do = prepare(world)
        cache.clear()
        with pytest.MonkeyPatch.context() as patching, _watching() as pages, meter.measure() as bill:
            recorded = data_model.recorded(patching)
            do()
        of_page = pages[1] if pages[1:] else None  # the first is that of this function
        paid = of_page or bill
        asked = [one for one in recorded if "Platform.Sessions" not in one]
        units = {"RCU": paid.read_units - (IDENTITY if of_page else 0), "WCU": paid.write_units}
        trips = paid.trips - bool(of_page)
        cost = [f"{trips} round trip{'s' * (trips > 1)}", *(f"{units[name]:g} {name}" for name in units if units[name])]
        yield name, "<br>".join(sorted(asked)), ", ".join(cost)


@pytest.fixture
def page_now(rows: Rows) -> str:
    embedded.make_empty()
    return data_model.document(rows, patterns(World.create()))


def without_examples(page: str) -> list[str]:
    return [line for line in page.splitlines() if not line.startswith(data_model.EXAMPLE)]


def without_data(model: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(model)
    for table in found["DataModel"]:
        del table["TableData"]
    return found


def test_the_documents_say_what_is_declared_stored_and_asked_for(rows: Rows, page_now: str) -> None:
    if os.environ.get("WRITE_DOCS") == "1":
        PAGE.write_text(page_now)
        MODEL.write_text(data_model.workbench(rows))
    assert without_examples(PAGE.read_text()) == without_examples(page_now)
    assert without_data(MODEL.read_text()) == without_data(data_model.workbench(rows))


def test_each_example_is_an_item_of_its_table_as_its_keys_are_formed_now(rows: Rows) -> None:
    for table in json.loads(MODEL.read_text())["DataModel"]:
        models = [model for model in data_model.models() if model.table.name == table["TableName"]]
        shapes = {shape for model in models for shape in data_model.key_shapes(model, rows[table["TableName"]])}
        for item in table["TableData"]:
            assert any(data_model.rows_of(model, [item]) for model in models), item
            assert {data_model.key_shape(model, item) for model in models} <= shapes, item


def named(key: dict[str, Any]) -> list[tuple[str, str]]:
    assert key.keys() <= {"PartitionKey", "SortKey"}
    return [(one["AttributeName"], one["AttributeType"]) for one in key.values()]


def test_the_model_has_the_form_of_what_nosql_workbench_exports() -> None:
    # By models that it exported: aws-samples/aws-dynamodb-examples, schema_design/SchemaExamples.
    model = json.loads(MODEL.read_text())
    assert model.keys() == {"ModelName", "ModelMetadata", "DataModel"}
    metadata = {"Author", "DateCreated", "DateLastModified", "Description", "AWSService", "Version"}
    assert model["ModelMetadata"].keys() == metadata
    assert (model["ModelMetadata"]["AWSService"], model["ModelMetadata"]["Version"]) == ("Amazon DynamoDB", "3.0")
    assert [table["TableName"] for table in model["DataModel"]] == [table.name for table in registry.tables()]
    for table in model["DataModel"]:
        types = dict(named(table["KeyAttributes"])) | {
            one["AttributeName"]: one["AttributeType"] for one in table["NonKeyAttributes"]
        }
        keys = {name for name, _ in named(table["KeyAttributes"])}
        assert not keys & {one["AttributeName"] for one in table["NonKeyAttributes"]}
        for facet in table["TableFacets"]:
            assert set(facet["KeyAttributeAlias"].values()) == keys, facet
            assert set(facet["NonKeyAttributes"]) <= types.keys(), facet
        for index in table["GlobalSecondaryIndexes"]:
            assert all(types[name] == kind for name, kind in named(index["KeyAttributes"])), index
            assert set(index["Projection"].get("NonKeyAttributes", [])) <= types.keys(), index
        for item in table["TableData"]:
            assert keys <= item.keys(), item
            assert all({*value} <= {types[name], "NULL"} for name, value in item.items()), item


def test_each_entity_has_an_example_or_is_of_those_that_a_used_desk_does_not_have(rows: Rows) -> None:
    names = {model.__name__ for model in data_model.models()}
    assert names - data_model.examples_of(rows).keys() == WITHOUT_EXAMPLE
