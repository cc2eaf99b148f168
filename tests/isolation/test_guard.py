"""The guard on a real client whose requests are caught before they leave: what passes, and what does not."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from portal.isolation.guard import IsolationError
from tenants.sign_in.stored import USERS, user_key
from tests.support.guarded import (
    FOREIGN,
    FOREIGN_STATUS,
    MEMBERS,
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


# Each kind of hostile request is tried in test_prove_isolation.py; these are the ones with an event worth a look.
REFUSED: dict[str, tuple[str, Params]] = {
    **{f"foreign {o} {i}": (o, dict(json.loads(json.dumps(p).replace(A, B)))) for i, (o, p) in enumerate(ALLOWED)},
    "one foreign member of a transaction": ("TransactWriteItems", transaction({"Put": put()}, {"Put": STOLEN})),
    "two members in one": ("TransactWriteItems", transaction({"Put": put(), "Update": update("SET a = :a", a="x")})),
    "a batch of writes": ("BatchWriteItem", batch(MINE)),
    "a number for a key": ("GetItem", {"TableName": TICKETS, "Key": {"pk": {"N": "1"}, "sk": {"S": "x"}}}),
    "no table": ("GetItem", {"Key": key()}),
    "a table that is no text": ("GetItem", get() | {"TableName": [TICKETS]}),
    "a table of the platform": ("GetItem", {"TableName": USERS.full_name, "Key": {"pk": {"S": user_key(A)}}}),
    "another start in an index": ("Query", in_index(ExclusiveStartKey={"tenant_status": {"S": FOREIGN_STATUS}})),
    "a start in another ticket of one's own": ("Query", query(ExclusiveStartKey=key(ticket_keys.ticket(A, 8)))),
    "a parameter of tomorrow": ("GetItem", get(Tomorrow=1)),
    "a key of another tenant's index": ("PutItem", put(tenant_status={"S": FOREIGN_STATUS})),
    "an index key that is removed": ("UpdateItem", update("REMOVE #i", {"#i": "tenant_status"})),
    "a scan with a key": ("Scan", get()),
    "PartiQL": ("ExecuteStatement", {"Statement": "SELECT * FROM Tickets"}),
    "the description of a table": ("DescribeTable", {"TableName": TICKETS}),
}


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
    assert not any(secret in said for secret in (B, "TENANT#", "USER#"))


def test_a_text_that_looks_like_a_key_is_only_a_text(world: World) -> None:
    alice = world.context("alice", "acme")
    title = ticket_keys.ticket(world.tenants["globex"].tenant_id, 1)
    number = creating.create(alice, title="Broken")
    changing.edit(alice, number, version=1, title=title, description=title, priority=Priority.LOW, tags=[])
    assert changing.read(alice, number).title == title
