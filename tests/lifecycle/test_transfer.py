"""A tenant is taken out as one file, and brought in again: under its own id, under another, or not at all."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.dynamo.placement import Placement
from portal.dynamo.store import Store
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Conflict, Unavailable
from portal.schema import holdings, registry
from tenants.audit_trail import browsing, chain
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import closing_mails, desk_closing, tenant_file, tenant_import
from tenants.lifecycle.stored import ARRIVING, CERTIFICATES
from tenants.sign_in import accounts
from tenants.sign_in.stored import email_key, user_key
from tenants.tenancy import tenant_directory
from tests.moving.moves import BRIDGE, move
from tests.purging.test_tenant_purge import end_reshardings
from tests.support import embedded, used_desk
from tests.support.commands import Ended, everything, run
from tests.support.folding import Follower, remember_nothing
from tests.support.searching import index_all
from tests.support.stored import unguarded
from tests.support.world import Browser, World
from tickets.desk import changing
from tickets.desk.changing import read
from tickets.moving import place_changes
from tickets.moving import stored as moving_keys
from tickets.moving.stored import MoveItem
from tickets.purging import purge_requests, tenant_purge
from tickets.sharding import hot_partitions, reshard_requests
from tickets.ticket.fields import Priority

SLUG = used_desk.SLUG


@pytest.fixture(autouse=True)
def few_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is looked for minute by minute; the desk was used in the last few."""
    used_desk.keep_to_its_minutes(monkeypatch)


@pytest.fixture
def used(tmp_path: Path) -> World:
    world = used_desk.prepared(tmp_path)
    remember_nothing()
    return world


def removed(folder: Path) -> tuple[World, bytes]:
    """The world without Umbrella, and all that it was, with all secrets."""
    world = used_desk.prepared(folder)
    path = folder / "umbrella.zip"
    assert run("export_tenant", SLUG, path, "--with-secrets").status == 0
    used_desk.remove(world.tenants["acme"].tenant_id)
    return world, path.read_bytes()


def removed_again(folder: Path) -> tuple[World, Path]:
    """The world without Umbrella, and its file, whatever was done in it since."""
    world, content = embedded.prepared("removed-desk", lambda: removed(folder))
    remember_nothing()
    path = folder / "exported.zip"
    path.write_bytes(content)
    return world, path


@pytest.fixture
def gone(tmp_path: Path) -> tuple[World, Path]:
    return removed_again(tmp_path)


@pytest.fixture
def file(gone: tuple[World, Path]) -> Path:
    return gone[1]


def imported(path: Path, *options: str) -> Ended:
    return run("import_tenant", path, *options)


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def snapshot(tenant_id: str) -> dict[str, list[dict[str, Any]]]:
    """What an export holds of a tenant, by holding."""
    found: dict[str, list[dict[str, Any]]] = {}
    for holding in holdings.holdings():
        if not holding.left_out:
            items = [stored.item for stored in holding.find(used_desk.TenantReader(tenant_id))]
            found[holding.name] = sorted(items, key=lambda item: json.dumps(item, sort_keys=True, default=repr))
    return found


def all_items() -> dict[str, list[dict[str, Any]]]:
    return {table.name: everything(table) for table in registry.tables()}


def pages(world: World, slug: str) -> list[str]:
    """What Alice sees of the desk: its tickets, one of them, the dashboard, members and what a search finds."""
    index_all()
    Follower().fold()
    browser: Browser = world.browser("alice")
    tenant_id = tenant_directory.find(slug).tenant_id
    browser.enter(tenant_id)
    paths = ("tickets/?status=resolved", "tickets/1/", "desk/", "desk/members/", "search/?q=printer")
    return [main_of(browser.get(f"/{slug}/{path}").content.decode(), slug) for path in paths]


def main_of(page: str, slug: str) -> str:
    """The main part of a page, without what says how old its numbers are and what each rendering has anew."""
    inner = page[page.index("<main") : page.index("</main>")]
    moments = re.sub(r'<time datetime="([^"]*)"[^>]*>.*?</time>', r" \1 ", inner)  # not how long ago they were
    texts = re.sub(r"<[^>]*>", " ", moments).replace(slug, "desk")
    return " ".join(re.sub(r"(?s)(Counted|Up to|as of).*?(ago|now|UTC|\+00:00)", "", texts).split())


