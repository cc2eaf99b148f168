"""The audit trail: written with the change, in a chain that tells what was done to it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import RawItems, Store, Transaction
from portal.errors import TransactionRefused
from portal.isolation.guard import IsolationError
from portal.schema import keys
from tenants.audit_trail import chain, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.audit_trail.stored import AUDIT, CHAINS, AuditByActor, AuditItem, audit_actor_key, audit_row_key
from tenants.sign_in.stored import UniqueItem
from tenants.tenancy.stored import slug_key
from tests.support import stored
from tests.support.commands import everything, run

TENANT = "a" * 32
ALICE = Actor("1" * 32, "alice@example.com", "192.0.2.7")


def entry(number: int = 1, tenant_id: str = TENANT, **more: Any) -> AuditEntry:
    after = {"name": f"Name {number}"}
    return AuditEntry(tenant_id, AuditAction.TENANT_RENAMED, ALICE, "tenant", tenant_id, after=after, **more)


def unique(value: str) -> Transaction:
    """A change that can take place once."""
    transaction = Transaction()
    slug = UniqueItem(slug_key(value), owner=TENANT)
    transaction.put(slug, name="slug", condition=UniqueItem.pk.does_not_exist())
    return transaction


def trail(tenant_id: str = TENANT) -> list[dict[str, Any]]:
    return [row for row in everything(AUDIT) if row["tenant_id"]["S"] == tenant_id]


@pytest.fixture
def one_partition(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows in one chain, so that a test knows who follows whom."""
    monkeypatch.setattr(chain, "PARTITIONS", 1)


# --- written with the change ---


def test_a_change_and_its_row_are_written_together(engine: None) -> None:
    recording.commit(unique("acme"), [entry()])
    (row,) = trail()
    assert (row["action"]["S"], row["actor_email"]["S"], row["origin"]["S"]) == (
        "tenant.renamed", "alice@example.com", "192.0.2.7",
    )  # fmt: skip
    assert row["after"]["S"] == '{"name": "Name 1"}'
    assert PLATFORM.get_all([(UniqueItem, slug_key("acme"), None)])[0] is not None


def test_a_refused_change_leaves_no_row_and_tells_the_callers_own_reason(engine: None) -> None:
    recording.commit(unique("acme"), [entry()])
    with pytest.raises(TransactionRefused) as refused:
        recording.commit(unique("acme"), [entry(2)])
    reason = refused.value.reason("slug")
    assert reason is not None
    assert reason.code == "ConditionalCheckFailed"
    assert len(trail()) == 1
    assert chain.verify(TENANT).findings == []


def test_one_change_may_be_told_to_two_trails(engine: None) -> None:
    other = "b" * 32
    recording.record(entry(1), entry(2), entry(3, other))
    assert (len(trail()), len(trail(other))) == (2, 1)
    assert chain.verify(TENANT).findings == chain.verify(other).findings == []


def test_forty_writers_at_once_lose_no_row_and_no_change(engine: None) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: recording.commit(unique(f"t{n}"), [entry(n)]), range(40)))
    assert len(trail()) == 40
    verified = chain.verify(TENANT)
    assert (verified.rows, verified.findings) == (40, [])


def test_of_two_writers_with_the_same_change_one_is_refused_with_its_own_reason(one_partition: None) -> None:
    def attempt(number: int) -> str:
        try:
            recording.commit(unique("acme"), [entry(number)])
        except TransactionRefused as error:
            reason = error.reason("slug")
            return reason.code if reason else "not the slug"
        return "done"

    with ThreadPoolExecutor(6) as pool:
        outcomes = sorted(pool.map(attempt, range(6)))
    assert outcomes == ["ConditionalCheckFailed"] * 5 + ["done"]
    assert len(trail()) == 1


@pytest.mark.parametrize("name", ["password", "new_password1", "Token", "api_secret", "password_hash", "session_key"])
def test_a_secret_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ValueError, match="does not belong"):
        AuditEntry(TENANT, AuditAction.USER_PASSWORD_SET, ALICE, "user", "1" * 32, after={name: "x"})


def test_a_long_value_is_cut(engine: None) -> None:
    recording.record(
        AuditEntry(TENANT, AuditAction.TENANT_RENAMED, ALICE, "tenant", TENANT, after={"name": "x" * 5000})
    )
    assert len(trail()[0]["after"]["S"]) < 600


# --- the chain tells ---


def _raw(operation: str, **params: Any) -> None:
    """Write behind the portal's back, as somebody with rights on the tables can."""
    stored.send(operation, TableName=AUDIT.full_name, **params)


def _key(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("tenant_id", "timestamp_event_id")}


def _alter(rows: list[dict[str, Any]]) -> None:
    _raw("PutItem", Item=rows[2] | {"actor_email": {"S": "bob@example.com"}})


def _hide_from_the_actors_list(rows: list[dict[str, Any]]) -> None:
    _raw("PutItem", Item=rows[2] | {"tenant_actor": {"S": "elsewhere"}})


def _alter_and_hash_again(rows: list[dict[str, Any]]) -> None:
    forged = rows[2] | {"actor_email": {"S": "bob@example.com"}}
    _raw("PutItem", Item=forged | {"hash": {"S": chain.hash_of(forged)}})


