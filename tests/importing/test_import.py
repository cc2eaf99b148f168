"""Importing an issue archive: what becomes of a row, and that nothing is lost, doubled or half there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from delivery.timers.due_worker import DueWorker
from portal.dynamo import meter
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tests.support import archives
from tests.support.archives import comment, imported, issue, pull
from tests.support.commands import everything, run
from tests.support.targets import HOUR, set_targets
from tests.support.world import World
from tickets.data import importer
from tickets.desk import changing, commenting, lists, timelines
from tickets.sla import tracking
from tickets.sla.policy import TargetRule
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

CREATED, UPDATED, CLOSED = (f"2024-03-0{day}T0{hour}:00:00.000000Z" for day, hour in ((1, 9), (3, 9), (2, 8)))
FIRST: dict[str, Any] = {
    "title": "Printer on fire", "requester": "", "requester_name": "carol", "created_at": CREATED,
    "updated_at": UPDATED, "status": "open", "version": 1, "comment_count": 0, "tags": [],
}  # fmt: skip
# Values of a row, and what the summary of its ticket says.
BECOME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"title": "Printer  on\tfire", "body": "It *burns*.\r\nBadly."}, FIRST),
    ({"state": "CLOSED", "closedAt": "2024-03-02T08:00:00Z"}, {"status": "closed", "version": 2}),
    (
        {"labels": ["Editor Ready", "discuss:berlin", "A, b #1", "editor ready"]},
        {"tags": ["editor-ready", "discuss:berlin", "a-b-1"]},
    ),
    ({"labels": ["a" * 60, f"{'b' * 39} {'c' * 9}"]}, {"tags": ["a" * 40, "b" * 39]}),
    ({"labels": [f"label {i}" for i in range(14)]}, {"tags": [f"label-{i}" for i in range(12)]}),
    ({"assignees": ["stranger", "BOB"]}, {"resolver_name": "Bob Example", "tags": ["assignee:stranger"]}),
    ({"assignees": ["vera"]}, {"resolver": "", "tags": ["assignee:vera"]}),
    ({"title": "x" * 201}, {"title": "x" * 199 + "…"}),
    ({"title": ""}, {"title": "Issue 9"}),
    ({"title": None}, {"title": "Issue 10"}),
    ({"author": None, "comments": [comment(1, author=None)]}, {"requester_name": "ghost", "comment_count": 1}),
    (dict.fromkeys(("body", "labels", "assignees", "comments", "updatedAt", "closedAt")), {"updated_at": CREATED}),
]
REMARKS = (
    "Issue 5 has more than 12 labels; left out: label-12, label-13. It is ticket 5.",
    "Issue 8 has a title of 201 characters; it was cut to 200. It is ticket 8.",
    "Issue 9 has no title and is called by its number. It is ticket 9.",
    "Issue 10 has no title and is called by its number. It is ticket 10.",
)


def test_rows_become_tickets_and_what_does_not_fit_is_changed_and_reported(world: World, path: Path) -> None:
    ended = imported(archives.write(path, *(issue(n) | row for n, (row, _) in enumerate(BECOME, 1))))
    assert ended.status == 0
    assert [remark for remark in REMARKS if remark not in ended.err] == []
    for number, (_, expected) in enumerate(BECOME, 1):
        summary = ticket(world, number).summary
        assert {name: getattr(summary, name) for name in expected} == expected, number
    assert ticket(world, 1).description == "It *burns*.\nBadly."
    (first,) = ticket(world, 1).activity
    assert (first.kind, first.author_name, first.verb) == ("event", "carol", "opened the ticket")
    closing = ticket(world, 2).activity[-1]
    assert (closing.at, [(c.field, c.before, c.after) for c in closing.changes]) == (
        CLOSED, [("status", "open", "closed")],
    )  # fmt: skip
    assert ticket(world, 6).summary.resolver == world.users["bob"].id
    assert ticket(world, 11).activity[-1].author_name == "ghost"


def test_comments_keep_their_author_time_and_order(world: World, path: Path) -> None:
    at = "2024-03-02T10:00:00Z"
    talk = [comment(i, author=f"user{i}", createdAt=at) for i in range(1, 21)]
    imported(archives.write(path, issue(7, comments=0) | {"comments": talk}))

    entries = ticket(world).activity[1:]
    assert [a.author_name for a in entries] == [f"user{i}" for i in range(1, 21)]
    assert {a.at for a in entries} == {"2024-03-02T10:00:00.000000Z"}


def test_a_merged_pull_request_is_another_ticket_closed_by_who_merged_it(world: World, path: Path) -> None:
    ended = imported(archives.write(path, issue(7), pulls=(pull(7),)))

    assert [ticket(world, number).summary.title for number in (1, 2)] == ["Issue 7 is here", "Change 7"]
    assert ticket(world, 2).activity[-1].author_name == "erin"
    assert "Left out: 1 review of code" in ended.out


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


def test_an_imported_ticket_has_no_clocks_and_gets_none_by_a_later_answer(world: World, path: Path) -> None:
    set_targets(world.context("alice", "acme"), TargetRule(first=HOUR, next=HOUR, solution=HOUR))
    imported(archives.write(path, issue(1)))
    commenting.comment(world.context("alice", "acme"), 1, body="We look at it.")
    DueWorker().turn()
    summary = ticket(world).summary
    assert (summary.sla, summary.due) == (None, None)
    assert tracking.replayed(world.context("alice", "acme"), 1) is None


def test_imported_tickets_are_listed_in_every_shard(sharded_world: World, path: Path) -> None:
    imported(archives.write(path, *(issue(i) for i in range(1, 61))))

    assert len(listed(sharded_world, Status.OPEN)) == 60


# --- numbers ---


def test_numbers_go_on_after_the_last_ticket_without_a_gap(world: World, path: Path) -> None:
    world.tickets("acme", 2)
    imported(archives.write(path, *(issue(i) for i in range(1, 31))))

    assert world.tickets("acme", 1) == [33]


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
    changing.change_status(world.context("alice", "acme"), 1, to=Status.CLOSED, version=1)
    assert "1 unchanged" in imported(path).out, "what people did to a ticket is no change of the archive"
    ended = imported(archives.write(path, issue(7, title="Another title")))

    assert ended.status == 3
    assert "Issue 7 has changed in the archive since its import; ticket 1 was left as it is." in ended.err
    assert (ticket(world).summary.title, ticket(world).summary.status) == ("Issue 7 is here", "closed")


def test_an_archive_is_known_by_its_name_in_each_tenant(world: World, path: Path) -> None:
    imported(archives.write(path, issue(7)))
    path = path.rename(path.with_name("later.json"))
    assert "1 unchanged" in imported(path).out
    assert "1 ticket new" in run("import_archive", path, "--tenant", "globex").out
    assert "1 ticket new" in imported(archives.write(path, issue(7), repo="example/other")).out
    assert "1 ticket new" in imported(path, "--source", "a third one").out
    path.write_text(json.dumps({"issues": [issue(7)]}))
    assert "it is known as “later.json” now" in imported(path).err
    assert "1 unchanged" in imported(path).out


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
