"""The demonstration: what is in it, that it is the same each time, and that it can be interrupted anywhere."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth import authenticate
from django.core.cache import cache

from portal import clock
from portal.dynamo import meter
from portal.dynamo.placement import Move, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction
from portal.errors import Unavailable
from tenants.audit_trail.recording import SYSTEM
from tenants.auditing import access_review
from tenants.lifecycle import closing_mails, desk_closing
from tenants.membership import members
from tenants.sign_in import accounts
from tenants.sign_in.stored import USERS
from tenants.tenancy import context, placements, tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import MEMBERSHIPS, TenantItem
from tests.seeding.test_seed_content import DAY, histories
from tests.support import embedded, listing
from tests.support.commands import Ended, broken_at, everything, run
from tests.support.folding import Follower, recounted
from tests.support.kills import Killed, killed_at
from tests.support.world import World
from tickets.dashboards import dashboard
from tickets.data import stored as import_keys
from tickets.desk import changing, commenting, creating, lists
from tickets.purging import purge_requests, tenant_purge
from tickets.seeding import cast, demonstration
from tickets.seeding.stored import SOURCE, SeedItem
from tickets.ticket import fields, stored
from tickets.ticket.fields import MOVES, Status
from tickets.ticket.stored import CounterItem


@pytest.fixture(autouse=True)
def development(settings: Any) -> None:
    settings.DEBUG = True


def seeded(*options: object) -> Ended:
    return run("seed", "--today", DAY, *options)


def small(*options: object) -> Ended:
    return seeded("--tenants", 1, "--tickets", 7, "--users", 2, *options)


def tiny() -> Ended:
    return seeded("--tenants", 1, "--tickets", 3, "--users", 0)


def acme(who: str = "alice@example.com") -> TenantContext:
    user = accounts.find_by_email(who)
    assert user is not None
    found = context.enter(user, tenant_directory.find("acme").tenant_id)
    assert found is not None
    return found


def counter() -> int:
    item = acme().repository.get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)
    return int(item.last) if item else 0


# --- what is in it ---


def test_the_people_of_the_demonstration_can_sign_in_and_are_where_they_belong(engine: None) -> None:
    ended = seeded("--tickets", 1, "--users", 1)

    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("Added 5 tickets and 10 accounts to 5 tenants in")
    where = {}
    for name in ("alice", "bob", "charlie", "vera", "root"):
        user = authenticate(email=f"{name}@example.com", password="demo-pass-123")
        assert user is not None, name
        where[name] = {f"{m.slug}: {m.role.value}" for m in members.memberships_of(user.id)}
        assert user.is_operator == (name == "root")
    assert where == {
        "alice": {"acme: owner", "globex: agent", "hooli: viewer", "initech: admin", "umbrella-care: agent"},
        "bob": {"acme: agent"},
        "charlie": {"globex: owner"},
        "vera": {"acme: viewer"},
        "root": set(),
    }


def test_the_audit_trail_says_who_made_each_of_them_a_member(engine: None) -> None:
    seeded("--tenants", 1, "--tickets", 1, "--users", 2)
    found = access_review.page(acme()).members
    assert {member.granted_by for member in found} == {"Pooldesk (seed)"}
    assert len(found) == 5


def test_each_tenant_has_an_owner_and_agents_and_the_usual_size_is_modest(engine: None) -> None:
    seeded("--tenants", 7, "--tickets", 3, "--users", 3)
    for desk in cast.desks(seed=1, tenants=7, tickets=3, users=3):
        roles = Counter(m.role.value for m in members.members_of(Store("tenant", desk.tenant_id)))
        assert (roles["owner"], roles["agent"] >= 1) == (1, True), desk.name
    usual = {desk.name: desk.tickets for desk in cast.desks(seed=1, tenants=5, tickets=None, users=6)}
    assert usual == {"Acme": 240, "Globex": 120, "Initech": 60, "Umbrella Care": 40, "Hooli": 25}


def test_the_password_comes_from_the_settings_and_is_hashed_once(
    engine: None, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    hashed = []
    real = cast.make_password
    monkeypatch.setattr(cast, "make_password", lambda password: hashed.append(password) or real(password))
    settings.DEMO_PASSWORD = "another pass 456"
    small()

    assert hashed == ["another pass 456"]
    assert authenticate(email="bob@example.com", password="another pass 456") is not None


def test_the_lists_show_every_ticket_under_its_status(engine: None) -> None:
    seeded("--tenants", 1, "--tickets", 90)
    expected = Counter(h.values["status"] for h in histories(90, users=cast.DEFAULT_USERS))

    for status in Status:
        found, after = 0, None
        while True:
            page = lists.page(acme(), status=status, after=after)
            found += len(page.rows)
            after = page.next
            if after is None:
                break
        assert found == expected[status], status


def test_a_seeded_ticket_has_the_attributes_of_one_that_the_rules_wrote_and_can_be_worked_on(engine: None) -> None:
    small()
    alice = acme()
    number = creating.create(alice, title="Mine", description="It broke.", tags=["a"])
    commenting.comment(alice, number, body="Hello", then=Status.CLOSED)
    # What only some tickets have met.
    sometimes = {"commented_at", "noted_at", "request", "resolved_at", "reopened_at", "responded_at"}
    sometimes |= {"tenant_requester", "rated_at"}

    def shapes(numbers: range) -> set[tuple[str, ...]]:
        wanted = {stored.ticket(alice.tenant_id, n) for n in numbers}
        items = [item for item in everything() if item["pk"]["S"] in wanted]
        return {tuple(sorted(f"{n}:{next(iter(v))}" for n, v in item.items() if n not in sometimes)) for item in items}

    assert shapes(range(1, 8)) == shapes(range(number, number + 1))
    summary = changing.read(alice, 3)
    to = MOVES[Status(summary.status)][0]
    changing.change_status(alice, 3, to=to, version=int(summary.version))
    assert changing.read(alice, 3).status == to.value


# --- again ---


def test_the_same_arguments_give_the_same_content(engine: None) -> None:
    small("--seed", 5)
    first = everything(), everything(MEMBERSHIPS)
    clear()
    small("--seed", 5)

    assert everything() == first[0]
    assert [i["tenant_id"] for i in everything(MEMBERSHIPS)] == [i["tenant_id"] for i in first[1]]


def clear() -> None:
    embedded.make_empty()
    cache.clear()


def test_a_finished_one_does_nothing_and_costs_two_reads_per_tenant(engine: None) -> None:
    seeded("--tenants", 2, "--tickets", 2, "--users", 0)
    before = everything()
    with meter.measure() as bill:
        ended = seeded("--tenants", 2, "--tickets", 2, "--users", 0)

    assert (ended.status, ended.out) == (0, "All of it is there already; nothing was written.\n")
    assert everything() == before
    # For each tenant, where its content lies and what is there; and one to see that the whole is marked as complete.
    assert [c.operation for c in bill.calls] == ["BatchGetItem", "GetItem"] * 2 + ["GetItem"]


def test_if_empty_finishes_what_was_interrupted_and_then_costs_two_reads_and_leaves_it_alone(engine: None) -> None:
    with broken_at(6, "before", Unavailable("The database cannot be reached.")):
        assert small().status == 1
    assert small("--if-empty").status == 0
    assert counter() == 7
    with meter.measure() as bill:
        ended = seeded("--if-empty")
    assert (ended.status, ended.out) == (0, "The demonstration is there already.\n")
    assert [c.operation for c in bill.calls] == ["BatchGetItem", "GetItem"]


def test_if_empty_leaves_out_a_desk_that_was_purged_also_while_it_is(
    engine: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CERTIFICATE_KEY = "11" * 32
    monkeypatch.setattr(tenant_purge, "_LOOK_SECONDS", 0)
    seeded("--tenants", 2, "--tickets", 2, "--users", 0)
    tenant_id = tenant_directory.find("acme").tenant_id
    desk_closing.close(tenant_id, by=SYSTEM, write=closing_mails.to_owners, days=0)
    purging = purge_requests.begin(tenant_directory.get(tenant_id), by=SYSTEM, reason="They left.")
    assert demonstration.purged() == {tenant_id}
    now: dict[str, Any] = {"settle": 0, "unfollow": 0, "sleep": lambda seconds: None}
    tenant_purge.TenantPurge(purging, by=SYSTEM, caught_up=lambda repository: None, **now).run()
    before = everything()
    for _ in range(2):
        ended = seeded("--tenants", 2, "--tickets", 2, "--users", 0, "--if-empty")
        assert (ended.status, ended.out) == (0, "All of it is there already; nothing was written.\n")
    assert tenant_directory.with_slug("acme") is None
    assert len(everything()) == len(before)


def test_one_whose_tickets_are_there_says_so(engine: None) -> None:
    small()
    repository = Store("tenant", acme().tenant_id)
    record = repository.get(SeedItem, import_keys.import_source, SOURCE, sort=SOURCE)
    assert record is not None
    record.written = 0
    repository.put_all([record])
    assert small().out == "All tickets and accounts are there already.\n"


def test_a_larger_one_adds_to_a_smaller_one_and_to_what_people_did(engine: None) -> None:
    small()
    number = creating.create(acme(), title="A ticket of mine")
    ended = seeded("--tenants", 1, "--tickets", 12, "--users", 4)

    assert "Added 4 tickets" in ended.out
    assert (number, counter()) == (8, 12)
    assert changing.read(acme(), 8).title == "A ticket of mine"
    assert len(members.members_of(acme().repository)) == 7
    assert "nothing was written" in small().out


# --- interruptions ---


@pytest.mark.parametrize("moment", ["before", "after"])
def test_one_that_ends_at_any_of_its_writes_is_finished_by_the_next(
    engine: None, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demonstration, "BLOCK", 2)
    monkeypatch.setattr(demonstration, "PARALLEL", 1)
    tiny()
    whole = content_of_acme()
    for write in count(1):
        clear()
        with broken_at(write, moment, Unavailable("The database cannot be reached.")) as writes:
            ended = tiny()
        if len(writes) < write:
            # Two batches of customers, the counter, the record, two blocks of parts, summaries and record, the record
            # once more.
            assert len(writes) == 11
            return
        assert (ended.status, "Run it again with the same arguments" in ended.err) == (1, True)
        assert tiny().status == 0
        assert content_of_acme() == whole


def content_of_acme() -> list[dict[str, Any]]:
    """All items but the note on which numbers need a closer look, which an interruption may change."""
    return [{name: value for name, value in item.items() if name != "taken"} for item in everything()]


def test_one_that_is_finished_on_another_day_keeps_the_day_of_its_beginning(
    engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small()
    whole = content_of_acme()
    clear()
    monkeypatch.setattr(demonstration, "BLOCK", 3)
    with broken_at(11, "before", Unavailable("The database cannot be reached.")):
        assert small().status == 1

    assert run("seed", "--today", "2026-04-01", "--tenants", 1, "--tickets", 7, "--users", 2).status == 0
    assert content_of_acme() == whole


def test_a_larger_one_first_finishes_what_was_interrupted(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    larger = ("--tenants", 1, "--tickets", 12, "--users", 4)
    small()
    seeded(*larger)
    whole = content_of_acme()
    clear()
    monkeypatch.setattr(demonstration, "PARALLEL", 1)
    with broken_at(8, "before", Unavailable("The database cannot be reached.")):
        assert small().status == 1

    assert seeded(*larger).status == 0
    assert content_of_acme() == whole


def test_an_interrupted_one_leaves_tickets_alone_that_people_changed_since(
    engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demonstration, "PARALLEL", 1)
    # Two batches of customers, the counter, the record, three batches of parts, the summaries; then the record is not
    # written.
    with broken_at(9, "before", Unavailable("The database cannot be reached.")) as writes:
        assert small().status == 1
    assert writes[-2:] == ["BatchWriteItem", "BatchWriteItem"]
    summary = changing.read(acme(), 2)
    changing.edit(acme(), 2, priority=fields.Priority.LOW, version=int(summary.version))
    changed = changing.read(acme(), 2)

    assert small().status == 0
    assert changing.read(acme(), 2).serialize() == changed.serialize()


def test_a_killed_one_is_finished_by_the_next(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--tenants", 2, "--tickets", 70, "--users", 0)
    desks = list(cast.desks(seed=1, tenants=2, tickets=70, users=0))
    kills = 0
    while sum(map(progress, desks)) < 71:
        with suppress(Killed), killed_at(monkeypatch, 30, writes_only=True):
            seeded(*arguments)
        kills += 1
    assert kills > 2
    assert seeded(*arguments).status == 0
    assert sum(item["sk"]["S"] == stored.SUMMARY for item in everything()) == 140
    assert counter() == 70
    for history in histories(70, users=0)[::20]:
        number = int(history.identity.rsplit("/", 1)[1])
        assert changing.read(acme(), number).comment_count == history.comment_count


def progress(desk: cast.CastDesk) -> int:
    record = demonstration._read(Store("tenant", desk.tenant_id))
    return int(record.written) if record else 0


def test_who_joins_a_demo_gets_tables_and_no_sample_data(engine: None) -> None:
    assert (run("prepare_demo").status, everything(), everything(USERS)) == (0, [], [])


# --- what is refused ---


def test_accounts_with_a_known_password_are_refused_in_production(engine: None, settings: Any) -> None:
    settings.DEBUG = False
    ended = small()

    assert (ended.status, "they need DEBUG=1" in ended.err) == (1, True)
    assert everything(USERS) == []


def test_tenants_and_accounts_of_others_and_of_another_seed_are_left_alone(world: World) -> None:
    before = everything(USERS)
    ended = small()

    assert ended.status == 1
    assert "alice@example.com has an account already. This seed did not make it" in ended.err
    assert [i for i in everything(USERS) if i in before] == before
    clear()
    small()
    assert "This seed did not make it" in small("--seed", 2).err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tenants", "0"), "argument --tenants: must be 1 or more"),
        (("--tickets", "-1"), "argument --tickets: must be 0 or more"),
        (("--tickets", "999999999999999999999"), "argument --tickets: must be 1,000,000 or less"),
        (("--users", "many"), "argument --users: must be a whole number: 'many'"),
        (("--today", "soon"), "argument --today: must be a date such as 2026-01-31"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(arguments: tuple[str, ...], says: str) -> None:
    assert says in run("seed", *arguments).err


# --- how much it takes ---


def test_tickets_are_written_in_batches(engine: None) -> None:
    with meter.measure() as bill:
        seeded("--tenants", 1, "--tickets", 100, "--users", 0)

    calls = Counter(c.operation for c in bill.calls)
    items = sum(len(h.entries) + 2 for h in histories(100, users=0))
    # Two batches of customers, and two blocks: each ends in up to four parallel' incomplete batches, two of summaries
    # and one record.
    assert calls["BatchWriteItem"] <= items / 25 + 2 * (4 + 1) + 4
    assert bill.trips < 100


def test_memory_does_not_grow_with_the_number_of_tickets(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    small()
    desk = cast.desk("Acme", seed=1, tickets=0, users=2)
    tenant = context.for_system(tenant_directory.find("acme"))
    monkeypatch.setattr(Store, "put_all", lambda self, items: None)

    def peak(tickets: int) -> int:
        record = SeedItem("", "", day=DAY, planned=tickets, written=0, taken=0, users=2)
        tracemalloc.start()
        try:
            for _ in demonstration._fill(tenant, desk, record, seed=1):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    limit = peak(100) * 1.3
    # More than one try, because threads of others allocate as well.
    assert any(peak(250) < limit for _ in range(3))


def test_without_a_day_the_newest_ticket_is_of_the_last_days(engine: None) -> None:
    run("seed", "--tenants", 1, "--tickets", 40, "--users", 0)
    newest = max(item["updated_at"]["S"] for item in everything() if item["sk"]["S"] == stored.SUMMARY)
    age = clock.now() - clock.parse(newest)

    assert 0 < age.total_seconds() < 4 * 24 * 3600


def test_the_tags_that_the_dashboard_of_a_seeded_desk_lists_are_those_with_most_tickets(engine: None) -> None:
    follower = Follower()
    seeded("--tenants", 1)
    follower.fold()
    found = dashboard.read(acme(), days=30)
    true = listing.tickets(recounted(acme()), "TAGS")
    ranks = sorted(map(listing.rank, true.values()), reverse=True)
    assert [(tag.unresolved, tag.total) for tag in found.tags] == ranks[: len(found.tags)]
    assert found.other_tags.least <= len(true) - len(found.tags) <= found.other_tags.most


def test_a_desk_that_is_being_moved_is_named_and_gets_nothing(engine: None) -> None:
    assert tiny().status == 0
    moved = Transaction()
    move = placements.encoded(Move("m" * 16, Placement.parse("bridge")))
    moved.update(tenant_directory.find("acme"), [TenantItem.move.set(move)])
    PLATFORM.transact(moved)
    ended = small()
    assert (ended.status, ended.err) == (1, "Acme is being moved to another place. Run this again when that has ended.")