def _remove(rows: list[dict[str, Any]]) -> None:
    _raw("DeleteItem", Key=_key(rows[2]))


def _remove_the_last(rows: list[dict[str, Any]]) -> None:
    _raw("DeleteItem", Key=_key(rows[-1]))


def _remove_all(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        _raw("DeleteItem", Key=_key(row))


def _insert(rows: list[dict[str, Any]]) -> None:
    forged = rows[2] | {"timestamp_event_id": {"S": audit_row_key("2026-01-01T00:00:00.000000Z", "f" * 32)}}
    _raw("PutItem", Item=forged | {"hash": {"S": chain.hash_of(forged)}})


def _append(rows: list[dict[str, Any]]) -> None:
    forged = rows[-1] | {
        "timestamp_event_id": {"S": audit_row_key("2030-01-01T00:00:00.000000Z", "f" * 32)},
        "sequence": {"N": str(len(rows) + 1)},
        "previous": rows[-1]["hash"],
    }
    _raw("PutItem", Item=forged | {"hash": {"S": chain.hash_of(forged)}})


TAMPERINGS: dict[str, tuple[Callable[[list[dict[str, Any]]], None], set[tuple[str, int]]]] = {
    "altered": (_alter, {("altered", 3)}),
    "moved to another list": (_hide_from_the_actors_list, {("altered", 3)}),
    "altered with a new hash": (_alter_and_hash_again, {("altered", 3)}),
    "removed": (_remove, {("missing", 3)}),
    "removed at the end": (_remove_the_last, {("missing", 6)}),
    "all removed": (_remove_all, {("missing", n) for n in range(1, 7)}),
    "slipped in": (_insert, {("inserted", 3)}),
    "added behind the end": (_append, {("inserted", 7)}),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_done_to_the_trail_is_found_and_named(one_partition: None, name: str) -> None:
    for number in range(6):
        recording.record(entry(number))
    tamper, expected = TAMPERINGS[name]
    tamper(sorted(trail(), key=lambda row: int(row["sequence"]["N"])))
    assert {(f.kind, f.sequence) for f in chain.verify(TENANT).findings} == expected


def test_no_attribute_of_a_row_can_be_altered_unnoticed(one_partition: None) -> None:
    for number in range(3):
        recording.record(entry(number))
    row = sorted(trail(), key=lambda row: int(row["sequence"]["N"]))[1]
    for name in row.keys() - {*_key(row), "hash"}:
        ((kind, value),) = row[name].items()
        _raw("PutItem", Item=row | {name: {kind: f"{value}1"}})
        altered = [f.where for f in chain.verify(TENANT).findings if f.kind == "altered"]
        assert row["timestamp_event_id"]["S"] in altered, name
    _raw("PutItem", Item=row)
    assert chain.verify(TENANT).findings == []


def test_a_trail_whose_end_is_gone_is_found(one_partition: None) -> None:
    recording.record(entry())
    key = {"tenant_id": {"S": TENANT}, "partition": {"S": "0"}}
    stored.send("DeleteItem", TableName=CHAINS.full_name, Key=key)
    assert [f.kind for f in chain.verify(TENANT).findings] == ["unknown end"]


def test_the_fingerprint_changes_with_each_row_and_with_nothing_else(engine: None) -> None:
    recording.record(entry())
    first = chain.verify(TENANT).fingerprint
    assert chain.verify(TENANT).fingerprint == first
    recording.record(entry(2))
    assert chain.verify(TENANT).fingerprint != first


def test_a_trail_can_be_verified_while_it_grows(engine: None) -> None:
    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(recording.record, entry(n)) for n in range(30)]
        found = [chain.verify(TENANT).findings for _ in range(6)]
        for writer in writers:
            writer.result()
    assert found == [[]] * 6


# --- who reads and writes it ---


def test_a_tenants_role_reads_its_own_trail_and_writes_none(engine: None) -> None:
    recording.record(entry(), entry(2, "b" * 32))
    repository = Store("tenant", TENANT)
    assert len(repository.query(RawItems(AUDIT), keys.tenant).items) == 1
    by_actor = repository.query(AuditByActor, audit_actor_key, ALICE.id)
    assert len(by_actor.items) == 1
    with pytest.raises(IsolationError):
        repository.put_all([AuditItem.from_raw_data(trail()[0])])


# --- the command ---


def test_the_command_says_that_all_trails_are_whole(world: object) -> None:
    ended = run("verify_audit", "--all")
    assert ended.status == 0
    assert "acme: " in ended.out
    assert "the platform: " in ended.out


def test_the_command_names_what_it_finds_and_fails(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PARTITIONS", 1)
    tenant_id = world.tenants["globex"].tenant_id
    recording.record(entry(1, tenant_id), entry(2, tenant_id))
    _alter([{}, {}, sorted(trail(tenant_id), key=lambda row: int(row["sequence"]["N"]))[-1]])
    ended = run("verify_audit", "--tenant", "globex")
    assert ended.status == 1
    assert "altered" in ended.err
    assert run("verify_audit", "--tenant", "acme").status == 0
