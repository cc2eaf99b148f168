"""The evidence of a desk: its pages, its export, and the script that verifies it without the product."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.test import Client

from portal import clock
from tenants.audit_trail import chain, recording
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.auditing import access_review, verify_audit_export
from tenants.auditing.verify_audit_export import EvidenceFault
from tenants.lifecycle import certificates
from tenants.membership import member_changes
from tenants.membership.stored import MemberItem
from tenants.tenancy.context import Role
from tests.auditing.test_auditors import audit, sentences
from tests.support.api_keys import make_key
from tests.support.commands import run
from tests.support.stored import put_all
from tests.support.world import World

Files = dict[str, bytes]


def downloaded(browser: Any) -> bytes:
    """The evidence that this browser downloads."""
    answer = browser.send("/desk/evidence/download/")
    assert answer["Content-Type"] == "application/zip"
    return b"".join(answer.streaming_content)


def exported(browser: Any) -> Files:
    """The files of the evidence that this browser downloads."""
    with zipfile.ZipFile(io.BytesIO(downloaded(browser))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: Files) -> zipfile.ZipFile:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return zipfile.ZipFile(made)


def keys() -> dict[str, bytes]:
    return verify_audit_export.read_keys(Client().get("/.well-known/pooldesk-keys.json").content.decode())


def lines(files: Files) -> list[Any]:
    return [json.loads(line) for line in files["audit-trail.jsonl"].splitlines()]


def with_lines(files: Files, rows: list[Any]) -> Files:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    return {**files, "audit-trail.jsonl": text.encode()}


@pytest.fixture(autouse=True)
def key(settings: Any) -> None:
    settings.CERTIFICATE_KEY = "5eed" * 16


_made: list[Files] = []


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Files:
    """The files of an export, made once for all tamperings."""
    if not _made:
        world: World = request.getfixturevalue("world")
        alice = world.context("alice", "acme")
        by = recording.Actor(alice.user_id, "alice@example.com", "test")
        for number in range(30):
            entry = AuditEntry(alice.tenant_id, AuditAction.MEMBER_INVITED, by, "invitation", f"{number}", "x")
            recording.record(entry)
        _made.append(exported(audit(world)))
    return _made[0]


def test_an_auditor_downloads_evidence_that_the_script_alone_verifies(world: World, tmp_path: Path) -> None:
    ada = audit(world)
    (tmp_path / "evidence.zip").write_bytes(downloaded(ada))
    with zipfile.ZipFile(tmp_path / "evidence.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    (tmp_path / "keys.json").write_bytes(Client().get("/.well-known/pooldesk-keys.json").content)
    (tmp_path / "verify.py").write_bytes(Client().get("/.well-known/verify_audit_export.py").content)
    # Without site packages and without our own: the script needs nothing but Python.
    command = [sys.executable, "-I", "-S", "verify.py", "keys.json", "evidence.zip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rows = len(lines(files))
    desk = f"(acme, {world.tenants['acme'].tenant_id})"
    assert f"whole and unaltered. Evidence of the desk Acme {desk}" in done.stdout
    assert f"{rows} rows of the audit trail, chain intact" in done.stdout
    assert sentences(world)[0] == "ada@audit.example exported the evidence for auditors"
    assert lines(files)[-1]["row"]["action"]["S"] == "export.made"
    assert json.loads(files["manifest.json"])["rows"] == rows


def _altered(files: Files) -> Files:
    rows = lines(files)
    rows[11]["row"]["actor_email"] = {"S": "mallory@example.com"}
    return with_lines(files, rows)


def _of_partition(files: Files) -> list[Any]:
    """The rows of the fullest chain partition, in order."""
    of: dict[str, list[Any]] = {}
    for row in lines(files):
        of.setdefault(row["row"]["partition"]["S"], []).append(row)
    return sorted(max(of.values(), key=len), key=lambda row: int(row["row"]["sequence"]["N"]))


def _is(row: Any, other: Any) -> bool:
    return bool(row["row"]["timestamp_event_id"] == other["row"]["timestamp_event_id"])


def _without(number: int) -> Callable[[Files], Files]:
    return lambda files: with_lines(files, [r for r in lines(files) if not _is(r, _of_partition(files)[number])])


def _rehashed(files: Files) -> Files:
    """A row altered by somebody who knows how the chain is made, and computes it anew from there."""
    chained, rows = _of_partition(files), lines(files)
    previous, forged = "", {}
    for number, one in enumerate(chained):
        row = dict(one["row"])
        if number:
            row["actor_email"] = {"S": "mallory@example.com"}
            row["previous"] = {"S": previous}
        row["hash"] = {"S": chain.hash_of(row)}
        previous = row["hash"]["S"]
        forged[row["timestamp_event_id"]["S"]] = {"row": row}
    return with_lines(files, [forged.get(r["row"]["timestamp_event_id"]["S"], r) for r in rows])


def _replaced(files: Files) -> Files:
    """A row in the middle replaced by one that fits its own hash, and no row behind it."""
    one = _of_partition(files)[1]["row"]
    forged = {**one, "actor_email": {"S": "mallory@example.com"}}
    forged["hash"] = {"S": chain.hash_of(forged)}
    return with_lines(files, [{"row": forged} if row["row"] == one else row for row in lines(files)])


def _twice(files: Files) -> Files:
    return with_lines(files, [*lines(files), lines(files)[3]])


def _signed_by_another(files: Files) -> Files:
    said = json.loads(files["manifest.json"])
    facts = {name: value for name, value in said.items() if name not in ("version", "key", "signature")}
    return {**files, "manifest.json": certificates.sign(facts, Ed25519PrivateKey.generate())}


def _claimed(files: Files) -> Files:
    """Signed by another key under the name of ours."""
    said = json.loads(files["manifest.json"])
    forged = json.loads(_signed_by_another(files)["manifest.json"]) | {"key": said["key"]}
    return {**files, "manifest.json": (json.dumps(forged, sort_keys=True, indent=2) + "\n").encode()}


TAMPERINGS: dict[str, tuple[Callable[[Files], Files], str]] = {
    "a row is altered": (_altered, r"Row \d+ of chain partition \d \(line 12 of audit-trail.jsonl\), of 20.*altered"),
    "a row is removed": (
        _without(1),
        r"Row 2 of .* is missing\. It was after line \d+ of 20\S+ and before line \d+ of 20",
    ),
    "the last row is removed": (_without(-1), r"Row \d+ of chain partition \d is missing\."),
    "a row in the middle is replaced": (_replaced, r"Row 3 of chain .* does not follow the row before it: one of them"),
    "rows are hashed anew": (_rehashed, r"Row \d+ of chain partition \d was replaced: it is not the last row"),
    "a row stands there twice": (_twice, r"Row \d+ of .*\(line \d+ of.*was inserted: line 4 is the same row"),
    "rows stand in another order": (lambda f: with_lines(f, lines(f)[::-1]), "audit-trail.jsonl was changed after"),
    "the review is changed": (
        lambda f: {**f, "access-review.csv": f["access-review.csv"].replace(b"owner", b"agent")},
        "access-review.csv was changed after it was signed",
    ),
    "a file is added": (lambda f: {**f, "more.txt": b""}, "more.txt was added"),
    "a file is removed": (
        lambda f: {name: content for name, content in f.items() if name != "access-review.json"},
        "access-review.json is missing",
    ),
    "the manifest is changed": (
        lambda f: {**f, "manifest.json": f["manifest.json"].replace(b'"rows": ', b'"rows":  ', 1)},
        "manifest.json was changed after it was signed",
    ),
    "somebody else signs": (_signed_by_another, "names the key '[0-9a-f]{16}', which is not among the keys"),
    "somebody else signs as we": (_claimed, "manifest.json was changed after it was signed, or not signed with"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampering_is_noticed_and_named(evidence: Files, name: str) -> None:
    assert "whole and unaltered" in verify_audit_export.check_export(zipped(evidence), keys())
    tamper, sentence = TAMPERINGS[name]
    with pytest.raises(EvidenceFault, match=sentence):
        verify_audit_export.check_export(zipped(tamper(evidence)), keys())


def test_a_row_that_is_altered_where_it_is_stored_is_named_by_the_page_and_the_script(world: World) -> None:
    ada, alice = audit(world), world.context("alice", "acme")
    page = ada.send("/desk/evidence/verify/").content.decode()
    assert "entries were read: the chain is intact" in page
    (row, *_) = alice.repository.query(recording.AuditItem, recording.keys.tenant, limit=1).items
    row.actor_email = "mallory@example.com"
    put_all([row])
    page = ada.send("/desk/evidence/verify/").content.decode()
    assert "The chain is broken" in page
    assert f"Chain partition {row.partition}, row 1: altered" in page
    with pytest.raises(EvidenceFault, match=f"Row 1 of chain partition {row.partition} .*was altered"):
        verify_audit_export.check_export(zipped(exported(ada)), keys())
    assert [one for one in sentences(world) if "verified" in one] == ["ada@audit.example verified the audit trail"] * 2


def test_rows_about_an_erased_person_are_withheld_and_their_hashes_hold(world: World) -> None:
    alice = world.context("alice", "acme")
    by = recording.Actor(alice.user_id, "alice@example.com", "test")
    about = ("invitation", "1", "paula@example.org")
    recording.record(AuditEntry(alice.tenant_id, AuditAction.MEMBER_INVITED, by, *about))
    assert run("erase_person", "acme", "paula@example.org").status == 0
    files = exported(audit(world))
    assert b"paula@example.org" not in b"".join(files.values())
    assert json.loads(files["manifest.json"])["withheld"] == 1
    assert "of 1 of them, about erased people, is withheld" in verify_audit_export.check_export(zipped(files), keys())
    (line,) = [row["withheld"] for row in lines(files) if "withheld" in row]
    assert line["entity"].startswith("Erased person ")


def test_the_script_knows_ed25519_as_the_library_does() -> None:
    """Of right signatures, and of each part of one changed in one bit."""
    for size in (0, 1, 200):
        key, message = Ed25519PrivateKey.generate(), os.urandom(size)
        public, signature = key.public_key().public_bytes_raw(), key.sign(message)
        assert verify_audit_export.is_signed(message, signature, public)
        for at in (0, 31, 32, 63):
            changed = bytearray(signature)
            changed[at] ^= 1
            assert not verify_audit_export.is_signed(message, bytes(changed), public)
        assert not verify_audit_export.is_signed(message + b" ", signature, public)
        above = int.from_bytes(signature[32:], "little") + verify_audit_export.ORDER
        assert not verify_audit_export.is_signed(message, signature[:32] + above.to_bytes(32, "little"), public)


def test_the_script_verifies_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = Ed25519PrivateKey.generate()
    (tmp_path / "certificate.json").write_bytes(certificates.sign({"number": 1}, key))
    public = key.public_key().public_bytes_raw().hex()
    assert verify_audit_export.main([public, str(tmp_path / "certificate.json")]) == 0
    assert verify_audit_export.main(["0" * 64, str(tmp_path / "certificate.json")]) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.endswith(f"unaltered. A certificate, signed by the key {certificates.key_id(key.public_key())}.")
    assert "NOT GOOD" in bad


def test_a_name_with_a_star_stands_for_all_files_that_fit_and_a_csv_is_told_to_be_unsigned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = Ed25519PrivateKey.generate()
    for name in ("evidence-b.zip", "evidence-a.zip"):
        (tmp_path / name).write_bytes(certificates.sign({"number": 1}, key))
    (tmp_path / "audit.csv").write_text("time (UTC),person\n")
    public = key.public_key().public_bytes_raw().hex()
    assert verify_audit_export.main([public, str(tmp_path / "evidence-*.zip"), str(tmp_path / "audit.csv")]) == 1
    first, second, csv = capsys.readouterr().out.splitlines()
    assert [Path(line.partition(":")[0]).name for line in (first, second)] == ["evidence-a.zip", "evidence-b.zip"]
    assert csv.endswith("A CSV is not signed.")


def test_evidence_says_where_the_keys_are_published_and_whether_everybody_can_sign(world: World, settings: Any) -> None:
    ada = audit(world)
    page = ada.get("/desk/evidence/").content.decode()
    assert "has not said where else they are published" in page
    assert "its signatures prove nothing" not in page
    settings.KEYS_PUBLISHED_AT = "https://status.example/keys"
    settings.CERTIFICATE_KEY = settings.DEVELOPMENT_CERTIFICATE_KEY
    page = ada.get("/desk/evidence/").content.decode()
    assert 'href="https://status.example/keys"' in page
    assert "its signatures prove nothing" in page
    key = certificates.key_id(certificates.signing_key().public_key())
    assert "this proves nothing" in verify_audit_export.by_key(key)
    assert "this proves nothing" not in verify_audit_export.by_key("0" * len(key))
    assert b"compare them with https://status.example/keys." in exported(ada)["README.txt"]


def test_the_review_says_who_gave_which_role_and_when(world: World) -> None:
    alice, ada = world.context("alice", "acme"), audit(world)
    by = recording.Actor(alice.user_id, "alice@example.com", "test")
    member_changes.change_role(alice, user_id=world.users["bob"].id, to=Role.ADMIN, by=by)
    recording.record(
        AuditEntry(
            alice.tenant_id,
            AuditAction.SESSION_STARTED,
            recording.Actor(world.users["bob"].id),
            "user",
            world.users["bob"].id,
        )
    )
    key, _ = make_key(alice)
    found = {one.name: one for one in access_review.page(alice).members}
    bob = found["Bob Example"]
    assert (bob.role, bob.granted_by, bob.has_second_factor) == (Role.ADMIN, "alice@example.com", False)
    assert bob.granted_at is not None
    assert bob.entered_at is not None
    assert (found["Alice Example"].granted_by, found["Alice Example"].entered_at) == ("Pooldesk", None)
    page = ada.get("/desk/access-review/").content.decode()
    assert all(text in page for text in ("Bob Example", "by alice@example.com", key.name, "ISO 27001"))
    assert all(text in page for text in ("can work on tickets and manage members", "none recorded", "Times are in UTC"))
    rows = json.loads(exported(ada)["access-review.json"])
    assert {row["kind"] for row in rows} == {"member", "auditor", "API key"}
    assert next(row["by"] for row in rows if row["name"] == "Alice Example") == "Pooldesk"
    (row,) = [row for row in rows if row["name"] == "Bob Example"]
    assert (row["may"], row["by"], row["second factor"]) == ("admin", "alice@example.com", "no")
    assert row["since (UTC)"] == clock.stamp(bob.granted_at)


def test_the_review_of_a_past_moment_says_who_had_which_role_then(world: World) -> None:
    alice, ada = world.context("alice", "acme"), audit(world)
    before = clock.stamp()
    by = recording.Actor(alice.user_id, "alice@example.com", "test")
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=by)
    page = ada.get("/desk/access-review/", {"at": before})
    assert [one.then for one in page.context["people"] if one.email == "bob@example.com"] == [Role.AGENT]
    assert "Bob Example" not in ada.get("/desk/access-review/").content.decode()
    assert ada.get("/desk/access-review/", {"at": "soon"}).status_code == 400


def test_the_review_costs_the_same_for_any_number_of_members(world: World) -> None:
    alice = world.context("alice", "acme")
    ids = [f"{number:032x}" for number in range(300)]
    put_all(
        [
            MemberItem(
                alice.tenant_id,
                one,
                name=one,
                email=f"{one}@example.com",
                role="agent",
                created_at="2026-01-01T00:00:00.000000Z",
            )
            for one in ids
        ]
    )
    first = access_review.page(alice)
    assert len(first.members) == access_review.PAGE_SIZE
    seen = [one.id for one in first.members]
    while first.next:
        first = access_review.page(alice, after=first.next)
        seen += [one.id for one in first.members]
    assert len(seen) == len({*seen}) == 303


def test_a_later_export_has_the_rows_of_an_earlier_one_or_the_script_says_which_row_changed(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where whoever rewrites the past has the key, and computes the chain anew."""
    ada = audit(world)
    for number in range(20):
        recording.record(
            AuditEntry(world.tenants["acme"].tenant_id, AuditAction.VIEW_SAVED, recording.SYSTEM, "view", f"{number}")
        )
    first, later = exported(ada), exported(ada)
    manifest, rows = json.loads(later["manifest.json"]), _rehashed(later)
    ends = {row["row"]["partition"]["S"]: row["row"] for row in sorted(lines(rows), key=_number)}
    chained = {name: {"rows": int(row["sequence"]["N"]), "hash": row["hash"]["S"]} for name, row in ends.items()}
    facts = {name: value for name, value in manifest.items() if name not in ("version", "key", "signature")}
    facts["chain"] = chained
    trail = rows["audit-trail.jsonl"]
    facts["files"]["audit-trail.jsonl"] = {"bytes": len(trail), "sha256": hashlib.sha256(trail).hexdigest()}
    forged = {**rows, "manifest.json": certificates.sign(facts, certificates.signing_key())}
    for name, files in {"first": first, "later": later, "forged": forged}.items():
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for file, content in files.items():
                archive.writestr(file, content)
    (tmp_path / "keys.json").write_bytes(Client().get("/.well-known/pooldesk-keys.json").content)
    keys_json, one, two, bad = (str(tmp_path / n) for n in ("keys.json", "first.zip", "later.zip", "forged.zip"))
    assert verify_audit_export.main([keys_json, one, two]) == 0
    assert f"It has all rows of {one}, unchanged." in capsys.readouterr().out
    assert verify_audit_export.main([keys_json, bad]) == 0
    head = chain.head_of(
        world.context("alice", "acme").repository, (clock.now() + timedelta(seconds=1)).replace(microsecond=0)
    ).text
    assert verify_audit_export.main([keys_json, two, head]) == 0
    assert "It has the rows of each head that you gave, unchanged." in capsys.readouterr().out
    assert verify_audit_export.main([keys_json, bad, head]) == 1
    assert f"The head {head} does not fit" in capsys.readouterr().out
    assert verify_audit_export.main([keys_json, one, bad]) == 1
    assert f"or one before it, was changed or removed since {one} was made." in capsys.readouterr().out


