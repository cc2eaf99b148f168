"""Files and forms that somebody made to do harm are refused, or stay bytes that people save.

ministack enforces of a form what its policy says: key, size, type, further fields and the moment at which it ends. It
does not look at the form's signature, so that a form without or with another policy is refused by Amazon S3 alone.
"""

from __future__ import annotations

import io
import time
import zipfile
from typing import Any

import pytest
import urllib3

from portal.errors import Conflict
from portal.objects.object_store import ObjectStore
from tests.attachments import pictures
from tests.attachments.conftest import objects_of, send
from tests.support import commands
from tests.support.world import Browser, World
from tickets.attachments import attachments, downloads, stored
from tickets.desk import commenting, timelines
from tickets.desk.changing import new_request_id

PDF = b"%PDF-1.7\n"


def zip_bomb() -> bytes:
    return pictures.zipped("inner.zip", pictures.zipped("zeros", bytes(20_000_000)) * 50)


@pytest.mark.parametrize(
    "key",
    ["tenant/{other}/uploads/{id}", "tenant/{own}/files/{id}", "tenant/{own}/uploads/../../{other}/files/{id}", ""],
)
def test_a_form_puts_nothing_under_another_key(world: World, key: str) -> None:
    bob, other = world.context("bob", "acme"), world.tenants["globex"].tenant_id
    upload = attachments.begin(bob, "a.pdf", len(PDF))
    elsewhere = key.format(own=bob.tenant_id, other=other, id=upload.file.id)
    assert send(upload.form, PDF, key=elsewhere)[0] >= 400
    for tenant_id in (bob.tenant_id, other):
        assert objects_of(tenant_id) == objects_of(tenant_id, "uploads") == []


def test_a_form_that_has_expired_puts_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "FORM_SECONDS", -1)
    bob = world.context("bob", "acme")
    upload = attachments.begin(bob, "a.pdf", len(PDF))
    assert send(upload.form, PDF)[0] >= 400
    with pytest.raises(Conflict, match="has not arrived"):
        attachments.uploaded(bob, [upload.file.id])


def test_an_address_of_a_file_ends_with_its_minute_and_leads_to_no_other_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, f"{n}.pdf", PDF) for n in range(2)]
    commenting.comment(bob, 1, body="", files=files)
    one, other = (downloads.address_of(bob, 1, file.id) for file in files)
    signed = one.partition("?")[2]
    assert urllib3.request("GET", f"{other.partition('?')[0]}?{signed}").status == 403
    shown = one.replace("attachment", "inline")
    assert urllib3.request("GET", shown).status == 403
    monkeypatch.setattr(downloads, "SECONDS", 1)
    short = downloads.address_of(bob, 1, files[0].id)
    time.sleep(2.1)
    assert urllib3.request("GET", short).status == 403