def rewritten(path: Path, entry: str, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    """The same archive with other lines in one entry, its name given by a part of it."""
    to = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if entry in name:
                content = b"".join(change(content.splitlines(keepends=True)))
            new.writestr(name, content)
    return to


def test_what_was_exported_and_removed_is_the_same_again(used: World, tmp_path: Path) -> None:
    acme = used.tenants["acme"].tenant_id
    seen = pages(used, SLUG)
    path = tmp_path / "umbrella.zip"
    exported = run("export_tenant", SLUG, path, "--with-secrets")
    assert exported.status == 0
    before = snapshot(acme)
    made = [row for row in before["audit trail"] if row["origin"]["S"] == "export_tenant"]
    assert [(row["action"]["S"], json.loads(row["after"]["S"])) for row in made] == [
        ("export.made", {"of": "with secrets"})
    ]
    used_desk.remove(acme)
    remember_nothing()

    ended = imported(path)

    assert (ended.status, ended.out.splitlines()[0]) == (0, f"Umbrella is here as umbrella, with the id {acme}.")
    assert ended.err.split(".")[0] == exported.err.split(" of Umbrella")[0], "both count the same items"
    after = snapshot(acme)
    (told,) = [row for row in after["audit trail"] if row not in before["audit trail"]]
    assert told["action"]["S"] == "tenant.imported"
    for name in before.keys() - {"audit trail", "ends of the audit chain", "tenant"}:
        # A file on its way to a ticket goes after a day, and with no export.
        assert after[name] == [row for row in before[name] if name != "files" or "expires_at" not in row], name
    assert run("verify_audit", "--tenant", SLUG).status == 0
    assert pages(used, SLUG) == seen


def test_under_another_id_all_is_there_and_the_former_id_only_in_the_row_that_says_so(gone: tuple[World, Path]) -> None:
    used, file = gone
    old = used.tenants["acme"].tenant_id
    assert imported(file, "--as", "copy", "--new-id").status == 0

    copy = tenant_directory.find("copy")
    assert copy.tenant_id != old
    assert run("verify_audit", "--tenant", "copy").status == 0
    named = [item for items in all_items().values() for item in items if old in json.dumps(item, default=repr)]
    ours = [item for item in named if copy.tenant_id in json.dumps(item, default=repr)]
    (row,) = [item for item in ours if "action" in item]
    assert json.loads(row["after"]["S"])["former_id"] == old
    assert "The printer" in pages(used, "copy")[1]
    assert snapshot(copy.tenant_id)["API keys"] == []


def test_an_import_that_is_broken_off_anywhere_goes_on(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    used, file = gone
    acme = used.tenants["acme"].tenant_id
    send = tenant_import.TenantImport._send
    join = tenant_import.arriving_rows.join
    calls: Iterator[int] = iter(range(10**6))
    breaks = {0, 2, 5, 7, 8, 9, 11}

    def broken(*arguments: Any, then: Any = send) -> Any:
        made = then(*arguments)
        if next(calls) in breaks:
            raise Unavailable("The database cannot be reached.")
        return made

    monkeypatch.setattr(tenant_import, "_NOTED_EVERY", 1)
    monkeypatch.setattr(tenant_import, "BATCH_WRITE_LIMIT", 4)
    monkeypatch.setattr(tenant_import.TenantImport, "_send", broken)
    monkeypatch.setattr(tenant_import.arriving_rows, "join", lambda *a: broken(*a, then=join))
    statuses = []
    while not statuses or (statuses[-1] and len(statuses) < 20):
        statuses.append(imported(file).status)
    assert statuses == [1] * (len(statuses) - 1) + [0]
    assert len(statuses) > len(breaks) / 2
    assert run("verify_audit", "--tenant", SLUG).status == 0
    with zipfile.ZipFile(file) as archive:
        entries = json.loads(archive.read("manifest.json"))["entries"]
    apart = {
        "audit trail",
        "contents of files",
        "letters as they came",
    }  # of objects the file has parts, and the snapshot nothing
    lines = {entry["holding"]: entry["lines"] for entry in entries if entry["holding"] not in apart}
    assert lines == {name: len(items) for name, items in snapshot(acme).items() if name not in apart}
    assert tenant_directory.find(SLUG).tenant_id == acme


def left(before: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The tables that have something that was not there before, but for the accounts of people and the certificate."""
    known = {name: [repr(item) for item in items] for name, items in before.items()}
    new = [(name, item) for name, items in all_items().items() for item in items if repr(item) not in known[name]]
    return [name for name, item in new if SLUG in repr(item) and item.get("kind", {}).get("S") != CERTIFICATES]


def test_an_import_that_was_broken_off_is_given_up_and_the_short_name_is_free(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CERTIFICATE_KEY = "11" * 32
    monkeypatch.setattr(tenant_purge, "SETTLE_SECONDS", 0.0)
    _, file = gone
    before, follower = all_items(), Follower()
    with monkeypatch.context() as broken:
        broken.setattr(tenant_import.TenantImport, "_end", interrupted)
        assert imported(file).status == 130
    with monkeypatch.context() as broken:
        broken.setattr(tenant_purge.TenantPurge, "_check", interrupted)
        with follower.following():
            assert run("import_tenant", "--abandon", SLUG).status == 130
    assert "This tenant is being purged." in imported(file).err
    with follower.following():
        ended = run("import_tenant", "--abandon", SLUG)
    assert (ended.status, "The import of umbrella is given up." in ended.out) == (0, True), ended.err
    assert left(before) == []
    assert imported(file).status == 0


def test_an_import_of_which_nothing_is_here_gives_its_short_name_back(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (used, file), before = gone, all_items()

    def own_tables() -> list[str]:
        names: list[str] = unguarded().dispatch("ListTables", {})["TableNames"]
        return [name for name in names if used.tenants["acme"].tenant_id in name]

    with monkeypatch.context() as broken:
        broken.setattr("tenants.lifecycle.tenant_import.tenant_lifecycle.write_new", interrupted)
        assert imported(file, "--on", "bridge").status == 130
    assert (all_items() != before, own_tables() != []) == (True, True)
    ended = run("import_tenant", "--abandon", SLUG, "--on", "bridge")
    assert (ended.status, "Nothing of it was here" in ended.out) == (0, True), ended.err
    assert (all_items(), own_tables()) == (before, [])
    assert "No import of umbrella is under way." in run("import_tenant", "--abandon", SLUG).err


def test_while_a_tenant_arrives_it_is_neither_moved_nor_spread_anew_nor_closed(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    used, file = gone
    with monkeypatch.context() as broken:
        broken.setattr(tenant_import.TenantImport, "_end", interrupted)
        assert imported(file).status == 130
    before = all_items()
    for command in (("place_tenant", SLUG, "--on=bridge"), ("close_tenant", SLUG)):
        ended = run(*command)
        assert (ended.status, "Umbrella is being brought in." in ended.err) == (1, True), (command, ended)
    acme = used.tenants["acme"].tenant_id
    with pytest.raises(Conflict, match="is being brought in"):
        reshard_requests.begin(tenant_directory.get(acme), shards=8, by=SYSTEM)
    assert hot_partitions.ask([hot_partitions.Heat(acme, "OPEN", 0, 900)], [], hot=500) == []
    late = MoveItem(moving_keys.MOVES, acme, tenant_id=acme, move_id="1", from_place="pool", to_place="bridge")
    with pytest.raises(Conflict):  # a move that was asked for before the tenant was deleted
        place_changes.announce(late)
    assert all_items() == before

    assert imported(file).status == 0
    assert run("close_tenant", SLUG).status == 0


def broken_off_before_the_tenant(file: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(tenant_import.TenantImport, "_people", interrupted)
        assert imported(file, *options).status == 130


def test_an_import_goes_on_only_into_a_tenant_that_it_has_made_itself(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    used, file = gone
    acme = used.tenants["acme"].tenant_id
    options = ("--as", "one", "--on", "bridge")
    broken_off_before_the_tenant(file, monkeypatch, *options)
    without_note = all_items_but("one")
    assert imported(file, "--as", "two", "--on", "bridge").status == 0
    used.tenants["acme"] = tenant_directory.get(acme)
    alice = used.context("alice", "acme")
    changing.edit(
        alice, 1, version=read(alice, 1).version, title="Since", description="", priority=Priority.LOW, tags=[]
    )
    assert all_items_but("one") != without_note
    before = all_items()

    again = imported(file, *options)
    assert (again.status, "this import has not made it" in again.err) == (1, True), again
    assert all_items() == before

    before = all_items_but("one")
    given_up = run("import_tenant", "--abandon", "one", "--on", "bridge")
    assert (given_up.status, "A desk that has its id stays." in given_up.out) == (0, True), given_up
    assert all_items() == before
    assert read(alice, 1).title == "Since"


def all_items_but(slug: str) -> dict[str, list[dict[str, Any]]]:
    """All items without the note of the import under this short name."""
    return {
        name: [item for item in items if (item.get("kind"), item.get("name")) != ({"S": ARRIVING}, {"S": slug})]
        for name, items in all_items().items()
    }


def meanwhile(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, do: Callable[[], object]) -> None:
    """Let a run stand still before its first call of a function, until something else has been done."""
    real, calls = getattr(where, name), iter([do])

    def stalled(*arguments: Any, **named: Any) -> Any:
        next(calls, lambda: None)()
        return real(*arguments, **named)

    monkeypatch.setattr(where, name, stalled)


def test_an_import_that_stalls_before_it_makes_the_tenant_leaves_the_desk_of_another_as_it_is(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file = gone
    found: list[Any] = []

    def brought_in() -> None:
        assert imported(file, "--as", "two").status == 0
        found.append(all_items())

    meanwhile(monkeypatch, tenant_import.TenantImport, "_make", brought_in)
    ended = imported(file, "--as", "one")
    assert (ended.status, "Another import has brought a desk" in ended.err) == (1, True), ended
    assert found == [all_items()]


def test_an_import_that_is_given_up_while_it_makes_the_tenant_makes_none(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file = gone
    before = all_items()
    given_up: list[Ended] = []
    meanwhile(
        monkeypatch,
        tenant_import.tenant_lifecycle,
        "write_new",
        lambda: given_up.append(run("import_tenant", "--abandon", SLUG)),
    )
    ended = imported(file)
    assert ([one.status for one in given_up], ended.status) == ([0], 1)
    assert "This import was given up" in ended.err
    assert all_items() == before


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    ("where", "name"),
    [
        (tenant_import.TenantImport, "_send"),
        (tenant_import.arriving_rows, "bring_in_trail"),
        (tenant_import.TenantImport, "_end"),
    ],
)
def test_of_two_runs_of_one_import_the_older_one_writes_no_more(
    gone: tuple[World, Path], monkeypatch: pytest.MonkeyPatch, where: Any, name: str, is_whole: bool
) -> None:
    _, file = gone
    found: list[Any] = []

    def another_run() -> None:
        with monkeypatch.context() as broken:
            if not is_whole:
                broken.setattr("tenants.lifecycle.tenant_import.recording.commit", interrupted)
            assert imported(file).status == (0 if is_whole else 130)
        found.append(all_items())

    meanwhile(monkeypatch, where, name, another_run)
    ended = imported(file)
    assert (ended.status, "or another run goes on with it" in ended.err) == (1, True), ended
    assert found == [all_items()]
    assert imported(file).status == (1 if is_whole else 0)


def test_a_tenant_arrives_in_tables_of_its_own_and_leaves_them_again(gone: tuple[World, Path]) -> None:
    used, file = gone
    assert imported(file, "--on", "bridge").status == 0
    tenant = tenant_directory.find(SLUG)
    assert tenant.placement == "bridge"
    reader = TenantReader(tenant.tenant_id, Placement("bridge"))
    tickets = [stored for h in holdings.holdings() if h.name == "tickets" for stored in h.find(reader)]
    assert {stored.placement for stored in tickets} == {"bridge"}
    assert b"The printer" in used.browser("alice", "acme").get("/tickets/1/").content

    back = file.with_name("back.zip")
    assert run("export_tenant", SLUG, back).status == 0
    lines = [json.loads(zipfile.ZipFile(path).read("manifest.json"))["entries"] for path in (file, back)]
    by_name = [{entry["holding"]: entry["lines"] for entry in entries} for entries in lines]
    assert by_name[0]["tickets"] == by_name[1]["tickets"] == len(tickets) > 5


# Entries whose lines are not as they were written, and what is said of each.
SPOILT: list[tuple[str, Callable[[list[bytes]], list[bytes]], str]] = [
    ("tickets", lambda lines: [lines[0], lines[1].replace(b'"S":"', b'"S":"x', 1), *lines[2:]], "Line 2 of"),
    ("tickets", lambda lines: [lines[0].replace(b'"item"', b'"itom"'), *lines[1:]], "Line 1 of"),
    ("members", lambda lines: lines[:-1], "there should be"),
    ("members", lambda lines: lines[::-1], "is not what the manifest says"),
    ("members", lambda lines: [*lines, *lines[-1:] * 1000], "where it should end"),  # a bomb
    ("members", lambda lines: [b"[" * 200_000 + b"\n", *lines[1:]], "Line 1 of"),  # nested without end
    ("audit-trail", lambda lines: lines[:-1], "there should be"),
    ("manifest", lambda lines: [b"{}"], "no manifest"),
    ("manifest", lambda lines: [b"".join(lines).replace(b'"version": 1', b'"version": 2')], "version 2"),
]


def test_a_file_that_is_not_as_it_was_written_is_refused_by_its_line_and_nothing_is_written(file: Path) -> None:
    before = all_items()
    for entry, change, said in SPOILT:
        ended = imported(rewritten(file, entry, change))
        assert (ended.status, said in ended.err) == (1, True), (said, ended)
    assert all_items() == before


def forged(path: Path, entry: str, change: Callable[[list[dict[str, Any]]], None], **told: Any) -> Path:
    """The same archive with other rows in one entry, and every hash as it has to be: what a forger makes."""
    to = path.with_name("forged.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        manifest = json.loads(old.read("manifest.json")) | told
        for one in manifest["entries"]:
            content = old.read(one["name"])
            if one["holding"] == entry:
                rows = [json.loads(line) for line in content.splitlines()]
                change(rows)
                content = b"".join(map(as_line, rows))
                one |= {"lines": len(rows), "sha256": hashlib.sha256(content).hexdigest()}
            new.writestr(one["name"], content)
        new.writestr("manifest.json", json.dumps(manifest))
    return to


def as_line(row: dict[str, Any]) -> bytes:
    """A row with its hash, in ASCII: a forger may write halves of characters."""
    return json.dumps({**row, "sum": tenant_file._sum(row["table"], row["item"])}).encode() + b"\n"


def of_another(name: str) -> Callable[[list[dict[str, Any]]], None]:
    """Put another tenant's id into one attribute of the last row, with the hash that fits where rows are chained."""

    def change(rows: list[dict[str, Any]]) -> None:
        last = next(row for row in reversed(rows) if name in row["item"])["item"]
        last[name] = {"S": last[name]["S"].replace(last["tenant_id"]["S"], "0" * 32)}
        if "previous" in last:
            was, last["hash"] = last["hash"]["S"], {"S": chain.hash_of(last)}
            for row in rows:
                if row["item"]["hash"]["S"] == was:
                    row["item"]["hash"] = last["hash"]

    return change


def to_item(**values: Any) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[-1]["item"] |= values

    return change


# Entries that somebody has forged, and what is said of each.
FORGED: list[tuple[str, Callable[[list[dict[str, Any]]], Any], str]] = [
    ("audit trail", of_another("tenant_actor"), "is another tenant's"),
    ("audit trail", lambda rows: [row["item"].update(tenant_id={"S": "0" * 32}) for row in rows], "is another"),
    ("tenant", to_item(tenant_id={"S": "0" * 32}), "is another tenant's"),
    ("tenant", to_item(status={"S": "purging"}), "is no tenant that can be here"),
    ("tenant", lambda rows: rows.append(rows[0]), "2 tenants"),
    ("tickets", lambda rows: rows[-1].update(table="Platform.Users"), "is of a table"),
    ("tickets", to_item(tenant_status={"S": "0" * 32 + "#OPEN#0"}), "is another tenant's"),
    ("members", to_item(role={"S": "emperor"}), "has a role that nobody has"),
    ("members", to_item(email={"S": ""}), "has not the form"),
    ("members", to_item(user_id={"N": "7"}), "has not the form"),
]


def test_what_a_forger_has_put_into_a_file_is_refused_before_anything_is_written(file: Path) -> None:
    before = all_items()
    for entry, change, said in FORGED:
        ended = imported(forged(file, entry, change))
        assert (ended.status, said in ended.err) == (1, True), (entry, said, ended)
    assert all_items() == before


def test_a_file_that_calls_itself_the_platform_is_refused(file: Path) -> None:
    for tenant_id in ("0" * 32, "platform", 7, None):
        ended = imported(forged(file, "tenant", lambda rows: None, tenant_id=tenant_id), "--new-id")
        assert (ended.status, "manifest" in ended.err) == (1, True), (tenant_id, ended)


def test_a_file_that_ends_in_its_midst_is_refused_and_a_row_that_is_there_twice_is_written_once(file: Path) -> None:
    short = file.with_name("short.zip")
    short.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    ended = imported(short)
    assert (ended.status, "no whole file" in ended.err) == (1, True)
    assert imported(file.with_name("none.zip")).status == 1
    ended = imported(forged(file, "tickets", lambda rows: rows.append(rows[-1])))
    assert ended.status == 0, ended.err


def test_without_secrets_the_file_has_none_and_endpoints_wait_for_new_ones(used: World, tmp_path: Path) -> None:
    acme = used.tenants["acme"].tenant_id
    before = snapshot(acme)
    secrets = [item[name]["S"] for item in before["webhook secrets"] for name in ("current",)]
    secrets += [item["digest"]["S"] for item in before["API keys"]]
    assert len(secrets) == 2
    path = tmp_path / "plain.zip"
    assert run("export_tenant", SLUG, path).status == 0
    with zipfile.ZipFile(path) as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist())
    assert [secret for secret in secrets if secret.encode() in whole] == []

    used_desk.remove(acme)
    ended = imported(path)
    assert "Left out: 1 of the API keys." in ended.out
    after = snapshot(acme)
    assert [(item["state"]["S"], "secret" in item["paused_because"]["S"]) for item in after["endpoints"]] == [
        ("paused", True)
    ]
    assert after["webhook secrets"][0]["current"]["S"] not in secrets
    assert "subscriptions" not in after["tenant"][0]


def test_who_has_no_account_here_gets_one_without_a_password_and_with_the_same_id(gone: tuple[World, Path]) -> None:
    used, file = gone
    vera = used.users["vera"]
    for key in (user_key(vera.id), email_key(vera.email)):
        unguarded().dispatch(
            "DeleteItem", {"TableName": accounts.AccountItem.table.full_name, "Key": {"pk": {"S": key}}}
        )
    ended = imported(file)
    assert "vera@example.com has a new account, without a password." in ended.out
    found = accounts.find_by_email(vera.email)
    assert found is not None
    assert (found.id, found.has_usable_password()) == (vera.id, False)
    assert "Vera Example" in pages(used, SLUG)[3]


def test_a_tenant_that_is_here_is_not_replaced_and_an_export_stands_under_its_name_when_it_is_whole(
    used: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "umbrella.zip"
    run("export_tenant", SLUG, path)
    assert "There is a tenant with the slug umbrella already" in imported(path).err
    assert "--new-id" in imported(path, "--as", "other").err
    path.unlink()
    monkeypatch.setattr("tenants.lifecycle.tenant_file.TenantFileWriter.end", interrupted)
    assert run("export_tenant", SLUG, path).status == 130
    assert list(tmp_path.glob("umbrella*")) == []


def test_an_export_during_which_the_desk_moves_leaves_no_file_and_says_so(
    used: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_reshardings()
    write = tenant_file.TenantFileWriter.write

    def moved_first(writer: Any, holding: str, items: Any) -> int:
        if holding == "tickets":
            move(used, BRIDGE)
        return write(writer, holding, items)

    monkeypatch.setattr(tenant_file.TenantFileWriter, "write", moved_first)
    path = tmp_path / "umbrella.zip"
    ended = run("export_tenant", SLUG, path)
    assert (ended.status, "was moved to another place while it was exported" in ended.err) == (1, True), ended
    assert list(tmp_path.glob("umbrella*")) == []
    monkeypatch.setattr(tenant_file.TenantFileWriter, "write", write)
    assert run("export_tenant", SLUG, path).status == 0


def test_an_export_during_which_the_desk_is_purged_leaves_no_file_and_none_begins_after(
    used: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CERTIFICATE_KEY = "11" * 32
    end_reshardings()
    write, tenant = tenant_file.TenantFileWriter.write, tenant_directory.find(SLUG)

    def purged_first(writer: Any, holding: str, items: Any) -> int:
        if holding == "tickets":
            desk_closing.close(tenant.tenant_id, by=SYSTEM, write=closing_mails.to_owners, days=0)
            purge_requests.begin(tenant_directory.find(SLUG), by=SYSTEM)
        return write(writer, holding, items)

    monkeypatch.setattr(tenant_file.TenantFileWriter, "write", purged_first)
    path = tmp_path / "umbrella.zip"
    for _ in range(2):
        ended = run("export_tenant", SLUG, path)
        assert (ended.status, "is being deleted: what is left of it" in ended.err) == (1, True), ended
        assert list(tmp_path.glob("umbrella*")) == []


def test_no_file_is_written_over_and_the_trail_tells_of_no_export_that_could_not_be_written(
    used: World, tmp_path: Path
) -> None:
    path = tmp_path / "umbrella.zip"
    path.write_bytes(b"somebody else's")
    for where in (path, tmp_path / "nowhere" / "umbrella.zip"):
        ended = run("export_tenant", SLUG, where)
        assert (ended.status, "cannot be written" in ended.err) == (1, True)
    assert path.read_bytes() == b"somebody else's"
    rows = browsing.everything(Store("tenant", used.tenants["acme"].tenant_id), only=browsing.TrailFilter())
    assert [row for row in rows if row.action == "export.made" and row.origin == "export_tenant"] == []


def test_two_exports_to_one_file_at_once_leave_one_whole_file(
    used: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, end, ended = tmp_path / "umbrella.zip", tenant_file.TenantFileWriter.end, list[Ended]()

    def another_first(writer: Any, manifest: Any) -> None:
        monkeypatch.setattr("tenants.lifecycle.tenant_file.TenantFileWriter.end", end)
        ended.append(run("export_tenant", SLUG, path))
        end(writer, manifest)

    monkeypatch.setattr("tenants.lifecycle.tenant_file.TenantFileWriter.end", another_first)
    ended.append(run("export_tenant", SLUG, path, "--with-secrets"))
    assert [one.status for one in ended] == [0, 0], ended
    assert [one.name for one in tmp_path.glob("umbrella*")] == ["umbrella.zip"]
    with tenant_file.reading(path) as file:
        file.check()
        assert file.manifest.with_secrets  # it ended last
    assert path.stat().st_mode & 0o077 == 0


def test_binary_values_are_the_same_again_wherever_they_stand_and_whatever_an_attribute_is_called(
    tmp_path: Path,
) -> None:
    inner = {"B": {"S": "a text"}, "BS": {"L": [{"B": b"\xff"}]}, "x": {"BS": [b"", b"\x00"]}}
    item = {"pk": {"S": "k"}, "B": {"B": b"\x00\x01"}, "map": {"M": inner}}
    with tenant_file.writing(tmp_path / "one.zip") as writer:
        writer.write("tickets", [("Support.Tickets", item)])
        writer.end(tenant_file.Manifest("a" * 32, "acme", "Acme", "", True, tuple(writer.entries), {}))
    with tenant_file.reading(tmp_path / "one.zip") as file:
        file.check()
        assert [found for _, _, found in file.items(file.manifest.entries[0])] == [item]