def _number(row: Any) -> int:
    return int(row["row"]["sequence"]["N"])


def _written(files: Files, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def _local(name: str) -> bytes:
    """A file as it stands in a zip, without the directory behind it."""
    whole = _written({name: b"kind,name\r\n"})
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return whole[: archive.start_dir]


def _hidden(whole: bytes) -> bytes:
    """A zip with a second review, which programs that read from front to back unpack in the place of the first one."""
    at = int.from_bytes(whole[-6:-2], "little")
    more = _local("access-review.csv")
    return whole[:at] + more + whole[at:-6] + (at + len(more)).to_bytes(4, "little") + whole[-2:]


def _broken(whole: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        info = archive.getinfo("audit-trail.jsonl")
    at = info.header_offset + 30 + len(info.filename)
    return whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 40]) + whole[at + 40 :]


def _locked(whole: bytes) -> bytes:
    """A zip whose directory says that its first file has a password."""
    at = whole.index(b"PK\x01\x02") + 8
    return whole[:at] + b"\x01" + whole[at + 1 :]


ZIPS: dict[str, tuple[Callable[[Files], bytes], str]] = {
    "a second review behind": (lambda f: _hidden(_written(f)), "behind its files that its directory does not name"),
    "a second review in front": (lambda f: _local("access-review.csv") + _written(f), "before README.txt that its dir"),
    "cut off": (lambda f: _written(f)[:-40], "The zip is cut off or damaged"),
    "damaged": (lambda f: _broken(_written(f)), ""),
    "with a password": (lambda f: _locked(_written(f)), "README.txt is packed in a way in which no export is"),
    "packed otherwise": (lambda f: _written(f, zipfile.ZIP_BZIP2), "is packed in a way in which no export is"),
    "a vast trail": (
        lambda f: _written({**f, "audit-trail.jsonl": b" " * 40_000_000}),
        "audit-trail.jsonl was changed after it was signed: it is much larger",
    ),
    "a vast manifest": (lambda f: _written({**f, "manifest.json": b" " * 40_000_000}), "manifest.json is larger"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_zip_that_no_export_is_gets_a_sentence_and_is_not_read(
    evidence: Files, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, sentence = ZIPS[name]
    (public,) = keys().values()
    path = tmp_path / "evidence.zip"
    path.write_bytes(make(evidence))
    assert verify_audit_export.main([public.hex(), str(path)]) == 1
    told = capsys.readouterr().out
    assert "NOT GOOD" in told
    assert sentence in told


def test_a_name_in_a_forged_zip_moves_no_cursor_and_writes_no_line_of_its_own(
    evidence: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (public,) = keys().values()
    path = tmp_path / "evidence.zip"
    path.write_bytes(_written({**evidence, "a\x1b[2K\r\nevidence.zip: whole and unaltered.\u202e\u2028": b""}))
    assert verify_audit_export.main([public.hex(), str(path)]) == 1
    told = capsys.readouterr().out
    assert told.count("\n") == 1
    assert "\\x1b[2K\\r\\nevidence.zip" in told
    assert told.rstrip("\n").isprintable()


def _main(tmp_path: Path, *exports: Files) -> int:
    """The status of the script for these exports, 1.zip first."""
    for number, files in enumerate(exports, 1):
        (tmp_path / f"{number}.zip").write_bytes(_written(files))
    (public,) = keys().values()
    return verify_audit_export.main(
        [public.hex(), *(str(tmp_path / f"{number}.zip") for number in range(1, len(exports) + 1))]
    )


def test_an_export_of_another_desk_is_said_to_be_one_although_it_is_whole(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acme, globex = exported(world.browser("alice", "acme")), exported(world.browser("charlie", "globex"))
    assert _main(tmp_path, acme, globex) == 0
    assert "It was NOT compared with" in capsys.readouterr().out


def test_a_later_export_in_front_of_an_older_one_is_not_called_a_forgery(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = world.browser("alice", "acme")
    older, later = exported(owner), exported(owner)
    assert _main(tmp_path, later, older) == 1
    assert "1.zip was made later: give the oldest export first." in capsys.readouterr().out


def test_a_row_that_is_put_in_later_with_an_earlier_moment_is_noticed(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chain is whole: it stands behind the last row, and says that it is older."""
    owner, acme = world.browser("alice", "acme"), world.tenants["acme"].tenant_id
    older, now = exported(owner), clock.now
    head = chain.head_of(world.context("alice", "acme").repository, now().replace(microsecond=0) + timedelta(seconds=1))
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now() - timedelta(days=9))
        recording.record(AuditEntry(acme, AuditAction.VIEW_SAVED, recording.SYSTEM, "view", "1"))
    assert chain.verify(acme).findings == []
    later = exported(owner)
    assert _main(tmp_path, older, later) == 1
    assert "1.zip was made, with a moment before that: 20" in capsys.readouterr().out
    with pytest.raises(EvidenceFault, match="was put in after the head"):
        verify_audit_export.check_export(zipped(later), keys(), heads=[head.text])
