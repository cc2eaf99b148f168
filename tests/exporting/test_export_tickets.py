"""Exporting all tickets of a desk as lines, and taking them back without loss."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from portal import clock
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.tenancy.context import Role
from tests.support.commands import everything, run
from tests.support.world import World
from tickets.data import exporting, import_rows
from tickets.data.archive_reader import ArchiveFault, RawRow, archive_of
from tickets.data.import_rows import Refused
from tickets.desk import bulk, changing, commenting, creating, undoing
from tickets.desk.changing import TicketState
from tickets.ticket import stored as ticket_stored
from tickets.ticket.fields import NUMBER_GAP, Priority, Status
from tickets.ticket.stored import CounterItem
from tickets.time_machine import whole_tickets


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "acme.jsonl"


def exported(slug: str, path: Path) -> list[dict[str, Any]]:
    ended = run("export_tickets", "--tenant", slug, "--output", path)
    assert ended.status == 0, ended.err
    return [json.loads(line) for line in path.read_text().splitlines()]


def busy(world: World) -> None:
    """Three tickets in Acme with everything that a ticket can have."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    creating.create(
        alice, title="Größe ≠ “größer” 🖨", description="It *broke*.\n\n\ttab", priority=Priority.HIGH, tags=["a", "ü"]
    )
    commenting.comment(bob, 1, body="An answer.")
    commenting.comment(bob, 1, body="Between us.", internal=True)
    changing.assign(alice, 1, to=bob.user_id, version=1)
    changing.edit(
        bob, 1, version=2, title="Renamed", description="Longer than before.", priority=Priority.URGENT, tags=["b"]
    )
    commenting.comment(alice, 1, body="Done.", then=Status.RESOLVED)
    changing.change_status(alice, 1, to=Status.OPEN, version=4)
    creating.create(bob, title="Second")
    receipt = bulk.change_status(alice, [TicketState.of(changing.read(alice, 2))], to=Status.CLOSED).receipt
    undoing.take_back(alice, receipt)
    alice.repository.increment(
        CounterItem, ticket_stored.counter, sort=ticket_stored.COUNTER_TICKET
    )  # a number that was lost
    creating.create(alice, title="Fourth")


def stored(tenant_id: str) -> list[dict[str, Any]]:
    """All items of all tickets of a tenant, without the tenant, the epoch in which they were counted, and what lines
    do not tell: by which request something was made, and what a change keeps of before beside its words."""
    of_changes = ("former_resolver", "former_description", "resolved_before", "reopened_before")
    untold = ("pk", "tenant_status", "raised_status", "epoch", "request", *of_changes)
    return [
        {name: value for name, value in raw.items() if name not in untold}
        for raw in everything()
        if ticket_stored.ticket_number(tenant_id, raw["pk"]["S"]) is not None
    ]


def test_a_desk_that_is_exported_and_imported_is_the_same_item_for_item_and_word_for_word(
    world: World, path: Path
) -> None:
    busy(world)
    world.join("bob", "globex", Role.AGENT)
    lines = exported("acme", path)
    assert [line["number"] for line in lines] == [1, 2, 4]
    ended = run("import_archive", path, "--tenant", "globex")
    assert (ended.status, ended.err) == (0, "")
    there = stored(world.tenants["globex"].tenant_id)
    assert len(there) > 15
    assert there == stored(world.tenants["acme"].tenant_id)
    again = exported("globex", path.with_name("globex.jsonl"))
    assert [line | {"desk": "acme"} for line in again] == lines


def test_an_export_tells_people_times_and_changes_as_the_events_do(world: World, path: Path) -> None:
    busy(world)
    alice = {"id": world.users["alice"].id, "name": "Alice Example"}
    bob = {"id": world.users["bob"].id, "name": "Bob Example"}

    line = exported("acme", path)[0]

    assert (line["desk"], line["requester_id"], line["resolver"]) == ("acme", alice["id"], bob)
    assert (line["status"], line["priority"], line["tags"], line["version"]) == ("open", "urgent", ["b"], 5)
    kinds = ["event", "comment", "note", "event", "event", "comment", "event", "event"]
    assert [entry["kind"] for entry in line["activity"]] == kinds
    first, answer = line["activity"][:2]
    assert (first["verb"], first["by"], first["changes"]) == ("opened the ticket", alice, [])
    assert (answer["body"], answer["by"], answer["at"]) == ("An answer.", bob, line["responded_at"])
    assert {"field": "title", "before": "Größe ≠ “größer” 🖨", "after": "Renamed"} in line["activity"][4]["changes"]
    assert line["days"] == {line["created_at"][:10]: {"commented": 2, "resolved": 1, "reopened": 1}}


def test_an_export_says_on_standard_output_nothing_but_tickets_and_is_a_row_of_the_trail(world: World) -> None:
    world.tickets("acme", 2)
    ended = run("export_tickets", "--tenant", "acme")
    assert [json.loads(line)["title"] for line in ended.out.splitlines()] == ["Ticket 1", "Ticket 2"]
    assert ended.err == "2 tickets of Acme with 2 entries in their history.\n"
    row = browsing.page(world.context("alice", "acme").repository, only=TrailFilter()).rows[0]
    assert (row.action, row.sentence("tickets"), row.origin) == ("export.made", "exported tickets", "export_tickets")
    assert row.entity == "tickets"


