"""A request goes to where the content of its tenant lies, and code above it never knows."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as live
from django.core import checks

from portal.dynamo import client, placement, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Unavailable
from portal.isolation import guard
from tenants.tenancy.items import TenantItem
from tickets.ticket import keys
from tickets.ticket.items import CounterItem
from tickets.ticket.tables import TICKETS

ACME, GLOBEX = "a" * 32, "b" * 32
BRIDGE, SILO = Placement("bridge"), Placement("silo", "there")


@pytest.fixture(params=[BRIDGE, SILO], ids=str)
def placed(engine: None, request: pytest.FixtureRequest) -> Placement:
    where: Placement = request.param
    provisioning.create_placed(ACME, where)
    return where


def numbers(tenant_id: str, where: Placement) -> int:
    return int(TenantRepository(tenant_id, where).increment(CounterItem, keys.counter, sort=keys.COUNTER_TICKET).last)


@pytest.mark.parametrize("text", ["pool", "bridge", "silo/frankfurt-2"])
def test_a_placement_reads_as_it_is_written(text: str) -> None:
    assert str(Placement.parse(text)) == text


def test_a_tenant_without_a_placement_is_in_the_pool() -> None:
    assert Placement.parse(None) == Placement.parse("") == POOL


@pytest.mark.parametrize("text", ["Pool", "silo", "silo/", "silo/a/b", "silo/UP", "bridge/x", "silo/x\n", "silo/.."])
def test_what_is_no_placement_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a placement is"):
        Placement.parse(text)


def test_what_a_placed_tenant_writes_is_in_its_own_tables_alone(placed: Placement) -> None:
    assert (numbers(ACME, placed), numbers(ACME, placed)) == (1, 2)
    assert numbers(ACME, POOL) == 1


def test_answers_speak_of_the_declared_tables(placed: Placement) -> None:
    repository = TenantRepository(ACME, placed)
    numbers(ACME, placed)
    transaction = Transaction()
    transaction.update(CounterItem(keys.counter(ACME), keys.COUNTER_TICKET), [CounterItem.last.add(1)])
    repository.transact(transaction)
    (found,) = repository.get_many(CounterItem, [(keys.counter, (), keys.COUNTER_TICKET)])
    (raw,) = repository.query(TICKETS, keys.counter).items
    assert found is not None
    assert found.last == int(raw["last"]["N"]) == 2


def test_settings_of_a_placed_tenant_are_at_home(placed: Placement) -> None:
    tenant = TenantItem(ACME, name="Acme", slug="acme", created_at="2026")
    transaction = Transaction()
    transaction.put(tenant)
    with guard.acting_for(ACME), placement.at(placed):
        client.connection("platform").dispatch("TransactWriteItems", {"TransactItems": transaction.members})
    request = {"TableName": TenantItem.table.full_name, "Key": {"tenant_id": {"S": ACME}}}
    assert client.connection("platform").dispatch("GetItem", request)["Item"]["slug"] == {"S": "acme"}


def test_no_transaction_spans_a_silo_and_home(engine: None) -> None:
    transaction = Transaction()
    transaction.put(TenantItem(ACME, name="Acme", slug="acme", created_at="2026"))
    transaction.update(CounterItem(keys.counter(ACME), keys.COUNTER_TICKET), [CounterItem.last.add(1)])
    with guard.acting_for(ACME), placement.at(SILO), pytest.raises(ValueError, match="not there"):
        client.connection("platform").dispatch("TransactWriteItems", {"TransactItems": transaction.members})


def test_a_site_that_the_settings_do_not_have_is_out_of_reach() -> None:
    with pytest.raises(Unavailable, match="no site with the name nowhere"):
        numbers(ACME, Placement("silo", "nowhere"))


@pytest.mark.parametrize("role", ["tenant", "platform", "worker", "seed", "delivery", "lifecycle"])
def test_no_role_reaches_a_table_that_is_anothers_own(role: Any, engine: None) -> None:
    provisioning.create_placed(ACME, BRIDGE)
    own = {"pk": {"S": keys.counter(GLOBEX)}, "sk": {"S": keys.COUNTER_TICKET}}
    name = f"{live.DYNAMODB_TABLE_PREFIX}.{ACME}.{TICKETS.name}"
    with guard.acting_for(GLOBEX), pytest.raises(guard.IsolationError) as refused:
        client.connection(role).client.get_item(TableName=name, Key=own)
    assert refused.value.why == "a table that is another tenant's own"


def test_tables_that_are_deleted_are_gone_and_deleting_them_again_does_nothing(placed: Placement) -> None:
    numbers(ACME, placed)
    for _ in range(2):
        provisioning.delete_placed(ACME, placed)
    with pytest.raises(Unavailable):
        numbers(ACME, placed)


def test_the_pool_is_nobodys_own() -> None:
    for change in (provisioning.create_placed, provisioning.delete_placed):
        with pytest.raises(ValueError, match="nobody's own"):
            change(ACME, POOL)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SILOS", {"Far Away": {}}, "names a site 'Far Away'"),
        ("SILOS", {"far": {"zone": "a"}}, "The site far of SILOS has 'zone'"),
        ("SILOS", {"far": {"prefix": "P" * 250}}, "The prefix of the site far leaves no room"),
        (
            "SILOS",
            {"far": {"prefix": "F"}, "near": {"prefix": "F"}},
            "The site near of SILOS has the same tables as far",
        ),
        ("PLAN_PLACEMENTS", {"large": "moon"}, "places large on 'moon'"),
        ("PLAN_PLACEMENTS", {"large": "silo/far"}, "places large on silo/far, and SILOS has no such site"),
    ],
)
def test_settings_that_place_nobody_are_told_before_somebody_is_placed(
    name: str, value: Any, sentence: str, settings: Any
) -> None:
    setattr(settings, name, value)
    assert [fault for fault in checks.run_checks() if sentence in fault.msg and fault.id == "pooldesk.E020"]


def test_a_site_whose_tables_are_those_at_home_is_told_because_a_move_there_would_delete_them(settings: Any) -> None:
    settings.SILOS = {"far": {"endpoint_url": settings.DYNAMODB_ENDPOINT_URL}}
    (fault,) = placement.faults_of_settings()
    assert "The site far of SILOS has the same tables as home" in fault


def test_settings_that_are_right_are_no_fault(settings: Any) -> None:
    assert [*placement.faults_of_settings()] == []
    role = {"tenant_role_arn": "arn:aws:iam::999999999999:role/Tenants"}
    settings.SILOS = {"account": role, "region": {"region": "eu-west-3"}, "prefix": {"prefix": "Own"}}
    assert [*placement.faults_of_settings()] == []
