"""Files go where their desk goes: into its file and out of it, to another place, and away when it is purged."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from portal.dynamo.placement import POOL
from portal.objects.object_store import ObjectStore
from portal.schema import holdings
from tenants.lifecycle import object_rows
from tenants.tenancy import tenant_directory
from tests.attachments.conftest import key_of, objects_of
from tests.support.commands import run
from tests.support.factors import confirmed
from tests.support.world import World
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.desk import commenting
from tickets.purging.erasing import Eraser

CONTENT = bytes(range(256)) * 5000  # more than two rows of a file


@pytest.fixture
def file(world: World) -> FileRef:
    world.tickets("acme", 1)
    alice = world.context("alice", "acme")
    file = attachments.store(alice, "data.bin", CONTENT)
    commenting.comment(alice, 1, body="The data.", files=[file])
    attachments.store(alice, "unsent.bin", b"on its way")
    return file


def test_a_desk_that_is_brought_in_has_the_contents_of_its_files(world: World, file: FileRef, tmp_path: Path) -> None:
    made = run("export_tenant", "acme", tmp_path / "acme.zip")
    assert made.status == 0, made
    come = run("import_tenant", tmp_path / "acme.zip", "--as", "acme-again", "--new-id")
    assert come.status == 0, come
    tenant_id = tenant_directory.find("acme-again").tenant_id
    assert tenant_id != world.tenants["acme"].tenant_id
    (key,) = objects_of(tenant_id)
    assert key == key_of(replace(world.context("alice", "acme"), tenant_id=tenant_id), 1, file.id)
    assert objects_of(tenant_id, "uploads") == []  # nor none of what was on its way to a ticket
    assert ObjectStore("tenant", tenant_id).get(key, most=len(CONTENT)) == CONTENT


def test_a_file_of_a_desk_whose_rows_are_no_objects_is_refused(world: World, file: FileRef, tmp_path: Path) -> None:
    assert object_rows.fault("Support.Tickets", {}) != ""
    good = {"name": {"S": "a"}, "data": {"B": b"x"}, "last": {"BOOL": True}}
    assert object_rows.fault("object", good) == ""
    for name in ("../b", "a/b", "", "x" * 201):
        assert object_rows.fault("object", good | {"name": {"S": name}}) != ""


def test_a_purge_deletes_the_objects_of_files_and_those_that_were_on_their_way(world: World, file: FileRef) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    eraser = Eraser(tenant_id, [POOL], sleep=lambda seconds: None)
    for name, kind, count in (("contents of files", "files", 1), ("uploads", "uploads", 2)):
        (contents,) = [holding for holding in holdings.holdings() if holding.name == name]
        assert eraser.count(contents) == count
        eraser.clear(contents, deleted=lambda count: None)
        assert objects_of(tenant_id, kind) == []


def test_an_owner_downloads_the_contents_of_all_files_part_by_part(world: World, file: FileRef) -> None:
    alice = world.context("alice", "acme")
    others = [attachments.store(alice, "data.bin", bytes([n])) for n in range(8)]
    commenting.comment(alice, 1, body="More.", files=others)
    browser = confirmed(world, "alice", "acme")
    page = browser.get("/desk/settings/export/").content.decode()
    parts = re.findall(r'action="/acme(/desk/settings/export/files/[a-p]/)"', page)
    names, contents = Counter[str](), Counter[bytes]()
    for part in parts:
        answer = browser.send(part, {})
        assert answer.status_code == 200
        with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
            for name in archive.namelist():
                names[name.partition("/")[0]] += 1
                contents[archive.read(name)] += 1
    assert names == {"1": 9}
    assert contents == Counter([CONTENT, *(bytes([n]) for n in range(8))])
    assert browser.get("/desk/audit/").content.decode().count("downloaded the export of") == len(parts)
    for wrong in ("a/../b", "q", "aa", "USAGE"):
        assert browser.send(f"/desk/settings/export/files/{wrong}/", {}).status_code in (302, 404)
    assert world.browser("bob").send(parts[0], {}).status_code == 403
