"""A file whose hashes are right and whose rows are not is refused by a line, or makes a desk that can be deleted."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tenants.audit_trail import chain
from tenants.lifecycle import import_notes
from tenants.lifecycle.stored import CERTIFICATES
from tenants.tenancy import tenant_directory
from tests.lifecycle.test_transfer import SLUG, all_items, forged, imported, removed_again, to_item
from tests.purging import test_tenant_purge as purging
from tests.support import used_desk
from tests.support.commands import run
from tests.support.world import World
from tickets.desk import creating

Rows = list[dict[str, Any]]  # of one entry: {"table", "item"}

# What comes in place of a value. None takes the attribute away.
DAMAGES: list[dict[str, Any] | None] = [
    None,
    {"S": ""},
    {"S": "x"},
    {"S": "a|b#c"},
    {"S": "\ud800"},
    {"S": 7},
    {"S": "y" * 500_000},
    {"N": "7"},
    {"N": "-1"},
    {"N": "1.5"},
    {"N": "007"},
    {"N": "zz"},
    {"N": "1" + "0" * 12},
    {"N": "1" + "0" * 40},
    {"M": {}},
    {"L": []},
    {"L": [{"N": "zz"}]},
    {"SS": []},
    {"NULL": True},
]


@pytest.fixture(autouse=True)
def quick(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CERTIFICATE_KEY = "11" * 32
    used_desk.keep_to_its_minutes(monkeypatch)
    monkeypatch.setattr("tickets.purging.tenant_purge._LOOK_SECONDS", 0)


@pytest.fixture
def gone(tmp_path: Path) -> tuple[World, Path]:
    return removed_again(tmp_path)


def rows_of(path: Path) -> dict[str, Rows]:
    with zipfile.ZipFile(path) as archive:
        entries = json.loads(archive.read("manifest.json"))["entries"]
        lines = {one["holding"]: archive.read(one["name"]).splitlines() for one in entries}
    return {holding: [json.loads(line) for line in some] for holding, some in lines.items()}


def chained_again(rows: Rows) -> None:
    """Let the chain hold over rows that were changed, as far as they can be chained."""
    ends = {row["item"]["partition"]["S"]: row["item"] for row in rows if "action" not in row["item"]}
    last: dict[str, str] = {}
    trail = [row["item"] for row in rows if "action" in row["item"]]
    for item in sorted(trail, key=lambda item: int(item["sequence"]["N"])):
        item["previous"] = {"S": last.get(item["partition"]["S"], "")}
        last[item["partition"]["S"]] = chain.hash_of(item)
        item["hash"] = {"S": last[item["partition"]["S"]]}
    for partition, hashed in last.items():
        ends[partition]["hash"] = {"S": hashed}


def damaged(at: int, name: str, value: dict[str, Any] | None, holding: str) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        item = rows[at]["item"]
        if value is None:
            del item[name]
        else:
            item[name] = value
        if holding == "audit trail" and name not in ("hash", "previous"):
            try:
                chained_again(rows)
            except (KeyError, TypeError, ValueError):
                return  # nobody could chain them

    return change


def damages(of: dict[str, Rows]) -> st.SearchStrategy[tuple[str, int, str, dict[str, Any] | None]]:
    """One attribute of one row: the kinds of rows are alike likely, however many there are of each."""
    kinds: dict[tuple[str, str, str], int] = {}
    for holding, rows in of.items():
        for at, row in enumerate(rows):
            kinds[holding, row["table"], row["item"].get("sk", {}).get("S", "")[:3]] = at
    places = [(kind[0], at, name) for kind, at in kinds.items() for name in sorted(of[kind[0]][at]["item"])]
    return st.tuples(st.sampled_from(places), st.sampled_from(DAMAGES)).map(lambda drawn: (*drawn[0], drawn[1]))


def test_a_row_that_is_damaged_is_refused_by_its_line_or_makes_a_desk_that_can_be_exported_and_deleted(
    gone: tuple[World, Path], tmp_path: Path
) -> None:
    _, path = gone
    rows, before = rows_of(path), all_items()
    refused: list[bool] = []

    @hypothesis.settings(max_examples=10, database=None)
    @hypothesis.given(damages(rows))
    @hypothesis.example(("members", 0, "name", {"S": "x"}))  # of which a desk can be made
    @hypothesis.example(("ticket counter", 0, "last", None))
    def holds(damage: tuple[str, int, str, dict[str, Any] | None]) -> None:
        holding, at, name, value = damage
        ended = imported(forged(path, holding, damaged(at, name, value, holding)))
        refused.append(ended.status != 0)
        if refused[-1]:
            assert (ended.status, "Line " in ended.err or "audit trail" in ended.err) == (1, True), ended
            assert import_notes.under_way(SLUG) is None  # the note is what an import writes first
        else:
            can_be_exported_and_deleted(tmp_path)
            removed_again(tmp_path)

    holds()
    assert {*refused} == {True, False}
    assert all_items() == before


def row(*without: str, of: str = "", sort: str = "", **values: Any) -> Callable[[Rows], None]:
    """Change the last row, of a table if given, or the first one with a sort key."""

    def change(rows: Rows) -> None:
        items = [one["item"] for one in rows if of in one["table"] and (not sort or one["item"]["sk"]["S"] == sort)]
        item = items[0 if sort else -1]
        for name in without:
            del item[name]
        item.update(values)

    return change


def summary(*without: str, **values: Any) -> Callable[[Rows], None]:
    return row(*without, sort="SUMMARY", **values)


# What a desk could not be deleted or exported with, or what would keep a page at work: an entry, and what is said.
REFUSED: list[tuple[str, Callable[[Rows], None], str]] = [
    ("ticket counter", row("last"), "has not the form of its kind: last is missing"),
    ("ticket counter", to_item(last={"S": "7"}), "last is missing or wrong"),
    ("ticket counter", to_item(last={"N": "2"}), "which the file's counter does not reach"),
    ("ticket counter", to_item(last={"N": "1000000000"}), "is far beyond the"),
    ("ticket counter", list.clear, "which the file's counter does not reach"),
    ("ticket counter", lambda rows: rows.append(rows[0]), "is a second counter"),
    ("rules", lambda rows: rows.extend(rows * 30), "is one of more than 30 rules"),
    ("endpoints", to_item(endpoint_id={"S": "x"}), "has not the form of its kind"),
    ("webhook secrets", to_item(current={"S": "guess"}), "current is missing or wrong"),
    ("imported archives", row("source"), "source is missing or wrong"),
    ("imported archives", to_item(source={"S": "another"}), "its key is another one"),
    ("imported archives", list.clear, "is of an archive that the file does not list"),
    ("tenant", to_item(shards={"N": "30000"}), "shards is missing or wrong"),
    ("tenant", to_item(write_shards={"N": "17"}), "write_shards is missing or wrong"),
    ("tenant", to_item(plan={"N": "7"}), "plan is missing or wrong"),
    ("tenant", to_item(subscriptions={"S": "nobody"}), "subscriptions is missing or wrong"),
    ("tickets", row("sk"), "has not the form of its kind"),
    ("tickets", to_item(unheard_of={"N": "zz"}), "has not the form of its kind"),
    ("tickets", to_item(unheard_of={"S": "x" * 420_000}), "is longer than the 409,600 bytes"),
    ("tickets", summary(number={"N": "4000"}), "its key is another one"),
    ("tickets", summary(created_at={"S": "yesterday"}), "created_at is missing or wrong"),
    ("tickets", summary(status={"S": "lost"}), "status is missing or wrong"),
    ("tickets", summary("tags"), "tags is missing or wrong"),
    ("tickets", summary("version"), "version is missing or wrong"),
    ("audit trail", row("partition", of="Audit.Chains"), "has not the form of its kind"),
    ("audit trail", row("partition", of="AdminActions"), "partition is missing or wrong"),
    ("audit trail", row(of="Audit.Chains", sequence={"N": "1000000000"}), "names more rows than the file has"),
]


def test_what_no_desk_could_be_deleted_with_is_refused_by_its_line_before_anything_is_written(
    gone: tuple[World, Path],
) -> None:
    _, path = gone
    before = all_items()
    for entry, change, said in REFUSED:
        ended = imported(forged(path, entry, change))
        assert (ended.status, "Line " in ended.err, said in ended.err) == (1, True, True), (entry, said, ended)
    assert all_items() == before


@pytest.mark.parametrize("name", ["made_at", "name", "slug", "tenant_id"])
def test_half_of_a_character_in_the_manifest_is_refused_before_anything_is_written(
    gone: tuple[World, Path], name: str
) -> None:
    before = all_items()
    ended = imported(forged(gone[1], "tickets", lambda rows: None, **{name: "\ud800"}))
    assert (ended.status, ended.err) == (
        1,
        "The manifest of the file cannot be read, because it holds half of a character.",
    )
    assert all_items() == before


def test_half_of_a_character_in_an_argument_is_refused_in_a_sentence() -> None:
    ended = run("export_tenant", "a\udcff", "file.zip")
    assert ended.status == 1
    assert ended.err.endswith("is not UTF-8.")


def test_rows_of_before_an_attribute_was_kept_and_holes_among_the_numbers_are_taken(gone: tuple[World, Path]) -> None:
    _, path = gone

    def older(rows: Rows) -> None:
        for row in rows:
            for name in ("epoch", "days", "former_resolver", "request"):
                row["item"].pop(name, None)

    forged(path, "ticket counter", to_item(last={"N": "4000"})).replace(path)
    assert imported(forged(path, "tickets", older)).status == 0


def test_a_desk_that_was_exported_while_it_moved_gives_out_numbers_where_it_arrives(gone: tuple[World, Path]) -> None:
    world, path = gone
    assert imported(forged(path, "ticket counter", to_item(closed={"N": "1"}))).status == 0
    world.tenants["acme"] = tenant_directory.find(SLUG)
    assert creating.create(world.context("alice", "acme"), title="Here", description="") > 1


def can_be_exported_and_deleted(folder: Path) -> None:
    tenant_id = tenant_directory.find(SLUG).tenant_id
    path = folder / "again.zip"
    path.unlink(missing_ok=True)
    assert run("export_tenant", SLUG, path).status == 0
    purging.purge(purging.begin(tenant_id), purging.follow())
    own = [item for items in all_items().values() for item in items if f"'{tenant_id}" in repr(item)]
    assert [item for item in own if item.get("kind", {}).get("S") not in (CERTIFICATES, "PURGES")] == []
