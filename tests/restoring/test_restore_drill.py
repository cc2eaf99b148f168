"""`manage.py restore_drill` on the embedded engine, whose restore is a copy of now."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal import clock
from portal.dynamo import client, point_in_time
from portal.dynamo.point_in_time import PointInTime
from portal.isolation.guard import IsolationError
from portal.isolation.policies import Policy, Request, table_arn
from portal.schema import registry
from tenants.audit_trail import drills, recording
from tenants.audit_trail.drills import DrillResult
from tenants.audit_trail.stored import AUDIT, CHAINS
from tests.support import embedded, placed
from tests.support.commands import finish, in_pool, run, start
from tests.support.folding import Follower
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.following import ticket_stream
from tickets.management.commands import restore_drill, verify_restored
from tickets.ticket.stored import TICKETS

DRILL = "-Drill."
PLATFORMS = {"S": recording.PLATFORM}


def wire(operation: str, **params: Any) -> Any:
    return client.connection("platform").call(operation, **params)


def living() -> dict[str, list[Any]]:
    """All that is stored in the tables that people work with, by table, but for the platform's audit trail; and those
    tables themselves."""
    found: dict[str, list[Any]] = {}
    for table in registry.tables():
        items = [one for one in in_pool(table) if table not in (AUDIT, CHAINS) or one["tenant_id"] != PLATFORMS]
        found[table.name] = sorted(json.dumps(item, sort_keys=True, default=repr) for item in items)
    found["tables"] = [name for name in wire("ListTables")["TableNames"] if DRILL not in name]
    return found


@pytest.fixture
def desks(world: World) -> World:
    """Tickets of two desks, counted and indexed."""
    follower = Follower(TICKETS, ticket_stream.handle)
    world.tickets("acme", 3)
    world.tickets("globex", 2)
    follower.fold()
    return world


def drill(*options: str) -> tuple[int, dict[str, Any], str]:
    ended = run("restore_drill", "--json", *options)
    return ended.status, json.loads(ended.out or "{}"), ended.err


def recorded() -> tuple[DrillResult, int, int, int, int]:
    """What the platform's audit trail says of the last drill; all that a drill has written."""
    rows = [one for one in in_pool(AUDIT) if one["tenant_id"] == PLATFORMS]
    assert [row["action"]["S"] for row in rows] == ["restore.drilled"]
    found = drills.latest(before=clock.now())
    assert found is not None
    drill = found[1]
    return drill.result, drill.tables, drill.trails, drill.tenants, drill.tickets


def test_a_drill_after_one_that_was_killed_verifies_what_it_restores_and_changes_nothing_that_lives(
    desks: World,
) -> None:
    """Among what it restores are the tables that a desk has to itself; it names the desk whose tables are elsewhere."""
    bridged = placed.desk(desks, placed.BRIDGE, slug="initech")
    placed.desk(desks, placed.SILO, slug="umbrella", owner="bob")
    desks.tickets("initech", 2, who="alice")
    with placed.inside(bridged):
        Follower(TICKETS, ticket_stream.handle).fold()
    before, tables = living(), len(registry.tables()) + len(registry.placed_tables())
    process = start("restore_drill")
    wait_until(lambda: DRILL in str(embedded.wire().call("ListTables")))
    process.kill()
    finish(process)
    assert PointInTime().left() != []
    status, told, said = drill()
    assert status == 0, said
    assert living() == before
    assert PointInTime().left() == []
    verified = told["verified"]
    assert (verified["tenants"], verified["tickets"], verified["trails"], told["tables"]) == (3, 7, 5, tables)
    assert (verified["behind"], verified["reindexed"], verified["wrong"], verified["unknown"]) == ([], [], [], [])
    assert verified["left_out"] == ["umbrella"]
    assert verified["read_units"] > 5
    for beginning in ("RPO: ", "RTO: ", "Audit trails: 5 ", "Aggregates: 3 tenants, 7 tickets", "Search: ", "Cost: $"):
        assert sum(line.startswith(beginning) for line in said.splitlines()) == 1, (beginning, said)
    assert f"Deleted {tables} tables of the drill." in said
    assert recorded() == (DrillResult.RIGHT, tables, 5, 3, 7)