@pytest.mark.parametrize(
    ("name", "content", "label"),
    [
        ("page.html", b"<!doctype html>" + pictures.SCRIPT, "HTML page"),
        ("drawing.svg", pictures.SVG, "SVG drawing"),
        ("drawing.png", pictures.SVG, "SVG drawing"),
        ("both.gif", pictures.GIF_AND_SCRIPT, "GIF image"),
        ("both.pdf", b"%PDF-1.7\n<html>" + pictures.SCRIPT, "PDF"),
        ("both.jpg", pictures.encoded("JPEG") + pictures.zipped("a.js", pictures.SCRIPT), "JPEG image"),
        ("bomb.zip", zip_bomb, "ZIP archive"),
        ("huge.png", lambda: pictures.png(20_000, 20_000), "PNG image"),
    ],
)
def test_whatever_a_file_is_a_browser_saves_it_and_shows_nothing_of_it(
    world: World, name: str, content: Any, label: str
) -> None:
    content = content if isinstance(content, bytes) else content()
    world.tickets("acme", 1)
    bob, browser = world.context("bob", "acme"), world.browser("bob")
    upload = attachments.begin(bob, name, len(content))
    assert send(upload.form, content) == (204, "")
    commenting.comment(bob, 1, body="", files=attachments.uploaded(bob, [upload.file.id]))
    assert label in browser.get("/tickets/1/").content.decode()
    got = urllib3.request("GET", browser.get(f"/tickets/1/files/{upload.file.id}/")["Location"])
    assert got.data == content
    assert got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    every = browser.send("/tickets/1/files/", {})
    assert (every["Content-Type"], every["X-Content-Type-Options"]) == ("application/zip", "nosniff")
    with zipfile.ZipFile(io.BytesIO(b"".join(every.streaming_content))) as archive:
        (info,) = archive.infolist()
        assert (info.file_size, info.compress_size) == (len(content), len(content)), "it is packed as it is, unopened"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\windows\\win.ini", "win.ini"),
        ("..", "file"),
        ("a\r\nSet-Cookie: b=c.txt", "a__Set-Cookie_ b=c.txt"),
        ("\u202etxt.exe", "txt.exe"),
        ('"><script>.png', "___script_.png"),
    ],
)
def test_a_name_is_one_line_and_no_path(name: str, shown: str) -> None:
    cleaned = attachments.clean_name(name)
    assert "/" not in cleaned
    assert "\n" not in cleaned
    assert cleaned.replace(" ", "") == shown.replace(" ", "")


def test_ten_thousand_files_of_one_form_are_refused_before_any_is_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    browser: Browser = world.browser("bob")
    ids = [f"{n:032x}" for n in range(10_000)]
    asked = []
    monkeypatch.setattr(ObjectStore, "_call", lambda self, operation, **params: asked.append(operation))
    answer = browser.send("/tickets/1/comment/", {"body": "", "request_id": new_request_id(), "files": ids})
    assert 400 <= answer.status_code < 500
    with pytest.raises(Exception, match="at most 10 files"):
        attachments.uploaded(world.context("bob", "acme"), ids)
    assert asked == []


# --- kill -9 ---

_KILLED = """
import os, signal
from portal.dynamo.store import Store
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role
from tickets.attachments import attachments
from tickets.desk import commenting
tenant = context.of_tenant(tenant_directory.get("{tenant}"), role=Role.AGENT, user_id="{user}", user_name="Bob")
files = attachments.uploaded(tenant, ["{file}"])
transact = Store.transact
def dying(*args, **how):
    if {is_written}:
        transact(*args, **how)
    os.kill(os.getpid(), signal.SIGKILL)
Store.transact = dying
commenting.comment(tenant, 1, body="", files=files, request_id="{request}")
"""


@pytest.mark.parametrize("is_written", [False, True])
def test_a_process_that_is_killed_leaves_no_file_that_a_ticket_shows_and_does_not_have(
    world: World, is_written: bool
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    upload, request = attachments.begin(bob, "a.pdf", len(PDF)), new_request_id()
    send(upload.form, PDF)
    told = {"tenant": bob.tenant_id, "user": bob.user_id, "file": upload.file.id, "request": request}
    ended = commands.finish(
        commands.start("shell", "--no-imports", "-c", _KILLED.format(**told, is_written=is_written))
    )
    assert ended.status == -9, ended
    shown = [file.id for entry in timelines.ticket(bob, 1).activity for file in entry.files or ()]
    assert shown == ([upload.file.id] if is_written else [])
    ObjectStore("tenant", bob.tenant_id).put(stored.upload_key(bob.tenant_id, upload.file.id), b"otherwise")
    if not is_written:
        ObjectStore("tenant", bob.tenant_id).put(stored.upload_key(bob.tenant_id, upload.file.id), PDF)
    files = attachments.uploaded(bob, [upload.file.id])
    commenting.comment(bob, 1, body="", files=files, request_id=request)  # as the browser does, which had no answer
    assert [f.id for entry in timelines.ticket(bob, 1).activity for f in entry.files or ()] == [upload.file.id]
    assert urllib3.request("GET", downloads.address_of(bob, 1, upload.file.id)).data == PDF
