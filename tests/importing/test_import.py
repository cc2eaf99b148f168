"""Importing an issue archive: what becomes of a row, and that nothing is lost, doubled or half there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.dynamo import meter
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tests.support import archives
from tests.support.archives import comment, imported, issue, pull
from tests.support.commands import everything, run
from tests.support.world import World
from tickets.data import importer
from tickets.desk import changing, commenting, lists, timelines
from tickets.ticket import stored
from tickets.ticket.fields import Status

REAL = settings.BASE_DIR.parent / "shared" / "data" / "tls13-archive.json"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.json"


def ticket(world: World, number: int = 1) -> timelines.Ticket:
    return timelines.ticket(world.context("alice", "acme"), number)


def listed(world: World, status: Status) -> list[str]:
    """The titles of all tickets of a status, page after page."""
    return [row.title for row in rows(world, status)]


def rows(world: World, status: Status) -> Iterator[Any]:
    after, alice = None, world.context("alice", "acme")
    while True:
        page = lists.page(alice, status=status, after=after, size=500)
        yield from page.rows
        after = page.next
        if after is None:
            return


# --- what becomes of a row ---


def test_an_issue_becomes_a_ticket_with_its_author_times_and_text(world: World, path: Path) -> None:
    ended = imported(archives.write(path, issue(7, title="Printer  on\tfire", body="It *burns*.\r\nBadly.")))

    summary = ticket(world).summary
    assert ended.status == 0
    assert (summary.title, summary.requester, summary.requester_name) == ("Printer on fire", "", "carol")
    assert (summary.created_at, summary.updated_at) == ("2024-03-01T09:00:00.000000Z", "2024-03-03T09:00:00.000000Z")
    assert (summary.status, summary.version, summary.comment_count) == ("open", 1, 0)
    assert ticket(world).description == "It *burns*.\nBadly."
    assert [(a.kind, a.author_name, a.verb) for a in ticket(world).activity] == [
        ("event", "carol", "opened the ticket")
    ]


def test_comments_keep_their_author_time_and_order(world: World, path: Path) -> None:
    at = "2024-03-02T10:00:00Z"
    talk = [comment(i, author=f"user{i}", createdAt=at) for i in range(1, 21)]
    imported(archives.write(path, issue(7, comments=0) | {"comments": talk}))

    entries = ticket(world).activity[1:]
    assert [a.author_name for a in entries] == [f"user{i}" for i in range(1, 21)]
    assert {a.at for a in entries} == {"2024-03-02T10:00:00.000000Z"}
    assert ticket(world).summary.comment_count == 20


def test_a_closed_issue_is_a_closed_ticket_that_says_when(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, state="CLOSED", closedAt="2024-03-02T08:00:00Z")))

    last = ticket(world).activity[-1]
    assert ticket(world).summary.status == "closed"
    assert ticket(world).summary.version == 2
    assert last.at == "2024-03-02T08:00:00.000000Z"
    assert [(c.field, c.before, c.after) for c in last.changes] == [("status", "open", "closed")]


def test_a_merged_pull_request_is_closed_by_who_merged_it(world: World, path: Path) -> None:
    ended = imported(archives.write(path, pulls=(pull(8),)))

    assert ticket(world).activity[-1].author_name == "erin"
    assert "Left out: 1 review of code" in ended.out


def test_labels_become_tags(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, labels=["Editor Ready", "discuss:berlin", "A, b #1", "editor ready"])))

    assert ticket(world).summary.tags == ["editor-ready", "discuss:berlin", "a-b-1"]


def test_a_label_that_is_too_long_for_a_tag_is_cut(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, labels=["a" * 60, f"{'b' * 39} {'c' * 9}"])))

    assert ticket(world).summary.tags == ["a" * 40, "b" * 39]


def test_the_thirteenth_label_is_left_out_and_named(world: World, path: Path) -> None:
    ended = imported(archives.write(path, issue(7, labels=[f"label {i}" for i in range(14)])))

    assert len(ticket(world).summary.tags) == 12
    assert "Issue 7 has more than 12 labels; left out: label-12, label-13. It is ticket 1." in ended.err


def test_an_assignee_who_is_a_member_gets_the_ticket(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, assignees=["stranger", "BOB"])))

    summary = ticket(world).summary
    assert (summary.resolver, summary.resolver_name) == (world.users["bob"].id, "Bob Example")
    assert summary.tags == ["assignee:stranger"]


def test_an_assignee_who_only_looks_on_does_not_get_it(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, assignees=["vera"])))

    assert ticket(world).summary.resolver == ""
    assert ticket(world).summary.tags == ["assignee:vera"]


@pytest.mark.parametrize(
    ("title", "becomes", "remark"),
    [
        ("x" * 201, "x" * 199 + "…", "has a title of 201 characters; it was cut to 200"),
        ("", "Issue 7", "has no title and is called by its number"),
        (None, "Issue 7", "has no title and is called by its number"),
    ],
)
def test_a_title_that_does_not_fit_is_changed_and_reported(
    world: World, path: Path, title: str | None, becomes: str, remark: str
) -> None:
    ended = imported(archives.write(path, issue(7, title=title)))

    assert ticket(world).summary.title == becomes
    assert remark in ended.err
    assert ended.status == 0


def test_what_a_deleted_account_wrote_is_by_ghost(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, author=None, comments=1) | {"comments": [comment(1, author=None)]}))

    assert ticket(world).summary.requester_name == "ghost"
    assert ticket(world).activity[-1].author_name == "ghost"


def test_a_row_with_nulls_where_there_may_be_nothing_is_taken(world: World, path: Path) -> None:
    empty = dict.fromkeys(("body", "labels", "assignees", "comments", "updatedAt", "closedAt"))
    ended = imported(archives.write(path, issue(7) | empty))

    assert ended.status == 0
    assert ticket(world).summary.updated_at == ticket(world).summary.created_at


def test_an_imported_ticket_has_the_attributes_of_one_that_the_rules_wrote(world: World, path: Path) -> None:
    (number,) = world.tickets("acme", 1, who="bob")
    alice = world.context("alice", "acme")
    commenting.comment(alice, number, body="Hello", then=Status.CLOSED)
    imported(archives.write(path, issue(7, comments=1, state="CLOSED", closedAt="2024-03-02T08:00:00Z")))

    def shape(number: int) -> list[tuple[str, ...]]:
        pk = stored.ticket(alice.tenant_id, number)
        items = [item for item in everything() if item["pk"]["S"] == pk]
        return sorted((*sorted(f"{n}:{next(iter(v))}" for n, v in i.items() if n != "request"),) for i in items)

    assert shape(number) == shape(number + 1)


def test_an_imported_ticket_can_be_worked_on(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7, comments=1)))
    alice = world.context("alice", "acme")

    changing.assign(alice, 1, to=world.users["bob"].id, version=1)
    changing.change_status(alice, 1, to=Status.RESOLVED, version=2)

    assert ticket(world).summary.status == "resolved"
    assert listed(world, Status.OPEN) == []


def test_imported_tickets_are_listed_in_every_shard(sharded_world: World, path: Path) -> None:
    imported(archives.write(path, *(issue(i) for i in range(1, 61))))

    assert len(listed(sharded_world, Status.OPEN)) == 60


# --- numbers ---


def test_numbers_go_on_after_the_last_ticket_without_a_gap(world: World, path: Path) -> None:
    world.tickets("acme", 2)
    imported(archives.write(path, *(issue(i) for i in range(1, 31))))

    assert world.tickets("acme", 1) == [33]


def test_an_issue_and_a_pull_request_of_the_same_number_are_two_tickets(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7), pulls=(pull(7),)))

    assert {ticket(world, 1).summary.title, ticket(world, 2).summary.title} == {"Issue 7 is here", "Change 7"}


# --- again ---


def test_a_second_run_writes_nothing_and_costs_three_reads(world: World, path: Path) -> None:
    archives.write(path, *(issue(i, comments=2) for i in range(1, 61)), pulls=(pull(99),))
    imported(path)
    before = everything()

    with meter.measure() as bill:
        ended = imported(path)

    assert everything() == before
    assert "0 tickets new with 0 comments, 61 unchanged" in ended.out
    # The slug and the tenant, and one Query for up to 500 rows.
    assert len(bill.calls) == 3
    assert bill.calls[-1].operation == "Query"


@pytest.mark.parametrize(("order", "calls"), [(1, 3), (-1, 4)], ids=["upwards", "downwards"])
def test_a_second_run_reads_each_marker_once(
    world: World, path: Path, order: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives.write(path, *[issue(i) for i in range(1, 51)][::order])
    imported(path)
    monkeypatch.setattr(importer, "WINDOW", 20)

    with meter.measure() as bill:
        assert "50 unchanged" in imported(path).out

    queries = [c for c in bill.calls if c.operation == "Query"]
    assert (len(queries), sum(c.items for c in queries)) == (calls, 50)


def test_rows_in_no_order_are_known_again(world: World, path: Path) -> None:
    mixed = [issue(i * 37 % 101) for i in range(1, 60)]
    imported(archives.write(path, *mixed))

    assert "59 unchanged" in imported(path).out


def test_a_longer_archive_adds_what_is_new(world: World, path: Path) -> None:
    imported(archives.write(path, issue(1), issue(3)))
    ended = imported(archives.write(path, issue(1), issue(2), issue(3), issue(4)))

    assert "2 tickets new" in ended.out
    assert len(listed(world, Status.OPEN)) == 4


def test_a_row_that_changed_is_reported_and_left_as_it_is(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7)))
    ended = imported(archives.write(path, issue(7, title="Another title")))

    assert ended.status == 3
    assert "Issue 7 has changed in the archive since its import; ticket 1 was left as it is." in ended.err
    assert ticket(world).summary.title == "Issue 7 is here"


def test_what_people_did_to_a_ticket_is_no_change_of_the_archive(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7)))
    changing.change_status(world.context("alice", "acme"), 1, to=Status.CLOSED, version=1)

    assert "1 unchanged" in imported(path).out
    assert ticket(world).summary.status == "closed"


def test_the_same_archive_under_another_name_is_known_again(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7)))

    assert "1 unchanged" in imported(path.rename(path.with_name("later.json"))).out


def test_another_archive_has_rows_of_its_own(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7)))

    assert "1 ticket new" in imported(archives.write(path, issue(7), repo="example/other")).out
    assert "1 ticket new" in imported(path, "--source", "a third one").out


def test_an_archive_without_a_name_goes_by_its_file_and_says_so(world: World, path: Path) -> None:
    path.write_text(json.dumps({"issues": [issue(7)]}))

    assert "it is known as “archive.json” now" in imported(path).err
    assert "1 unchanged" in imported(path).out


def test_each_tenant_imports_for_itself(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7)))

    assert "1 ticket new" in run("import_archive", path, "--tenant", "globex").out


# --- dry run ---


def test_a_dry_run_reports_the_same_and_writes_nothing(world: World, path: Path) -> None:
    archives.write(path, issue(1), issue(2, comments=150, title="x" * 300), issue(3, state="ODD"), pulls=(pull(4),))
    before = everything()

    dry = imported(path, "--dry-run")
    assert everything() == before
    wet = imported(path)

    assert dry.status == wet.status == 3
    assert "Dry run: nothing was written." in dry.out
    assert "3 tickets would be new with 150 comments" in dry.out
    assert dry.err == wet.err.replace(" It is ticket 2.", "")


# --- the real thing ---


@pytest.mark.skipif(not REAL.exists(), reason=f"the public archive is not in {REAL.parent}")
def test_the_archive_of_a_standard_is_imported_whole(world: World, path: Path) -> None:
    dry = imported(REAL, "--dry-run")
    assert dry.status == 0, dry.err
    assert "1,444 tickets would be new with 2,363 comments" in dry.out

    # What becomes of a row that is taken is asked of some: each fortieth, and those that hold most.
    whole = json.loads(REAL.read_text())
    some = {kind: part_of(whole[kind]) for kind in ("issues", "pulls")}
    taken = [row for kind in some.values() for row in kind]
    path.write_text(json.dumps(whole | some))
    ended = imported(path)
    assert ended.status == 0, ended.err
    comments = sum(len(row["comments"]) for row in taken)
    assert f"{len(taken)} tickets new with {comments} comments" in ended.out

    assert f"{len(taken)} unchanged" in imported(path).out
    closed = list(rows(world, Status.CLOSED))
    assert len(closed) == len(taken) > 40
    assert sum(int(row.comment_count) for row in closed) == comments > 100
    assert [row.updated_at for row in closed] == sorted((row.updated_at for row in closed), reverse=True)


def part_of(archived: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each fortieth row, and the one with most comments, most labels and the longest text."""
    most = [max(archived, key=lambda row: len(row[name] or "")) for name in ("comments", "labels", "body")]
    return [row for index, row in enumerate(archived) if index % 40 == 0 or row in most]


def test_an_archive_goes_to_a_tenant_that_nobody_is_in(engine: None, path: Path) -> None:
    tenant_lifecycle.create(name="Acme", by=SYSTEM)

    assert imported(archives.write(path, issue(7, assignees=["bob"]))).status == 0
