"""A request goes to where the content of its tenant lies, and code above it never knows."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as live
from django.core import checks

from portal.dynamo import client, placement, provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import RawItems, Store, Transaction
from portal.errors import Conflict, Unavailable
from portal.isolation import guard
from portal.schema import registry
from tenants.tenancy.stored import TenantItem
from tests.support.engine_memory import wire
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, CounterItem

ACME, GLOBEX = "a" * 32, "b" * 32
BRIDGE, SILO = Placement("bridge"), Placement("silo", "there")


@pytest.fixture(params=[BRIDGE, SILO], ids=str)
def placed(engine: None, request: pytest.FixtureRequest) -> Placement:
    where: Placement = request.param
    provisioning.create_placed(ACME, where)
    return where


def numbers(tenant_id: str, where: Placement) -> int:
    return int(
        Store("tenant", tenant_id, where).increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET).last
    )


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
    repository = Store("tenant", ACME, placed)
    numbers(ACME, placed)
    transaction = Transaction()
    transaction.update(CounterItem(stored.counter(ACME), stored.COUNTER_TICKET), [CounterItem.last.add(1)])
    repository.transact(transaction)
    (found,) = repository.get_many(CounterItem, [(stored.counter, (), stored.COUNTER_TICKET)])
    (raw,) = repository.query(RawItems(TICKETS), stored.counter).items
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
    transaction.update(CounterItem(stored.counter(ACME), stored.COUNTER_TICKET), [CounterItem.last.add(1)])
    with guard.acting_for(ACME), placement.at(SILO), pytest.raises(ValueError, match="not there"):
        client.connection("platform").dispatch("TransactWriteItems", {"TransactItems": transaction.members})


def test_a_site_that_the_settings_do_not_have_is_out_of_reach() -> None:
    with pytest.raises(Unavailable, match="no site with the name nowhere"):
        numbers(ACME, Placement("silo", "nowhere"))


@pytest.mark.parametrize("role", ["tenant", "platform", "worker", "seed", "delivery", "lifecycle"])
def test_no_role_reaches_a_table_that_is_anothers_own(role: Any, engine: None) -> None:
    provisioning.create_placed(ACME, BRIDGE)
    own = {"pk": {"S": stored.counter(GLOBEX)}, "sk": {"S": stored.COUNTER_TICKET}}
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


# --- how own tables are kept ---


def kept(placement_: Placement) -> dict[str, Any]:
    """How the tickets' table of Acme's own is kept there."""
    with guard.acting_for(ACME), placement.at(placement_):
        described = provisioning.describe(TICKETS) or {}
        backups = client.connection("lifecycle").ask("DescribeContinuousBackups", {"TableName": TICKETS.full_name})
        time_to_live = client.connection("lifecycle").ask("DescribeTimeToLive", {"TableName": TICKETS.full_name})
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    return {
        "protected": described["DeletionProtectionEnabled"],
        "restorable": recovery["PointInTimeRecoveryStatus"] == "ENABLED",
        "stream": described["StreamSpecification"]["StreamEnabled"],
        "expires by": time_to_live["TimeToLiveDescription"]["AttributeName"],
    }


@pytest.fixture
def kept_well(engine: None) -> None:
    """The tables of all as infra/template.yaml deploys them for production."""
    for table in registry.placed_tables():
        wire().call("UpdateTable", TableName=table.full_name, DeletionProtectionEnabled=True)
        recovery = {"PointInTimeRecoveryEnabled": True}
        wire().call("UpdateContinuousBackups", TableName=table.full_name, PointInTimeRecoverySpecification=recovery)


def test_own_tables_are_kept_as_those_of_all_are(placed: Placement) -> None:
    expected = {"protected": False, "restorable": False, "stream": True, "expires by": "expires_at"}
    assert kept(placed) == expected


@pytest.mark.parametrize("where", [BRIDGE, SILO], ids=str)
def test_in_production_own_tables_are_protected_and_restorable_and_go_when_they_are_let_go(
    kept_well: None, where: Placement
) -> None:
    provisioning.create_placed(ACME, where)
    provisioning.create_placed(ACME, where)
    assert kept(where) == {"protected": True, "restorable": True, "stream": True, "expires by": "expires_at"}
    provisioning.delete_placed(ACME, where)
    with guard.acting_for(ACME), placement.at(where):
        assert provisioning.describe(TICKETS) is None


@pytest.mark.parametrize(
    ("where", "key"), [(BRIDGE, "arn:of:all"), (SILO, ""), (Placement("silo", "keyed"), "arn:of:them")], ids=str
)
def test_own_tables_are_encrypted_with_a_key_of_their_account(
    engine: None, where: Placement, key: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SILOS = {**settings.SILOS, "keyed": {**settings.SILOS["there"], "table_key_arn": "arn:of:them"}}
    describe, made = provisioning.describe, []

    def encrypted(table: Any) -> Any:
        found = describe(table)
        if found and placement.current() == POOL:
            found["SSEDescription"] = {"SSEType": "KMS", "KMSMasterKeyArn": "arn:of:all"}
        return found

    def create(_: Any, definition: dict[str, Any]) -> bool:
        made.append(definition["SSESpecification"])
        return True

    monkeypatch.setattr(provisioning, "describe", encrypted)
    monkeypatch.setattr(provisioning, "_create", create)
    monkeypatch.setattr(provisioning, "_wait", lambda table: None)
    monkeypatch.setattr(provisioning, "_enable_ttl", lambda *_: None)
    provisioning.create_placed(ACME, where)
    assert {one.get("KMSMasterKeyId", "") for one in made} == {key}


def test_an_account_that_may_have_no_more_tables_gets_none(engine: None, settings: Any) -> None:
    settings.DYNAMODB_TABLE_QUOTA = len(wire().call("ListTables")["TableNames"]) + len(registry.placed_tables()) - 1
    with pytest.raises(Conflict, match=f"no room for {len(registry.placed_tables())} more tables"):
        provisioning.create_placed(ACME, BRIDGE)
    with guard.acting_for(ACME), placement.at(BRIDGE):
        assert [provisioning.describe(table) for table in registry.placed_tables()] == [None] * len(
            registry.placed_tables()
        )
    settings.DYNAMODB_TABLE_QUOTA += 1
    provisioning.create_placed(ACME, BRIDGE)
    provisioning.create_placed(ACME, BRIDGE)  # what is there needs no room


def test_a_site_has_a_quota_of_its_own(engine: None, settings: Any) -> None:
    settings.SILOS = {"there": {**settings.SILOS["there"], "table_quota": "10000"}}
    quotas = {site: use.quota for site, use in provisioning.counted_tables() if use}
    assert quotas == {"": 2_500, "there": 10_000}


def test_tables_are_counted_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"T{n:03}" for n in range(250)]

    def list_tables(after: dict[str, str]) -> dict[str, Any]:
        start = names.index(after["ExclusiveStartTableName"]) + 1 if after else 0
        more = {"LastEvaluatedTableName": names[start + 99]} if start + 100 < len(names) else {}
        return {"TableNames": names[start : start + 100], **more}

    monkeypatch.setattr(provisioning, "_list_tables", list_tables)
    assert provisioning.count_tables() == provisioning.TableUse(250, 2_500)


@pytest.mark.parametrize(
    ("where", "key", "said"),
    [
        (POOL, "", "a key that AWS owns"),
        (POOL, "arn:of:all", "the key of the pool, arn:of:all"),
        (BRIDGE, "arn:of:all", "the key of the pool, arn:of:all"),
        (BRIDGE, "arn:of:acme", "a key of its own, arn:of:acme"),
        (SILO, "arn:of:them", "the key of its site, arn:of:them"),
    ],
)
def test_the_key_of_a_tenants_tables_is_told(
    where: Placement, key: str, said: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SILOS = {"there": {**settings.SILOS["there"], "table_key_arn": "arn:of:them"}}

    def described(_: Any) -> dict[str, Any]:
        of_all = key if where == POOL else "arn:of:all"
        found = of_all if placement.current() == POOL else key
        return {"SSEDescription": {"SSEType": "KMS", "KMSMasterKeyArn": found}} if found else {}

    monkeypatch.setattr(provisioning, "describe", described)
    assert provisioning.key_of(ACME, where) == said
