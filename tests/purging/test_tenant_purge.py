"""A purge leaves nothing of its tenant and changes nothing of others, wherever it is killed, and says what it did."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from delivery.outbox import publisher
from delivery.queues.message_handling import MessageHandler
from delivery.queues.queue_transport import Message
from portal.dynamo import placement, provisioning
from portal.dynamo.placement import Placement
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Conflict, Invalid
from portal.isolation import guard, policies
from portal.load.stored import NoiseItem, notes_of
from portal.management import command
from portal.nosql.session_store import SessionStore
from portal.nosql.stored import SESSIONS
from portal.schema import holdings, registry
from portal.streams.poller import Poller
from portal.streams.poller_fleet import PollerFleet
from tenants.audit_trail import chain
from tenants.audit_trail.recording import SYSTEM
from tenants.impersonation import impersonating
from tenants.lifecycle import certificates, closing_mails, desk_closing
from tenants.tenancy import placements, tenant_directory
from tests.support import archives, deliveries, embedded, folding, placed, used_desk
from tests.support.commands import everything, in_pool, run
from tests.support.endpoints import endpoint, rows
from tests.support.folding import Follower
from tests.support.kills import Killed, killed_at
from tests.support.operators import text_of
from tests.support.stored import put_all
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.data import importer
from tickets.desk import commenting, creating
from tickets.following import ticket_stream
from tickets.jobs import leased_job
from tickets.jobs.leased_job import TakenOver
from tickets.moving import move_requests, place_changes
from tickets.moving.tenant_mover import TenantMover
from tickets.purging import erasing, purge_requests, tenant_purge
from tickets.purging.tenant_purge import TenantPurge
from tickets.sharding import reshard_requests
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, CounterItem

UMBRELLA = used_desk.SLUG


@pytest.fixture(autouse=True)
def key(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CERTIFICATE_KEY = "11" * 32
    monkeypatch.setattr(tenant_purge, "_LOOK_SECONDS", 0)
    used_desk.keep_to_its_minutes(monkeypatch)


@pytest.fixture
def used(tmp_path: Path) -> World:
    def make() -> World:
        world = World.create()
        used_desk.use(world, tmp_path)
        return world

    return embedded.prepared("used-desk", make)


def close(tenant_id: str, days: int = 0) -> None:
    desk_closing.close(tenant_id, by=SYSTEM, write=closing_mails.to_owners, days=days)


def begin(tenant_id: str) -> Any:
    close(tenant_id)
    return purge_requests.begin(tenant_directory.get(tenant_id), by=SYSTEM, reason="They left.")


def purge(item: Any, follower: Follower, **how: Any) -> dict[str, Any]:
    """The whole of a purge, or the rest of it; the stream is applied where it is waited for."""
    quick = {"settle": 0, "unfollow": 0, "sleep": lambda seconds: None, "caught_up": lambda repository: follower.fold()}
    job = TenantPurge(item, by=SYSTEM, **(quick | how))
    job.run()
    content = job.certificate
    return certificates.verify(content, certificates.known_keys())


def follow() -> Follower:
    """Both that follow the tickets' stream, up to now."""
    follower = Follower(handler=ticket_stream.handle)
    follower.fold()
    return follower


def traces(*texts: str) -> list[tuple[str, str]]:
    """What a scan of each table finds."""
    return [
        (table.name, json.dumps({name: raw[name] for name in (table.hash, table.range) if name}, default=repr))
        for table in registry.tables()
        for raw in everything(table)
        if any(text in json.dumps(raw, default=repr) for text in texts)
    ]


def left(*texts: str) -> list[str]:
    """What a scan finds beside the certificate."""
    return [which for _, which in traces(*texts) if "CERTIFICATE" not in which]


def digest(tenant_id: str) -> str:
    """A hash of all that is a tenant's alone, keys and contents."""
    known = [
        (one.name, json.dumps(stored.item, sort_keys=True, default=repr))
        for one in holdings.holdings()
        if not one.without
        for stored in one.find(TenantReader(tenant_id))
    ]
    return hashlib.sha256(repr(sorted(known)).encode()).hexdigest()


def end_reshardings() -> None:
    for item in reshard_requests.all_last():
        item.state = "done"
        put_all([item])


