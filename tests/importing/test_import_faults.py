"""What an import does with archives that are wrong."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support import archives
from tests.support.archives import comment, imported, issue, pull, sound
from tests.support.commands import broken_at, run
from tests.support.world import World
from tickets.data import archive_reader
from tickets.data.archive_reader import Archive, ArchiveFault


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.json"


# --- files that are no archive ---


# What the file holds, and what the message says of it.
NO_ARCHIVES: list[tuple[bytes, str]] = [
    (b"", "is empty"),
    (b"  \n", "byte 3 (line 2, column 1): it ends in the middle"),
    (b"hello", "is damaged at byte 0 (line 1, column 1): invalid"),
    (b"[]", "does not begin with an object"),
    (b"{}", "has no list “issues”"),
    (b'{"issues": {}}', "its “issues” is not a list"),
    (b'{"issues": null}', "its “issues” is not a list"),
    (b'{"issues": [], "pulls": 1}', "its “pulls” is not a list"),
    (b'{"issues": []', "byte 13 (line 1, column 14): it ends in the middle"),
    (b'{"repo": "a",\n "issues": [] } x', "byte 30 (line 2, column 17): more text after the end of the archive"),
    (b'{"repo": "\xff", "issues": []}', "text that is not UTF-8"),
    (b'{"repo": "\\udc00", "issues": []}', "text that is not UTF-8"),
    (b'{"n": ' + b"9" * 5000 + b', "issues": []}', "a number that is too large"),
    (b'{"n": 1e999999999999999999999, "issues": []}', "a number that is too large"),
    (b'{"n": NaN, "issues": []}', "byte 6 (line 1, column 7)"),
    (b'\x1f\x8b\x08\x00{"issues": []}', "byte 0 (line 1, column 1)"),
    ('{"issues": []}'.encode("utf-16"), "Save it as UTF-8"),
    ('{"issues": []}'.encode("utf-16-le"), "Save it as UTF-8"),
    (b"[" * 100_000, "does not begin with an object"),
]


def test_a_file_that_is_no_archive_is_refused_with_the_place_and_an_empty_one_says_so(world: World, path: Path) -> None:
    for content, says in NO_ARCHIVES:
        path.write_bytes(content)
        ended = imported(path)
        assert ended.status == 1, content[:40]
        assert says in ended.err, content[:40]
    path.write_bytes(b"\xef\xbb\xbf" + archives.write(path).read_bytes())  # a byte order mark is no fault
    ended = imported(path)
    assert (ended.status, "archive without rows" in ended.out) == (0, True)


def test_a_number_of_megabytes_is_refused_before_it_is_read_to_its_end(path: Path) -> None:
    path.write_bytes(b'{"issues": [{"title": "a \\"quoted\\" 1"}, {"number": ' + b"9" * 5_000_000 + b"}]}")
    archive = Archive(path)
    with pytest.raises(ArchiveFault, match="in row 2 of issues: a number that is too large"):
        list(archive.rows())
    assert archive.consumed < 50_000


def test_a_text_of_very_many_digits_is_no_number(path: Path) -> None:
    path.write_bytes(b'{"issues": [{"title": "\\\\", "body": "\\" ' + b"9" * 100_000 + b'"}]}')
    assert [len(row.value["body"]) for row in Archive(path).rows()] == [100_002]


def test_a_missing_file_a_directory_and_an_unknown_tenant_are_named(world: World, path: Path) -> None:
    assert imported(path).err == f"There is no file {path}."
    assert imported(path.parent).err == f"{path.parent} is a directory, not an archive."
    archives.write(path)
    ended = run("import_archive", path, "--tenant", "nobody")
    assert (ended.status, ended.err) == (1, "There is no tenant with the slug 'nobody'.")


def test_a_text_that_no_item_can_hold_ends_the_reading_soon(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_reader, "TOKEN_LIMIT", 2**20)
    archives.write(path, issue(1), issue(2, body="x" * (2**20 + 100_000)))
    ended = imported(path)
    assert (ended.status, "in row 2 of issues" in ended.err) == (1, True)


def test_halves_of_characters_are_counted_wherever_the_reading_is_cut(world: World, path: Path) -> None:
    body = "\ud83d\ude00" * 4000 + "\ud83d" + "a" * 20_000 + "\ud83d" + "\\ud83d"
    archives.write(path, issue(1, body=body))
    assert "2 halves of characters" in imported(path).err


def test_a_dry_run_that_meets_a_fault_does_not_say_that_anything_is_done(world: World, path: Path) -> None:
    archives.write(path, issue(1), issue(2))
    path.write_bytes(path.read_bytes()[:-100])

    ended = imported(path, "--dry-run")

    assert (ended.status, "is done" in ended.err) == (1, False)
    assert "Nothing was written, as this is a dry run; mend the file" in ended.err
    assert sound(world) == {}


def test_what_comes_before_a_fault_is_imported_and_a_mended_file_is_continued(world: World, path: Path) -> None:
    archives.write(path, *(issue(i) for i in range(1, 11)))
    whole = path.read_bytes()
    place = whole.index(b'"number": 6') + 11
    path.write_bytes(whole[:place] + b"!" + whole[place:])

    broken = imported(path)
    assert broken.status == 1
    assert f"is damaged at byte {place:,} (line 1, column {place + 1:,}), in row 6 of issues" in broken.err
    assert "What was read before that is done" in broken.err
    assert "5 tickets new" in broken.out
    assert len(sound(world)) == 5

    path.write_bytes(whole)
    assert "5 tickets new with 0 comments, 5 unchanged" in imported(path).out
    assert world.tickets("acme", 1) == [11]


# --- rows that cannot be taken ---


# A row between good ones, here as if it were the second and number 9, and what the report says of it.
REFUSED: list[tuple[Any, str]] = [
    (None, "Row 2 of issues is nothing, not an object."),
    ([[]], "Row 2 of issues is a list, not an object."),
    ({}, "Row 2 of issues has no usable number."),
    (issue(0), "Row 2 of issues has no usable number."),
    (issue(10**15), "Row 2 of issues has no usable number."),
    (issue(True), "Row 2 of issues has no usable number."),
    (issue(9, title=5), "Issue 9 has a number as title, not a text."),
    (issue(9, body=["x"]), "Issue 9 has a list as body, not a text."),
    (issue(9, state="DRAFT\x1b[2J"), "Issue 9 has the state “DRAFT\ufffd[2J”, not OPEN, CLOSED or MERGED."),
    (issue(9, state=None), "Issue 9 has the state nothing, not OPEN, CLOSED or MERGED."),
    (issue(9, author={"login": "x"}), "Issue 9 has an object as author, not a text."),
    (issue(9, labels="bug"), "Issue 9 has a text as labels, not a list."),
    (issue(9, labels=[{"name": "bug"}]), "Issue 9 has a label that is not a text."),
    (issue(9, comments=0) | {"comments": [3]}, "Issue 9 has a number as comment 1, not an object."),
    (issue(9, createdAt=None), "Issue 9 has nothing as createdAt, not a time."),
    (issue(9, createdAt="yesterday"), "Issue 9 has “yesterday” as createdAt, which is no time."),
    (
        issue(9, createdAt="2024-02-30T00:00:00Z"),
        "Issue 9 has “2024-02-30T00:00:00Z” as createdAt, which is no time.",
    ),
    (
        issue(9, createdAt="0001-01-01T00:00:00+14:00"),
        "Issue 9 has “0001-01-01T00:00:00+14:00” as createdAt, which is no time.",
    ),
    (
        issue(9, createdAt="1969-12-31T23:59:59Z"),
        "Issue 9 has “1969-12-31T23:59:59Z” as createdAt, which cannot be.",
    ),
    (
        issue(9, createdAt="9999-12-31T23:59:59Z"),
        "Issue 9 has “9999-12-31T23:59:59Z” as createdAt, which cannot be.",
    ),
    (issue(9, updatedAt="2020-01-01T00:00:00Z"), "Issue 9 was changed before it was created."),
    (issue(9) | {"comments": [comment(1, createdAt="never")]}, "Issue 9 has “never” as createdAt of comment 1"),
    (issue(1), "Issue 1 comes twice in the archive; only the first counts."),
    (issue(9, body="x" * 410_000), "Issue 9 has a body of 400 KB; DynamoDB takes items of up to 400 KB."),
    (issue(9) | {"comments": [comment(1, body="ä" * 300_000)]}, "Issue 9 has a comment 1 of 585 KB"),
]


def test_a_row_that_cannot_be_taken_is_refused_by_name_and_the_others_are_taken(world: World, path: Path) -> None:
    rows, expected = [issue(1)], []
    for case, (row, says) in enumerate(REFUSED):
        number, position = 100 + case, len(rows) + 1
        nine = isinstance(row, dict) and row.get("number") == 9
        rows += [row | {"number": number} if nine else row, issue(1000 + case)]
        expected.append(says.replace("Issue 9 ", f"Issue {number} ").replace("Row 2 ", f"Row {position} "))
    ended = imported(archives.write(path, *rows))
    lines = ended.err.splitlines()
    assert ended.status == 3
    assert [says for says in expected if not any(line.startswith(says) for line in lines)] == []
    assert f"{len(REFUSED)} of {len(rows)} rows did not arrive in Acme as the archive has" in ended.err
    assert [*sound(world)] == [f"issue-{n:012d}" for n in (1, *range(1000, 1000 + len(REFUSED)))]
    mended = imported(archives.write(path, issue(1), issue(102)))
    assert (mended.status, "1 ticket new" in mended.out, "1 unchanged" in mended.out) == (0, True, True)


def test_a_row_nested_without_end_is_refused(world: World, path: Path) -> None:
    deep = '{"number": 9, "body": ' + "[" * 50_000 + "]" * 50_000 + "}"
    rows = ", ".join([json.dumps(issue(1)), deep, json.dumps(issue(3))])
    path.write_text(f'{{"repo": "example/project", "issues": [{rows}]}}')

    assert "Row 2 of issues is nested deeper than 40 levels." in imported(path).err
    assert len(sound(world)) == 2


def test_an_empty_comment_is_left_out_and_reported(world: World, path: Path) -> None:
    ended = imported(archives.write(path, issue(7) | {"comments": [comment(1, body=" \r\n"), comment(2)]}))

    assert "Issue 7 has nothing in comment 1, which was left out. It is ticket 1." in ended.err
    assert sound(world) == {"issue-000000000007": (1, 1)}


def test_the_largest_texts_that_fit_are_taken(world: World, path: Path) -> None:
    big = "ä" * 203_000
    ended = imported(archives.write(path, issue(7, body=big) | {"comments": [comment(1, body=big)]}))

    assert ended.status == 0, ended.err
    assert "whoever edits it must shorten it to 50,000" in ended.err
    assert sound(world) == {"issue-000000000007": (1, 1)}


def test_a_row_too_large_for_one_transaction_is_written_in_parts(world: World, path: Path) -> None:
    archives.write(path, issue(7) | {"comments": [comment(i, body="x" * 300_000) for i in range(14)]})
    with broken_at(99, "before", AssertionError()) as writes:
        ended = imported(path)

    assert ended.status == 0, ended.err
    parts = ["TransactWriteItems", "BatchWriteItem", "TransactWriteItems", "TransactWriteItems"]
    assert writes == ["UpdateItem", "UpdateItem", *parts]
    assert sound(world) == {"issue-000000000007": (1, 14)}


# --- anything at all ---

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = sorted(issue(1) | pull(1))
_ROWS = st.one_of(
    _JSON,
    st.builds(
        lambda row, field, value: row | {field: value}, st.just(issue(5, comments=2)), st.sampled_from(_FIELDS), _JSON
    ),
    st.builds(
        lambda field, value: issue(6) | {"comments": [comment(1) | {field: value}]},
        st.sampled_from(sorted(comment(1))),
        _JSON,
    ),
)
_QUIET = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    print_blob=True,
)


@_QUIET
@given(rows=st.lists(_ROWS, max_size=3))
@example(rows=[issue(1, title="\ud83d\ude00" * 150)])
@example(rows=[issue(1, labels=["#", "|", "\x00", " "])])
def test_rows_of_any_shape_are_taken_whole_or_refused(world: World, path: Path, rows: list[Any]) -> None:
    source = uuid.uuid4().hex
    ended = imported(archives.write(path, issue(1), *rows, issue(99)), "--source", source)

    assert ended.status in (0, 3)
    done = sound(world, source)
    assert {"issue-000000000001", "issue-000000000099"} <= set(done)
    assert f"{len(done)} unchanged" in imported(path, "--source", source).out


@settings(_QUIET, max_examples=15)
@given(data=st.data())
def test_files_damaged_anywhere_end_with_a_sentence(world: World, path: Path, data: st.DataObject) -> None:
    source = uuid.uuid4().hex
    archives.write(path, issue(1, comments=1), issue(2, title="Ärger"), pulls=(pull(3),))
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:place] + data.draw(st.binary(max_size=3)) + whole[place + data.draw(st.integers(0, 4)) :])
    ended = imported(path, "--source", source)

    assert ended.status in (0, 1, 3)
    assert ended.status == 0 or ended.err.strip()
    sound(world, source)