def test_a_row_that_is_missing_in_a_trail_is_named_and_the_tables_go_all_the_same(desks: World) -> None:
    row = next(one for one in in_pool(AUDIT) if one["tenant_id"]["S"] == desks.tenants["acme"].tenant_id)
    embedded.wire().call("DeleteItem", TableName=AUDIT.full_name, Key={name: row[name] for name in AUDIT.key_names})
    status, told, said = drill()
    assert status == 1
    assert "Audit trail: acme: " in said
    assert [line.split(":")[1].strip() for line in told["verified"]["wrong"]] == ["acme"]
    assert recorded()[0] is DrillResult.WRONG
    assert PointInTime().left() == []


# --- kept, stopped ---


def test_what_nobody_had_counted_is_counted_in_the_drill_alone_and_kept_tables_can_be_exported_from_until_clean(
    desks: World, tmp_path: Path
) -> None:
    desks.tickets("acme", 2)  # no worker has seen them
    before = living()
    status, told, said = drill("--keep")
    assert status == 0, said
    assert living() == before
    assert (told["verified"]["behind"], told["verified"]["reindexed"]) == (["acme"], ["acme"])
    assert told["verified"]["write_units"] > 0
    there = start("export_tenant", "acme", tmp_path / "acme.zip", DYNAMODB_TABLE_PREFIX=point_in_time.drill_prefix())
    assert finish(there).status == 0
    ended = run("restore_drill", "--clean")
    assert (ended.status, ended.out) == (0, f"Deleted {len(registry.tables())} tables of the drill.\n")
    assert PointInTime().left() == []


def test_a_drill_that_is_stopped_deletes_its_tables(desks: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = living()
    restore = PointInTime.restore

    def stopped(*arguments: Any, **more: Any) -> None:
        restore(*arguments, **more)
        assert len(PointInTime().left()) == len(registry.tables())
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(PointInTime, "restore", stopped)
    ended = run("restore_drill")
    assert ended.status == 130
    assert "Run restore_drill --clean" in ended.err
    assert PointInTime().left() == []
    assert living() == before


# --- what it may not do ---


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("DeleteTable", {}),
        ("UpdateTable", {"DeletionProtectionEnabled": False}),
        ("UpdateContinuousBackups", {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False}}),
        ("PutItem", {"Item": {"pk": {"S": "x"}, "sk": {"S": "y"}}}),
        ("Scan", {}),
        ("Query", {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "x"}}}),
        ("CreateTable", {"AttributeDefinitions": [], "KeySchema": []}),
    ],
)
def test_the_drill_sends_nothing_to_a_living_table_but_the_wish_to_restore_it(
    world: World, operation: str, params: dict[str, Any]
) -> None:
    with pytest.raises(IsolationError):
        PointInTime().client._make_api_call(operation, {"TableName": TICKETS.full_name, **params})


def test_a_restore_goes_into_tables_of_the_drill_alone(world: World) -> None:
    for target in ("Elsewhere.Support.Tickets", f"{TICKETS.full_name}2", "Pooldesk-Drill"):
        with pytest.raises(IsolationError):
            PointInTime().client.restore_table_to_point_in_time(
                SourceTableName=TICKETS.full_name, TargetTableName=target, UseLatestRestorableTime=True
            )