def test_a_used_desk_is_gone_from_every_table_and_the_other_is_as_it_was(used: World) -> None:
    acme, globex = (used.tenants[slug].tenant_id for slug in ("acme", "globex"))
    end_reshardings()
    follower, before = follow(), digest(globex)
    assert len({name for name, _ in traces(acme, UMBRELLA)}) > 15
    said = purge(begin(acme), follower)
    follower.fold()
    assert [(table, "CERTIFICATE" in which) for table, which in traces(acme, UMBRELLA, "Umbrella")] == [
        ("Platform.Directory", True), ("Tenants.Costs", False),
    ]  # fmt: skip
    assert digest(globex) == before
    assert said["tenant"] == {"id": acme, "slug": UMBRELLA, "name": "Umbrella"}
    of = {one["name"]: one for one in said["holdings"]}
    assert of["tickets"]["counted"] == of["tickets"]["deleted"] > 5
    assert of["audit trail"]["deleted"] > 5
    assert [one for one in of.values() if one["deleted"] < one["counted"]] == []
    assert sum(one["counted"] > 0 for one in of.values()) > 25
    assert {one["found_after"] for one in of.values()} == {0}
    assert sum(end["rows"] for end in said["audit_chain"]) == of["audit trail"]["counted"]
    assert said["reason"] == "They left."


@dataclass
class Purged:
    """A world whose Acme is no more: what its certificate says, and what there was of it before."""

    world: World
    said: dict[str, Any]
    waits: list[float]
    fingerprint: str
    message: Message


def make_purged() -> Purged:
    world = World.create()
    endpoint(world.context("alice", "acme"), types=("ticket.created",))
    world.tickets("acme", 1)
    row = rows()[-1]
    message = deliveries.message(row, publisher.member_parts(sorted(row.open or ())[0])[1])
    follower, item, waits = follow(), begin(world.tenants["acme"].tenant_id), list[float]()
    fingerprint = chain.verify(item.tenant_id).fingerprint
    said = purge(item, follower, rate=50, settle=0, sleep=waits.append)
    return Purged(world, said, waits, fingerprint, message)


@pytest.fixture
def purged(engine: None) -> Purged:
    made = embedded.prepared("purged-desk", make_purged)
    folding.remember_nothing()
    return made


def test_the_certificate_names_the_fingerprint_accounts_stay_and_others_are_spared_by_a_rate(purged: Purged) -> None:
    assert purged.said["audit_fingerprint"] == purged.fingerprint
    assert purged.world.browser("alice").get("/tenants/").status_code == 200
    assert purged.world.browser("alice", "globex").get("/tickets/").status_code == 200
    assert "was purged before" in run("purge_tenant", "acme").out
    deleted = sum(one["deleted"] for one in purged.said["holdings"])
    assert sum(purged.waits) == pytest.approx(deleted / 50)


def test_who_had_the_desk_open_stays_signed_in_and_is_asked_for_another_one(small: World) -> None:
    alice = small.browser("alice", "acme")
    alice.get("/tickets/")
    acme = small.tenants["acme"].tenant_id
    purge(begin(acme), follow())
    assert alice.get("/account/").status_code == 200
    assert not any(acme in SessionStore().decode(raw["data"]["S"]).values() for raw in everything(SESSIONS))
    assert alice.get("/acme/tickets/").headers["Location"].startswith("/tenants/")


def test_a_message_of_a_purged_desk_is_dropped(purged: Purged) -> None:
    message = purged.message
    assert MessageHandler().handle(deliveries.received(message)).did == "closed"
    assert left(message.tenant_id) == []


@pytest.fixture
def small(world: World) -> World:
    world.tickets("acme", 3)
    world.tickets("globex", 2)
    return world


