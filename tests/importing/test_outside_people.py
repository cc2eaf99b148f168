"""People outside the desk go with their tickets into a file, and are found again where it is brought in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenants.audit_trail.recording import SYSTEM
from tests.support import archives
from tests.support.commands import run
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requesters import Requester


@pytest.fixture
def ada(world: World) -> Requester:
    alice = world.context("alice", "acme")
    made = requesters.ensure(alice, "ada@example.org", name="Ada Lovelace", also=["ada@work.example"])
    creating.create(alice, title="The engine", requester=made)
    return made


def exported(path: Path) -> dict[str, Any]:
    assert run("export_tickets", "--tenant", "acme", "--output", path).status == 0
    return json.loads(path.read_text().splitlines()[0])  # type: ignore[no-any-return]


def brought_in(path: Path, *options: str, where: str = "globex") -> Any:
    ended = run("import_archive", path, "--tenant", where, *options)
    assert ended.status == 0, ended.err
    return ended


def test_an_exported_ticket_names_its_requester_with_all_addresses(ada: Requester, tmp_path: Path) -> None:
    line = exported(tmp_path / "acme.jsonl")
    assert (line["requester_id"], line["requester_name"]) == (ada.id, "Ada Lovelace")
    assert line["requester_addresses"] == ["ada@example.org", "ada@work.example"]


def test_of_somebody_who_was_merged_the_file_has_the_addresses_of_both(
    world: World, ada: Requester, tmp_path: Path
) -> None:
    alice = world.context("alice", "acme")
    countess = requesters.ensure(alice, "countess@example.org")
    requester_changes.merge(alice, countess.id, ada.id, by=SYSTEM)
    line = exported(tmp_path / "acme.jsonl")
    assert line["requester_addresses"] == ["countess@example.org", "ada@example.org", "ada@work.example"]


def test_a_requester_is_added_where_the_file_is_brought_in(world: World, ada: Requester, tmp_path: Path) -> None:
    exported(tmp_path / "acme.jsonl")
    brought_in(tmp_path / "acme.jsonl")
    globex = world.context("charlie", "globex")
    found = requesters.by_address(globex, "ada@work.example")
    assert found is not None
    assert (found.name, found.addresses) == ("Ada Lovelace", ada.addresses)
    assert found.id != ada.id
    summary = changing.read(globex, 1)
    assert (summary.requester, summary.requester_name) == (found.id, "Ada Lovelace")
    assert summary.tenant_requester is not None
    assert found.id in summary.tenant_requester


def test_a_requester_who_is_there_already_is_the_same_person(world: World, ada: Requester, tmp_path: Path) -> None:
    globex = world.context("charlie", "globex")
    known = requesters.ensure(globex, "ada@work.example", name="Ada L.")
    exported(tmp_path / "acme.jsonl")
    brought_in(tmp_path / "acme.jsonl")
    assert changing.read(globex, 1).requester == known.id
    assert requesters.by_address(globex, "ada@example.org") is None


def test_a_dry_run_adds_nobody(world: World, ada: Requester, tmp_path: Path) -> None:
    exported(tmp_path / "acme.jsonl")
    brought_in(tmp_path / "acme.jsonl", "--dry-run")
    assert requesters.by_address(world.context("charlie", "globex"), "ada@example.org") is None


@pytest.mark.parametrize(
    ("addresses", "sentence"),
    [
        (["ada at example"], "has an address of its requester that is none"),
        ("ada@example.org", "has no usable list of the requester's addresses"),
        ([f"a{n}@example.org" for n in range(21)], "has no usable list of the requester's addresses"),
    ],
)
def test_a_line_with_addresses_that_are_none_is_left_out(
    world: World, ada: Requester, tmp_path: Path, addresses: object, sentence: str
) -> None:
    line = exported(tmp_path / "acme.jsonl") | {"requester_addresses": addresses}
    (tmp_path / "bad.jsonl").write_text(json.dumps(line) + "\n")
    ended = run("import_archive", tmp_path / "bad.jsonl", "--tenant", "globex")
    assert sentence in ended.err + ended.out
    assert requesters.by_address(world.context("charlie", "globex"), "ada@example.org") is None


def test_a_requester_whom_nothing_else_names_has_no_id_in_another_desk(
    world: World, ada: Requester, tmp_path: Path
) -> None:
    line = exported(tmp_path / "acme.jsonl")
    del line["requester_addresses"]
    (tmp_path / "old.jsonl").write_text(json.dumps(line) + "\n")
    brought_in(tmp_path / "old.jsonl")
    summary = changing.read(world.context("charlie", "globex"), 1)
    assert (summary.requester, summary.requester_name, summary.tenant_requester) == ("", "Ada Lovelace", None)


def test_an_author_of_an_archive_who_is_an_address_is_a_person(world: World, tmp_path: Path) -> None:
    row = archives.issue(7, author="Grace Hopper <grace@example.org>")
    archives.write(tmp_path / "archive.json", row)
    brought_in(tmp_path / "archive.json", where="acme")
    alice = world.context("alice", "acme")
    grace = requesters.by_address(alice, "grace@example.org")
    assert grace is not None
    assert (changing.read(alice, 1).requester, changing.read(alice, 1).requester_name) == (grace.id, "Grace Hopper")