def test_the_policy_lets_the_drill_write_to_its_own_tables_and_the_platforms_trail_alone() -> None:
    policy = Policy(json.loads(run("restore_drill", "--policy").out))
    actions = {action for statement in point_in_time.document()["Statement"] for action in statement["Action"]}
    prefix = point_in_time.drill_prefix()
    for table in registry.tables():
        names = [table.full_name]
        if table.placed:
            names.append(registry.physical(table.full_name.removesuffix(f".{table.name}"), "a" * 32, table))
        for name in names:
            allowed = {action for action in actions if policy.allows(Request(action, table_arn(name)))}
            reads = {"DescribeContinuousBackups", "DescribeTable", "ListTables", "RestoreTableToPointInTime"}
            assert allowed == {f"dynamodb:{one}" for one in reads}
        assert policy.allows(Request("dynamodb:PutItem", table_arn(f"{prefix}.{table.name}")))
    assert not policy.allows(Request("dynamodb:RestoreTableToPointInTime", table_arn("Elsewhere.Support.Tickets")))
    for keys, allowed in (((recording.PLATFORM,), True), (("a" * 32,), False), ((), False)):
        assert policy.allows(Request("dynamodb:PutItem", table_arn(AUDIT.full_name), keys)) is allowed


def test_the_verification_refuses_the_living_tables_and_a_process_of_a_drill_names_no_other_table(
    desks: World,
) -> None:
    before = living()
    ended = run("verify_restored")
    assert (ended.status, living()) == (1, before)
    assert "These are the living tables." in ended.err
    other = client.make_client("platform")
    point_in_time.keep_to_drill(other)
    other.describe_table(TableName=TICKETS.full_name)
    with pytest.raises(IsolationError):
        other.describe_table(TableName="Elsewhere.Support.Tickets")


@pytest.mark.parametrize(
    ("state", "why", "status", "sentence"),
    [
        ("unknown", "nobody follows", 3, "The aggregates of acme: cannot be verified, because nobody follows."),
        ("drift", "", 1, "The aggregates of acme: wrong, also after a rebuild."),
    ],
)
def test_aggregates_that_a_rebuild_does_not_make_right_are_named_by_the_status(
    desks: World, monkeypatch: pytest.MonkeyPatch, state: str, why: str, status: int, sentence: str
) -> None:
    judged = verify_restored.Command._judged

    def badly(command: Any, name: str, slugs: list[str], *options: str) -> list[dict[str, Any]]:
        if name != "verify_aggregates":
            return judged(command, name, slugs)
        good = {"tickets": 2, "repaired": False, "uncountable": [], "state": "ok", "why": ""}
        return [{**good, "tenant": slug, **({"state": state, "why": why} if slug == "acme" else {})} for slug in slugs]

    monkeypatch.setattr(verify_restored.Command, "_judged", badly)
    monkeypatch.setattr(client, "each_client", lambda attach: None)  # they are those of the other tests
    monkeypatch.setattr(point_in_time, "SUFFIX", "")
    ended = run("verify_restored")
    assert (ended.status, ended.err.splitlines()[-1]) == (status, sentence)


def test_the_process_that_verifies_reaches_neither_silos_nor_the_bucket_nor_roles_of_the_living() -> None:
    environ = restore_drill._environ()
    assert environ["DYNAMODB_TABLE_PREFIX"] == point_in_time.drill_prefix()
    assert (environ["SILOS"], environ["TENANT_ROLE_ARN"]) == ("{}", "")
    assert environ["MAIL_BUCKET"] != settings.MAIL_BUCKET


def test_a_price_is_told_without_a_restore(desks: World) -> None:
    ended = run("restore_drill", "--price")
    assert (ended.status, PointInTime().left()) == (0, [])
    assert ended.out.startswith("Cost: $")


@pytest.mark.parametrize("moment", ["2026-01-02T03:04:05", "yesterday", "2999-01-01T00:00:00"])
def test_a_moment_that_cannot_be_restored_is_refused_before_anything_is_made(desks: World, moment: str) -> None:
    ended = run("restore_drill", "--at", moment)
    assert (ended.status, PointInTime().left()) == (1, [])


def test_a_table_that_is_missing_is_named(world: World) -> None:
    wire("DeleteTable", TableName=TICKETS.full_name)
    ended = run("restore_drill")
    assert ended.status == 1
    assert f"{TICKETS.full_name} is missing" in ended.err
