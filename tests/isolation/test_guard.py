"""The guard on a real client whose requests are caught before they leave: what passes, and what does not."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from portal.isolation import policies
from portal.isolation.guard import IsolationError
from tenants.sign_in.stored import USERS, user_key
from tenants.tenancy.stored import TENANTS
from tests.support.guarded import (
    FOREIGN,
    FOREIGN_STATUS,
    MEMBERS,
    OWN,
    OWN_STATUS,
    TICKETS,
    A,
    B,
    Caught,
    Params,
    batch,
    get,
    key,
    put,
    query,
    transaction,
    update,
)
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Priority
from tickets.ticket.stored import STATUS_RESOLVER, STATUS_UPDATED


@pytest.fixture(scope="module")
def guarded() -> Caught:
    return Caught()


@pytest.fixture
def caught(guarded: Caught) -> Caught:
    guarded.sent.clear()
    return guarded


MINE: Params = {"PutRequest": {"Item": key()}}
STOLEN: Params = put(pk={"S": FOREIGN})


def in_index(**more: Any) -> Params:
    return query(OWN_STATUS, name="tenant_status", IndexName=STATUS_UPDATED.name, **more)


ALLOWED: list[tuple[str, Params]] = [
    ("GetItem", get()),
    ("GetItem", {"TableName": MEMBERS, "Key": {"tenant_id": {"S": A}, "user_id": {"S": B}}}),
    ("Query", query()),
    ("Query", in_index()),
    ("Query", in_index(ExclusiveStartKey=key() | {"tenant_status": {"S": OWN_STATUS}})),
    ("Query", in_index() | {"IndexName": STATUS_RESOLVER.name}),
    ("Query", query(FilterExpression="title <> :h", ExclusiveStartKey=key())),
    ("Query", query(A, name="tenant_id") | {"TableName": MEMBERS}),
    ("PutItem", put(tenant_status={"S": OWN_STATUS}, title={"S": FOREIGN})),
    ("UpdateItem", update("SET #s = :s, title = :t", {"#s": "tenant_status"}, s=OWN_STATUS, t=FOREIGN)),
    ("UpdateItem", update("ADD #n :by", {"#n": "last"}, by="1")),
    ("TransactWriteItems", transaction({"Put": put()}, {"Update": update("SET title = :t", t="x")})),
    ("TransactWriteItems", transaction({"Put": put()}, {"ConditionCheck": get()})),
    ("TransactGetItems", {"TransactItems": [{"Get": get()}]}),
]


@pytest.mark.parametrize(("operation", "params"), ALLOWED, ids=[f"{o}-{i}" for i, (o, _) in enumerate(ALLOWED)])
def test_what_a_tenants_own_code_asks_for_is_sent(caught: Caught, operation: str, params: Params) -> None:
    caught.ask(operation, params)
    assert len(caught.sent) == 1


def foreign_forms(operation: str, params: Params) -> Params:
    """The same request for the other tenant."""
    return dict(json.loads(json.dumps(params).replace(A, B)))


REFUSED: dict[str, tuple[str, Params]] = {
    **{f"foreign {o} {i}": (o, foreign_forms(o, p)) for i, (o, p) in enumerate(ALLOWED)},
    "one foreign member of a transaction": ("TransactWriteItems", transaction({"Put": put()}, {"Put": STOLEN})),
    "a batch of writes": ("BatchWriteItem", batch(MINE)),
    "an empty batch": ("BatchWriteItem", batch()),
    "no batch": ("BatchWriteItem", {"RequestItems": {}}),
    "an empty transaction": ("TransactWriteItems", transaction()),
    "a deletion in a transaction": ("TransactWriteItems", transaction({"Delete": get()})),
    "a read among writes": ("TransactWriteItems", transaction({"Get": get()})),
    "a write among reads": ("TransactGetItems", {"TransactItems": [{"Put": put()}]}),
    "two members in one": ("TransactWriteItems", transaction({"Put": put(), "Update": update("SET a = :a", a="x")})),
    "deletion": ("DeleteItem", get()),
    "a batch of reads, one foreign": ("BatchGetItem", {"RequestItems": {TICKETS: {"Keys": [key(), key(FOREIGN)]}}}),
    "a batch of reads of members": ("BatchGetItem", {"RequestItems": {MEMBERS: {"Keys": [{"tenant_id": {"S": A}}]}}}),
    "a longer id": ("GetItem", get(ticket_keys.ticket(A, 7).replace(A, A + "0"))),
    "a shorter id": ("GetItem", get(ticket_keys.ticket(A, 7).replace(A, A[:-1]))),
    "an id in capitals": ("GetItem", get(ticket_keys.ticket(A, 7).replace(A, A.upper()))),
    "no delimiter": ("GetItem", get(f"TENANT#{A}")),
    "a wildcard": ("GetItem", get("TENANT#*|TICKET#7")),
    "a variable": ("GetItem", get("TENANT#${aws:PrincipalTag/TenantId}|TICKET#7")),
    "the bare id in the wrong table": ("GetItem", get(A)),
    "a number for a key": ("GetItem", {"TableName": TICKETS, "Key": {"pk": {"N": "1"}, "sk": {"S": "x"}}}),
    "two types for a key": ("GetItem", {"TableName": TICKETS, "Key": {"pk": {"S": OWN, "N": "1"}}}),
    "no key": ("GetItem", {"TableName": TICKETS, "Key": {}}),
    "no key at all": ("GetItem", {"TableName": TICKETS}),
    "no table": ("GetItem", {"Key": key()}),
    "an ARN for a name": ("GetItem", get() | {"TableName": policies.table_arn(TICKETS)}),
    "an unknown table": ("GetItem", get() | {"TableName": "Other.Support.Tickets"}),
    "a table that is no text": ("GetItem", get() | {"TableName": [TICKETS]}),
    "a table of the platform": ("GetItem", {"TableName": USERS.full_name, "Key": {"pk": {"S": user_key(A)}}}),
    "the tenant's settings": ("GetItem", {"TableName": TENANTS.full_name, "Key": {"tenant_id": {"S": A}}}),
    "a write among the members": ("PutItem", {"TableName": MEMBERS, "Item": {"tenant_id": {"S": A}}}),
    "an unknown index": ("Query", query(OWN_STATUS, name="tenant_status", IndexName="gsi-other")),
    "the table's key of an index": ("Query", query(IndexName=STATUS_UPDATED.name)),
    "an index's key of the table": ("Query", query(OWN_STATUS, name="tenant_status")),
    "another start": ("Query", query(ExclusiveStartKey=key(FOREIGN))),
    "another start in an index": ("Query", in_index(ExclusiveStartKey={"tenant_status": {"S": FOREIGN_STATUS}})),
    "a start in another ticket of one's own": ("Query", query(ExclusiveStartKey=key(ticket_keys.ticket(A, 8)))),
    "a foreign item to start at in an index": (
        "Query",
        in_index(ExclusiveStartKey={"tenant_status": {"S": OWN_STATUS}, "pk": {"S": FOREIGN}, "sk": {"S": "SUMMARY"}}),
    ),
    "a start that is no text": ("Query", query(ExclusiveStartKey={"pk": {"N": "1"}})),
    "a legacy condition": ("Query", {"TableName": TICKETS, "KeyConditions": {"pk": {}}}),
    "a legacy condition beside one": ("Query", query(KeyConditions={})),
    "a legacy filter": ("Query", query(QueryFilter={})),
    "a name that stands for another": ("Query", query() | {"ExpressionAttributeNames": {"#h": "pk", "pk": "sk"}}),
    "no names": ("Query", query() | {"ExpressionAttributeNames": {}}),
    "no values": ("Query", query() | {"ExpressionAttributeValues": None}),
    "no condition": ("Query", query() | {"KeyConditionExpression": None}),
    "a parameter of tomorrow": ("GetItem", get(Tomorrow=1)),
    "a batch that is a number": ("BatchWriteItem", {"RequestItems": 5}),
    "a batch that is none": ("BatchGetItem", {"RequestItems": None}),
    "a scan": ("Scan", {"TableName": TICKETS}),
    "a scan with a key": ("Scan", get()),
    "PartiQL": ("ExecuteStatement", {"Statement": "SELECT * FROM Tickets"}),
    "the description of a table": ("DescribeTable", {"TableName": TICKETS}),
    "the end of a table": ("DeleteTable", {"TableName": TICKETS}),
    "a list of tables": ("ListTables", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_everything_else_is_refused_with_one_event_and_never_sent(
    caught: Caught, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    operation, params = REFUSED[name]
    with pytest.raises(IsolationError):
        caught.ask(operation, params)
    assert caught.sent == []
    (event,) = caplog.records
    said = event.getMessage()
    assert (event.levelno, event.name) == (logging.CRITICAL, "pooldesk.security")
    assert operation in said
    assert A in said
    for table in (TICKETS, MEMBERS):
        if f'"{table}"' in json.dumps(params):
            assert table in said
    # The event names who, what and where. What was asked for is data, or an address of a person.
    assert B not in said
    assert "TENANT#" not in said
    assert "USER#" not in said


@pytest.mark.parametrize("operation", sorted(Caught().client.meta.service_model.operation_names))
def test_of_all_operations_only_the_granted_ones_pass(caught: Caught, operation: str) -> None:
    granted = {"GetItem", "PutItem", "UpdateItem", "Query", "TransactWriteItems", "TransactGetItems"}
    for params in ({}, get(), put(), query(), transaction({"Put": put()}), batch({"PutRequest": {"Item": key()}})):
        try:
            caught.ask(operation, params)
        except IsolationError:
            continue
        except Exception:  # the client's own, behind the guard  # noqa: S110
            pass
        assert operation in granted


# --- keys of indexes ---

PLANTED: Params = {"tenant_status": {"S": FOREIGN_STATUS}}


def planting(expression: str) -> Params:
    """An update of an own item; `:f` is the other tenant's key of an index, `#i` the attribute."""
    names = {"#i": "tenant_status"} if "#i" in expression else None
    return update(expression, names, f=FOREIGN_STATUS, o=OWN_STATUS)