def test_a_file_is_there_when_it_is_whole(world: World, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.tickets("acme", 1)
    ended = run("export_tickets", "--tenant", "acme", "--output", path.parent / "missing" / "acme.jsonl")
    assert ended.status == 1
    assert "acme.jsonl cannot be written: No such file or directory." in ended.err
    path.write_text("of yesterday")

    def fails(*args: Any, **how: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(whole_tickets, "read", fails)
    assert run("export_tickets", "--tenant", "acme", "--output", path).status == 130
    assert path.read_text() == "of yesterday"
    assert list(path.parent.iterdir()) == [path]


def test_a_ticket_that_is_changed_while_it_is_read_is_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 1)
    read = whole_tickets._read

    def overtaken(tenant: Any, number: int, *, consistent: bool) -> Any:
        found = read(tenant, number, consistent=consistent)
        if not consistent:
            found.summary.comment_count += 1
        return found

    monkeypatch.setattr(whole_tickets, "_read", overtaken)
    (one,) = exporting.all_tickets(alice)
    assert int(one.summary.comment_count) == 0


# --- taking lines back ---


def line(number: int = 1, **values: Any) -> dict[str, Any]:
    at = "2026-01-02T03:04:05.000006Z"
    carol = {"id": None, "name": "carol"}
    opened = {"id": "abc", "kind": "event", "at": at, "by": carol, "verb": "opened the ticket", "changes": []}
    return {
        "number": number,
        "title": f"Ticket {number}",
        "description": "",
        "status": "open",
        "priority": "low",
        "tags": [],
        "requester_id": None,
        "requester_name": "carol",
        "resolver": None,
        "created_at": at,
        "updated_at": at,
        "comment_count": 0,
        "version": 1,
        "days": {},
        "desk": "elsewhere",
        "activity": [opened],
    } | values


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def taken(path: Path, *options: str) -> Any:
    return run("import_archive", path, "--tenant", "acme", *options)


def test_lines_that_are_imported_again_change_nothing_and_what_they_say_later_is_named(
    world: World, path: Path
) -> None:
    write(path, line(1), line(2))
    taken(path)
    before = everything()
    ended = taken(path)
    assert "0 tickets new with 0 comments, 2 unchanged" in ended.out
    later = taken(write(path, line(1, title="Other"), line(2)))
    assert (ended.status, later.status, everything()) == (0, 3, before)
    assert "Ticket 1 has changed in the archive since its import; ticket 1 was left as it is." in later.err


def test_an_import_that_was_broken_off_goes_on_with_the_same_numbers(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, line(1), line(3))
    path.write_text(path.read_text() + '{"number": 7, "ti')
    broken = taken(path)
    assert broken.status == 1
    assert "acme.jsonl is damaged in line 3: at column 15: Unterminated string" in broken.err

    taken(write(path, line(1), line(3), line(7)))

    assert [one["number"] for one in exported("acme", path)] == [1, 3, 7]


def test_numbers_that_are_taken_or_far_beyond_become_others_and_that_is_said(world: World, path: Path) -> None:
    world.tickets("acme", 2)
    write(path, line(1), line(9), line(2 * NUMBER_GAP))
    first, later = path.with_name("first.csv"), path.with_name("later.csv")
    said = taken(path, "--numbers", str(first)).out
    assert ("2 tickets have another number than in the export" in said, "--numbers writes which" in said) == (
        True,
        True,
    )
    taken(path, "--numbers", str(later))
    rows = f"ticket,1,3\nticket,9,9\nticket,{2 * NUMBER_GAP},10\n"
    assert first.read_text() == later.read_text() == f"kind,number,ticket\n{rows}"
    assert [one["number"] for one in exported("acme", path)] == [1, 2, 3, 9, 10]


def test_a_resolver_who_is_no_agent_here_becomes_a_tag_and_is_named_once(world: World, path: Path) -> None:
    stranger = {"id": world.users["charlie"].id, "name": "Charlie Example"}

    ended = taken(write(path, line(1, resolver=stranger), line(2, resolver=stranger)))

    assert ended.err == ""
    assert "2 tickets were assigned to Charlie Example" in ended.out
    assert ended.out.count("“assignee:charlie-example”") == 1
    assert [(t["resolver"], t["tags"]) for t in exported("acme", path)] == [(None, ["assignee:charlie-example"])] * 2


def test_of_very_many_strangers_those_with_most_tickets_are_named(world: World, path: Path) -> None:
    people = [{"id": f"{number:032x}", "name": f"Stranger {number}"} for number in range(1, 22)]
    write(path, *(line(number, resolver=people[min(number, 21) - 1]) for number in range(1, 23)))

    ended = taken(path, "--dry-run")

    assert ended.out.count("assigned to Stranger") == 20
    assert "2 tickets were assigned to Stranger 21" in ended.out
    assert "Tickets of other people" in ended.out


def test_no_file_is_written_over_by_the_numbers(world: World, path: Path) -> None:
    before = write(path, line(1)).read_text()

    ended = taken(path, "--numbers", str(path))

    assert (ended.status, path.read_text()) == (1, before)
    assert "File exists" in ended.err


def test_a_resolver_of_another_installation_is_found_by_name(world: World, path: Path) -> None:
    taken(write(path, line(1, resolver={"id": "c" * 32, "name": "Bob Example"})))

    assert exported("acme", path)[0]["resolver"]["id"] == world.users["bob"].id


def test_a_line_whose_sums_are_wrong_is_taken_by_its_history(world: World, path: Path) -> None:
    ended = taken(write(path, line(1, comment_count=5)))

    assert "Ticket 1 says another comment count than its history, which has 0." in ended.err
    assert exported("acme", path)[0]["comment_count"] == 0


AT = "2026-01-02T03:04:05Z"
BY = {"id": None, "name": "carol"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"number": 0}, "has no usable number"),
        ({"number": True}, "has no usable number"),
        ({"title": "\u200b"}, "is none that could have been exported: A ticket needs a title"),
        ({"title": 7}, "has a number as title, not a text"),
        ({"status": "lost"}, "There is no such status"),
        ({"priority": None}, "has no usable priority"),
        ({"tags": ["a|b"]}, "which tags cannot have"),
        ({"tags": "a"}, "has a text as tags, not a list"),
        ({"requester_id": "../../x"}, "has a requester with an id that nobody can have"),
        ({"requester_id": ["a"]}, "has a requester with an id that nobody can have"),
        ({"requester_name": 7}, "has a number as name of requester, not a text"),
        ({"resolver": "bob"}, "has a text as resolver, not a person"),
        ({"created_at": "yesterday"}, "has “yesterday” as created_at, which is no time"),
        ({"created_at": "2126-01-01T00:00:00Z"}, "which cannot be"),
        ({"updated_at": "2020-01-01T00:00:00Z"}, "was changed before it was created"),
        ({"activity": ["x"]}, "has a text as entry 1, not an object"),
        ({"activity": [{"kind": "rumour", "id": "a"}]}, "has an entry 1 without a usable kind and id"),
        ({"activity": [{"kind": "note", "id": "a#b"}]}, "has an entry 1 without a usable kind and id"),
        ({"activity": [{"kind": "note", "id": "a", "at": AT, "by": BY, "body": " "}]}, "in which nothing is written"),
        ({"activity": [{"kind": "note", "id": "a", "at": AT, "by": BY, "body": "x"}] * 2}, "two entries with the id a"),
        (
            {"activity": [{"kind": "event", "id": "a", "at": AT, "by": BY, "verb": "x", "changes": [{"field": "#"}]}]},
            "has a change in entry 1 that names no field",
        ),
        ({"days": {"2026-01-02": {"commented": 9}}}, "has days that count what it cannot have"),
        ({"days": {"2026-01-02": {"won": 1}}}, "has days that count what it cannot have"),
        ({"days": {"2026-13-02": {"commented": 1}}}, "has “2026-13-02” among its days"),
        ({"responded_at": 7}, "has a number as responded_at, not a time"),
    ],
)
def test_a_line_that_no_export_writes_is_refused_with_the_reason(values: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=re.escape(says)):
        import_rows.read_exported(RawRow("ticket", 1, line(1) | values), clock.now())