def test_a_purge_that_is_killed_goes_on_where_it_was(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, globex = (small.tenants[slug].tenant_id for slug in ("acme", "globex"))
    follower, before = follow(), digest(globex)
    item, kills = begin(acme), 0
    while item is not None:
        try:
            with killed_at(monkeypatch, 5 if kills else 1, writes_only=True):
                purge(item, follower)
        except Killed:
            kills += 1
        item = purge_requests.by_slug("acme")
    said = certificates.verify(
        certificates.numbered_certificate("00000001").content.encode(), certificates.known_keys()
    )
    assert kills > 6
    assert left(acme, "acme") == []
    assert digest(globex) == before
    of = {one["name"]: (one["counted"], one["deleted"]) for one in said["holdings"]}
    assert of["tickets"][0] == of["tickets"][1]
    assert of["members"] == (3, 3)


def test_who_dies_right_after_the_certificate_has_left_it_and_nothing_else(
    small: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue, follower = certificates.issue, follow()

    def dying(*args: Any, **more: Any) -> None:
        issue(*args, **more)
        raise Killed

    item = begin(small.tenants["acme"].tenant_id)
    monkeypatch.setattr(certificates, "issue", dying)
    with pytest.raises(Killed):
        purge(item, follower)
    assert purge_requests.by_slug("acme") is None
    content = certificates.numbered_certificate("00000001").content.encode()
    assert certificates.verify(content, certificates.known_keys())["tenant"]["slug"] == "acme"


def test_a_desk_is_not_purged_before_its_grace_is_over_but_for_a_reason(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    with pytest.raises(Conflict, match="Close it first"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    with pytest.raises(Conflict, match="Close it first"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM, now=True, reason="A mistyped name.")
    close(acme, days=3)
    with pytest.raises(Conflict, match="Before that: purge_tenant acme --now --reason TEXT"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    with pytest.raises(Conflict, match="grace of Acme ends on"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    with pytest.raises(Invalid, match="Say why"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM, now=True)
    purge_requests.begin(tenant_directory.get(acme), by=SYSTEM, now=True, reason="A court asks for it.")
    assert tenant_directory.get(acme).status == "purging"
    with pytest.raises(Conflict, match="has begun already"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    with pytest.raises(Conflict, match="there is no closing to undo"):
        desk_closing.reopen(acme, by=SYSTEM, write=closing_mails.to_owners)
    refused = world.browser("alice", "acme").get("/tickets/")
    assert (refused.status_code, "Acme is being deleted" in text_of(refused)) == (403, True)
    with pytest.raises(Conflict, match="Nobody gets in any more"):
        impersonating._member(acme, world.users["alice"].id, may_write=False)


def test_who_thinks_better_of_it_and_closes_again_while_a_purge_begins_has_the_new_grace(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    close(acme)
    seen = tenant_directory.get(acme)
    desk_closing.reopen(acme, by=SYSTEM, write=closing_mails.to_owners)
    close(acme, days=30)
    with pytest.raises(Conflict, match="just changed"):
        purge_requests.begin(seen, by=SYSTEM)
    assert tenant_directory.get(acme).status == "closing"


def test_while_it_is_spread_anew_or_nothing_could_sign_no_purge_begins(world: World, settings: Any) -> None:
    acme = world.tenants["acme"].tenant_id
    reshard_requests.begin(tenant_directory.get(acme), shards=2, by=SYSTEM)
    close(acme)
    with pytest.raises(Conflict, match="being spread anew"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    end_reshardings()
    settings.CERTIFICATE_KEY = ""
    with pytest.raises(Conflict, match="CERTIFICATE_KEY"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    assert tenant_directory.get(acme).status == "closing"


def test_a_move_has_to_end_first_and_one_that_is_called_off_with_all_that_it_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = world.tenants["acme"].tenant_id
    follower = follow()
    world.tickets("acme", 1)
    move_requests.begin(tenant_directory.get(acme), to=Placement("bridge"), by=SYSTEM)
    with pytest.raises(Conflict, match="is being moved"):
        begin(acme)

    def mover() -> TenantMover:
        asked = place_changes.MOVES.last(acme)
        assert asked is not None
        return TenantMover(asked, settle_seconds=0, caught_up=lambda repository: None, say=think_again)

    def think_again(phase: str) -> None:
        if phase == "catching":
            move_requests.roll_back(tenant_directory.get(acme), by=SYSTEM)

    call_off = place_changes.call_off

    def die_behind(*of: Any) -> None:
        call_off(*of)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(place_changes, "call_off", die_behind)
        with pytest.raises(Killed):
            mover().run()
    assert tenant_directory.get(acme).move is None
    with pytest.raises(Conflict, match="has left is being deleted"):
        purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    assert mover().run()
    purge(purge_requests.begin(tenant_directory.get(acme), by=SYSTEM), follower)
    assert len(everything(TICKETS)) == len(in_pool(TICKETS))
    assert not [raw for raw in in_pool(TICKETS) if acme in raw["pk"]["S"]]


def test_who_was_let_in_before_and_writes_on_is_refused_when_what_they_know_of_the_desk_is_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.context("alice", "acme")
    begin(alice.tenant_id)
    assert creating.create(alice, title="Within the time that a purge waits") == 1
    monkeypatch.setattr(placements, "CONTEXT_SECONDS", -1)
    late: list[Callable[[], object]] = [
        lambda: creating.create(alice, title="Late"),
        lambda: commenting.comment(alice, 1, body="Late."),
        lambda: alice.repository.increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET),
        lambda: alice.repository.put_all([]),
        lambda: alice.repository.update(CounterItem(alice.repository.key(stored.counter), stored.COUNTER_TICKET), []),
    ]
    for write in late:
        with pytest.raises(Conflict, match="This desk is being deleted"):
            write()


def test_an_import_that_is_at_work_ends_and_all_that_it_has_written_is_found(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placements, "CONTEXT_SECONDS", -1)
    acme, follower = world.tenants["acme"].tenant_id, follow()
    path = archives.write(tmp_path / "archive.json", *[archives.issue(n, comments=1) for n in range(1, 61)])
    write, written = importer.write, []
    monkeypatch.setattr(importer, "AT_ONCE", 1)

    def purged_meanwhile(*of: Any) -> Any:
        if len(written) == 2:
            begin(acme)
        written.append(write(*of))
        return written[-1]

    monkeypatch.setattr(importer, "write", purged_meanwhile)
    ended = run("import_archive", path, "--tenant", "acme")
    assert (ended.status, "This desk is being deleted." in ended.err, len(written)) == (1, True, 2)
    assert "Nothing in it can be changed" in run("import_archive", path, "--tenant", "acme").err
    item = purge_requests.PURGES.last(acme)
    purge(item, follower)
    assert left(acme) == []


def test_of_a_purge_and_a_move_that_begin_in_one_moment_one_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = world.tenants["acme"].tenant_id
    sign, open_still = certificates.signing_key, tenant_directory.get(acme)

    def move_first() -> Any:  # by somebody who saw it open; the purge has looked by then, and has written nothing
        move_requests.begin(open_still, to=Placement("bridge"), by=SYSTEM)
        return sign()

    monkeypatch.setattr(certificates, "signing_key", move_first)
    with pytest.raises(Conflict, match="just changed"):
        begin(acme)
    assert tenant_directory.get(acme).status == "closing"


def test_what_is_being_purged_is_neither_moved_nor_spread_anew(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    before = tenant_directory.get(acme)
    begin(acme)
    for seen in (tenant_directory.get(acme), before):  # the latter by somebody who had read it a moment earlier
        with pytest.raises(Conflict):
            move_requests.begin(seen, to=Placement("bridge"), by=SYSTEM)
        with pytest.raises(Conflict):
            reshard_requests.begin(seen, shards=2, by=SYSTEM)


def test_of_two_who_purge_the_same_desk_the_second_takes_over_and_deletes_what_is_written_while_it_waits(
    small: World,
) -> None:
    acme = small.tenants["acme"].tenant_id
    alice, follower = small.context("alice", "acme"), follow()
    item = begin(acme)
    said: list[dict[str, Any]] = []

    def write_once_more(doing: str) -> None:
        if doing == "waiting for what was begun before":  # let in before everybody was shut out
            creating.create(alice, title="The very last", description="Acme forever.")

    def be_overtaken(doing: str) -> None:
        if not said:
            said.append({})
            said.append(purge(purge_requests.by_slug("acme"), follower, say=write_once_more))

    with pytest.raises(TakenOver):
        purge(item, follower, say=be_overtaken)
    assert said[1]["number"] == 1
    assert left(acme) == []
    tickets = next(one for one in said[1]["holdings"] if one["name"] == "tickets")
    assert tickets["deleted"] > tickets["counted"]


def test_something_that_comes_back_stops_the_certificate(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    follower, item = follow(), begin(small.tenants["acme"].tenant_id)
    count = erasing.Eraser.count

    def one_too_many(self: erasing.Eraser, holding: Any) -> int:
        now = purge_requests.by_slug("acme")
        return count(self, holding) + (holding.name == "usage" and int(now.stage) == max(holdings.Stage))

    with monkeypatch.context() as patch:
        patch.setattr(erasing.Eraser, "count", one_too_many)
        with pytest.raises(Conflict, match="Something is written again and again: usage"):
            purge(item, follower)
    assert purge(purge_requests.by_slug("acme"), follower)["number"] == 1


def test_what_a_process_notes_of_others_when_its_minute_is_over_is_deleted_as_well(
    small: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme, follower = small.tenants["acme"].tenant_id, follow()
    item, said = begin(acme), list[str]()

    def say(doing: str) -> None:
        if doing == "looking through everything again" and doing not in said:
            minute = int(used_desk.BEGAN) // 60
            tallies = json.dumps({acme: {}})
            put_all([NoiseItem(notes_of(minute), "late", tallies=tallies, expires_at=2**40)])
        said.append(doing)

    certificate = purge(item, follower, say=say)
    assert said.count("looking through everything again") == 2
    assert [one["name"] for one in certificate["holdings"] if one["found_after"]] == []
    assert left(acme) == []


def test_an_order_that_cannot_be_carried_out_keeps_no_other_one_waiting(small: World) -> None:
    acme, globex = (small.tenants[slug].tenant_id for slug in ("acme", "globex"))
    open_still = tenant_directory.get(acme)
    for tenant_id in (acme, globex):
        close(tenant_id)
        purge_requests.order(tenant_id, by=SYSTEM, reason="They left.", write=closing_mails.of_deletion)
    move_requests.begin(open_still, to=Placement("bridge"), by=SYSTEM)
    with follow().following():
        ended = run("purge_tenant", "--ordered", "--settle", 0, "--rate", 10_000)
    assert (ended.status, ended.err) == (1, "acme: Acme is being moved. Let that end first, or roll it back.")
    assert "globex is purged" in ended.out


@pytest.mark.parametrize("where", [placed.BRIDGE, placed.SILO], ids=str)
def test_a_desk_with_tables_of_its_own_leaves_none(world: World, settings: Any, where: Placement) -> None:
    settings.SILOS = placed.sites()
    acme = placed.lay(world, "acme", where)
    creating.create(world.context("alice", "acme"), title="In its own table", description="x")
    said = purge(begin(acme), follow(), caught_up=lambda repository: None)
    assert said["placements"] == [str(where)]
    with guard.acting_for(acme), placement.at(where):
        assert provisioning.describe(TICKETS) is None
    assert left(acme) == []


def test_a_desk_whose_own_stream_is_followed_meanwhile_is_gone_and_leaves_no_leases(world: World) -> None:
    acme = placed.lay(world, "acme", placed.BRIDGE)
    world.tickets("acme", 1)
    follower = follow()
    fleet = PollerFleet(TICKETS, partial(Poller, TICKETS, ticket_stream.handle), look_seconds=0.05)

    def see_them_end(doing: str) -> None:
        if doing == "waiting until nobody follows its own tables":
            wait_until(lambda: not fleet.reports())

    with fleet.running():
        wait_until(lambda: "Streams.Leases" in {table for table, _ in traces(acme)})
        certificate = purge(begin(acme), follower, say=see_them_end)
    assert [one["name"] for one in certificate["holdings"] if one["found_after"]] == []
    assert left(acme) == []


def test_a_purge_that_begins_anew_does_not_wait_for_a_stream_that_it_has_ended_itself(world: World) -> None:
    acme = placed.lay(world, "acme", placed.BRIDGE)
    item, follower, waited = begin(acme), follow(), []
    placed.unlist(acme, placed.BRIDGE)
    purge(item, follower, caught_up=lambda repository: waited.append(repository))
    assert waited == []


def test_a_purge_that_only_reads_for_long_says_that_it_is_at_work(
    small: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, follower, notes = begin(small.tenants["acme"].tenant_id), follow(), []
    monkeypatch.setattr(leased_job, "_HEARTBEAT_SECONDS", 0)
    note, count = TenantPurge._note, erasing.Eraser.count

    def counting(self: erasing.Eraser, holding: Any) -> int:
        before = len(notes)
        found = count(self, holding)
        assert len(notes) > before, f"nothing was said while {holding.name} was read"
        return found

    def noted(self: TenantPurge, **values: Any) -> None:
        notes.append(values)
        note(self, **values)

    monkeypatch.setattr(TenantPurge, "_note", noted)
    monkeypatch.setattr(erasing.Eraser, "count", counting)
    assert purge(item, follower)["number"] == 1


def test_the_roles_that_delete_may_do_so() -> None:
    for one in holdings.holdings():
        for table in one.tables:
            role = erasing.role_for(table)
            action = "PutItem" if one.without else "BatchWriteItem" if table.scope == "tenant" else "DeleteItem"
            role = "platform" if one.without else role
            held = policies.Policy(policies.document(role))
            asked = policies.Request(f"dynamodb:{action}", policies.table_arn(table.full_name), ("x",), None)
            assert held.allows(asked), (one.name, table.name, role, action)


# --- the command, and what operators order ---


def test_the_command_counts_first_then_purges_and_writes_the_certificate(
    small: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme, file = small.tenants["acme"].tenant_id, tmp_path / "certificate.json"
    close(acme)
    said = run("purge_tenant", "acme", "--count").out
    assert "3 members" in said
    assert "Nothing was deleted." in said
    assert tenant_directory.get(acme).status == "closing"
    monkeypatch.setattr(command, "REPORT_SECONDS", 0)
    with follow().following():
        ended = run("purge_tenant", "acme", "--settle", 0, "--rate", 10_000, "--certificate", file)
    assert (ended.status, ended.out.split(":")[0]) == (0, "acme is purged")
    assert re.search(r"^acme: [1-9]\d* items deleted$", ended.err, re.MULTILINE)
    assert run("verify_certificate", file).status == 0
    signed = file.read_bytes()
    file.unlink()
    again = run("purge_tenant", "acme", "--certificate", file)
    assert (again.status, "acme was purged before. Certificate 1 is in the admin" in again.out) == (0, True)
    assert file.read_bytes() == signed
    assert run("purge_tenant", "acme", "--count").status == 1


def test_the_command_says_why_it_refuses(world: World) -> None:
    assert "Close it first" in run("purge_tenant", "acme").err
    assert "--now needs --reason TEXT" in run("purge_tenant", "acme", "--now").err
    assert "--now needs --reason TEXT" in run("purge_tenant", "acme", "--now", "--reason", "\u200b").err
    assert "Close it first" in run("purge_tenant", "acme", "--now", "--reason", "A mistyped name.").err
    assert run("purge_tenant", "nobody").status == 1
    assert "from 1 to 10,000" in run("purge_tenant", "acme", "--rate", 0).err


def test_what_is_ordered_is_purged_by_the_next_run_unless_it_was_undone(small: World) -> None:
    acme, globex = (small.tenants[slug].tenant_id for slug in ("acme", "globex"))
    for tenant_id in (acme, globex):
        with pytest.raises(Conflict, match="Close it first"):
            purge_requests.order(tenant_id, by=SYSTEM, reason="They left.", write=closing_mails.of_deletion)
        close(tenant_id)
        purge_requests.order(tenant_id, by=SYSTEM, reason="They left.", write=closing_mails.of_deletion)
    desk_closing.reopen(globex, by=SYSTEM, write=closing_mails.to_owners)
    with follow().following():
        ended = run("purge_tenant", "--ordered", "--settle", 0, "--rate", 10_000)
    assert "acme is purged" in ended.out
    assert "globex was reopened since" in ended.out
    assert tenant_directory.get(globex).status == "active"
    assert purge_requests.PURGES.all_last() == []


def test_an_order_is_taken_back(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    close(acme)
    purge_requests.order(acme, by=SYSTEM, reason="They left.", write=closing_mails.of_deletion)
    with pytest.raises(Conflict):
        purge_requests.order(acme, by=SYSTEM, reason="Again.", write=closing_mails.of_deletion)
    purge_requests.withdraw(acme, by=SYSTEM)
    assert purge_requests.PURGES.last(acme) is None
    with pytest.raises(Conflict, match="No purge of Acme is ordered"):
        purge_requests.withdraw(acme, by=SYSTEM)