PLANTING: dict[str, tuple[str, Params]] = {
    "put": ("PutItem", put(tenant_status={"S": FOREIGN_STATUS})),
    "put of what is nobody's": ("PutItem", put(tenant_status={"S": "OPEN#0"})),
    "put of what is no text": ("PutItem", put(tenant_status={"N": "5"})),
    "put of what is no value": ("PutItem", put(tenant_status=5)),
    "put in a batch": ("BatchWriteItem", batch({"PutRequest": {"Item": key() | PLANTED}})),
    "put in a transaction": ("TransactWriteItems", transaction({"Put": put(**PLANTED)})),
    "update in a transaction": ("TransactWriteItems", transaction({"Update": planting("SET tenant_status = :f")})),
    "legacy update": ("UpdateItem", get(AttributeUpdates={"tenant_status": {"Value": {"S": FOREIGN_STATUS}}})),
    **{
        text: ("UpdateItem", planting(text))
        for text in (
            "SET tenant_status = :f", "set tenant_status=:f", "SET #i = :f", "SET a = :o, #i = :f", "SET #i = title",
            "SET tenant_status = title", "SET #i = if_not_exists(#i, :f)", "SET #i = if_not_exists(a, :f)", "REMOVE #i",
            "SET #i = :o, tenant_status = :f", "SET #i = tags[0]", "SET #i = a.b", "ADD #i :f", "SET pk = :f",
            "DELETE tenant_status :f", "SET tenant_status\n=\t:f", "SET tenant_status = :o + :f",
            "SET tenant_status = (:f)", "REMOVE a SET #i = :f", "SET tenant_status\u00a0= :o",
            "SET tenant_statusx = :o, tenant_status = :f",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTING)
def test_no_row_is_planted_in_another_tenants_index(caught: Caught, name: str) -> None:
    with pytest.raises(IsolationError):
        caught.ask(*PLANTING[name])
    assert caught.sent == []


def test_a_text_that_looks_like_a_key_is_only_a_text(world: World) -> None:
    alice = world.context("alice", "acme")
    title = ticket_keys.ticket(world.tenants["globex"].tenant_id, 1)
    number = creating.create(alice, title="Broken")
    changing.edit(alice, number, version=1, title=title, description=title, priority=Priority.LOW, tags=[])
    assert changing.read(alice, number).title == title