def test_a_line_that_is_refused_is_left_out_and_named(world: World, path: Path) -> None:
    ended = taken(write(path, line(1, status="lost"), line(2)))

    assert ended.status == 3
    assert "Ticket 1 is none that could have been exported: There is no such status. It was left out." in ended.err
    assert [one["number"] for one in exported("acme", path)] == [2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"number": 1, "x": ' + b"[" * 5000, "nested too deep"),
        (b'{"number": NaN}', "in line 1: NaN is no number"),
        (b'{"number": "\xff"}', "in line 1: it is not UTF-8"),
        (b'{"number": 1} {"number": 2}', "in line 1: at column 15: Extra data"),
        (b'{"number": ' + b"9" * 5000 + b"}", "in line 1"),
        (b'{"number": 1, "title": "\\ud800"}', "in line 1: it holds half of a character"),
    ],
)
def test_a_damaged_line_is_named_with_its_place(path: Path, text: bytes, says: str) -> None:
    path.write_bytes(text)

    with pytest.raises(ArchiveFault, match=re.escape(says)):
        list(archive_of(path).rows())


def test_a_line_of_a_size_that_no_memory_holds_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickets.data.archive_reader.LINE_LIMIT", 2**20)
    rows = archive_of(write(path, line(1), line(2, description="x" * 2**20))).rows()

    assert next(rows).position == 1
    with pytest.raises(ArchiveFault, match="Line 2 of"):
        next(rows)
