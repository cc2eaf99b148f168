"""Files on pages: attached by a form, listed at their comment, downloaded to be saved and never to be shown."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest
import urllib3
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings

from portal.objects.object_store import UploadForm
from portal.plain_text import file_size
from tests.attachments.conftest import PNG, send
from tests.support.world import Browser, World
from tickets.attachments import attachments
from tickets.desk import commenting, timelines
from tickets.desk.changing import new_request_id

PDF = b"%PDF-1.7\n"


def begun(browser: Browser, name: str = "report.pdf", size: int = len(PDF)) -> tuple[str, UploadForm]:
    answer = browser.send("/tickets/files/", {"name": name, "size": str(size)})
    assert answer.status_code == 200, answer.content
    told = answer.json()
    return told["id"], UploadForm(told["url"], told["fields"])


def uploaded(browser: Browser, name: str = "report.pdf", content: bytes = PDF) -> str:
    file_id, form = begun(browser, name, len(content))
    assert send(form, content)[0] == 204
    return file_id


def commented(browser: Browser, *files: str, **fields: object) -> object:
    data = {"body": "See the file.", "request_id": new_request_id(), "files": list(files)} | fields
    return browser.send("/tickets/1/comment/", data)


def listed(world: World, number: int = 1) -> list[str]:
    found = timelines.ticket(world.context("bob", "acme"), number)
    return [file.name for entry in found.activity for file in entry.files or ()]


@pytest.fixture
def bob(world: World) -> Browser:
    world.tickets("acme", 1)
    return world.browser("bob")


def test_a_file_that_the_browser_sent_to_the_bucket_is_listed_at_its_comment(bob: Browser) -> None:
    assert commented(bob, uploaded(bob)).status_code == 302
    page = bob.get("/tickets/1/").content.decode()
    assert re.search(
        r'href="/acme/tickets/1/files/[0-9a-f]{32}/"[^>]*>report.pdf</a>.*9\sbytes · PDF · not scanned', page
    )


def test_a_download_leads_to_the_bucket_and_is_saved_there_and_never_shown(bob: Browser, world: World) -> None:
    html = b"<!doctype html><script>alert(1)</script>"
    file_id = uploaded(bob, "page.html", html)
    commented(bob, file_id)
    answer = bob.get(f"/tickets/1/files/{file_id}/")
    assert answer.status_code == 302
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
    assert answer["X-Content-Type-Options"] == "nosniff"
    got = urllib3.request("GET", answer["Location"])
    assert (got.status, got.data) == (200, html)
    assert got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["Content-Disposition"] == 'attachment; filename="page.html"'


def test_without_javascript_small_files_come_with_the_form(bob: Browser, world: World) -> None:
    answer = commented(bob, attached=[SimpleUploadedFile("a.png", PNG), SimpleUploadedFile("b.txt", b"text")])
    assert answer.status_code == 302
    assert listed(world) == ["a.png", "b.txt"]


def test_a_comment_may_be_a_file_alone(bob: Browser, world: World) -> None:
    assert commented(bob, uploaded(bob), body="").status_code == 302
    assert listed(world) == ["report.pdf"]


def test_a_refused_comment_keeps_its_files(bob: Browser, world: World) -> None:
    file_id = uploaded(bob)
    answer = commented(bob, file_id, body="x" * 20_001, attached=[SimpleUploadedFile("a.png", PNG)])
    assert answer.status_code == 422
    kept = re.findall(r'name="files" value="([0-9a-f]{32})"', answer.content.decode())
    assert len(kept) == 2
    assert commented(bob, *kept).status_code == 302
    assert listed(world) == ["report.pdf", "a.png"]


def test_a_new_ticket_takes_files(bob: Browser, world: World) -> None:
    data = {"title": "Broken", "priority": "normal", "request_id": new_request_id(), "files": [uploaded(bob)]}
    assert 'enctype="multipart/form-data"' in bob.get("/tickets/new/").content.decode()
    data |= {"attached": [SimpleUploadedFile("a.png", PNG)]}  # as it comes without JavaScript
    assert bob.send("/tickets/new/", data).status_code == 302
    page = bob.get("/tickets/2/").content.decode()
    assert "report.pdf" in page
    assert "a.png" in page


def test_the_same_form_sent_twice_adds_one_comment_with_its_file(bob: Browser, world: World) -> None:
    file_id, request_id = uploaded(bob), new_request_id()
    for _ in range(2):
        assert commented(bob, file_id, request_id=request_id).status_code == 302
    assert listed(world) == ["report.pdf"]


def test_a_file_belongs_to_one_comment_only(bob: Browser, world: World) -> None:
    file_id = uploaded(bob)
    commented(bob, file_id)
    answer = commented(bob, file_id)
    assert answer.status_code == 422
    assert "used already" in answer.content.decode()
    assert listed(world) == ["report.pdf"]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1 KB"), (1_500, "1.5 KB"), (999_949, "999.9 KB"),
        (999_950, "1 MB"), (25_000_000, "25 MB"), (10**10, "10 GB"), (2 * 10**12, "2,000 GB"),
    ],
)  # fmt: skip
def test_a_number_of_bytes_is_said_in_the_units_of_the_limits(count: int, said: str) -> None:
    assert file_size(count) == said


def test_a_form_and_a_refusal_name_the_same_limit(bob: Browser) -> None:
    assert "Up to 10 files of 25 MB each" in bob.get("/tickets/1/").content.decode()


@pytest.mark.parametrize(
    ("name", "size", "why"),
    [
        ("a.bin", "25000001", "larger than 25 MB"),
        ("a.bin", "0", "empty"),
        ("a.bin", "-1", "empty"),
        ("a.bin", "x", "empty"),
    ],
)
def test_an_upload_of_a_wrong_size_is_not_begun(bob: Browser, name: str, size: str, why: str) -> None:
    answer = bob.send("/tickets/files/", {"name": name, "size": size})
    assert answer.status_code == 422
    assert why in answer.json()["problem"]


def test_a_desk_has_a_limit_for_all_its_files(bob: Browser, world: World) -> None:
    commented(bob, uploaded(bob))
    with override_settings(FILES_OF_DESK=len(PDF) + 5):
        answer = bob.send("/tickets/files/", {"name": "more.pdf", "size": "6"})
    assert "limit" in answer.json()["problem"]
    shown = world.browser("alice", "acme").get("/tickets/files/usage/").content.decode()
    assert "<dt>Files of tickets</dt><dd>1</dd>" in shown


@pytest.mark.parametrize(
    ("limit", "most", "why"),
    [("MOST_OF_TICKET", 1, "A ticket can have at most 1 files."), ("TICKET_BYTES", 10, "at most 0 MB")],
)
def test_a_ticket_has_a_limit_for_all_its_files(
    bob: Browser, world: World, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, why: str
) -> None:
    commented(bob, uploaded(bob))
    monkeypatch.setattr(attachments, limit, most)
    answer = commented(bob, uploaded(bob, "second.pdf"), body="The second one.")
    assert answer.status_code == 422
    page = answer.content.decode()
    assert why in page
    assert "The second one." in page
    assert listed(world) == ["report.pdf"]


def test_a_comment_takes_ten_files(bob: Browser, world: World) -> None:
    files = [SimpleUploadedFile(f"{n}.txt", b"text") for n in range(11)]
    answer = commented(bob, attached=files)
    assert answer.status_code == 422
    assert "at most 10 files" in answer.content.decode()


def test_a_file_that_never_arrived_is_not_attached(bob: Browser, world: World) -> None:
    file_id, _ = begun(bob)
    answer = commented(bob, file_id)
    assert answer.status_code == 422
    assert "has not arrived" in answer.content.decode()
    assert listed(world) == []


def test_all_files_of_a_ticket_come_as_one_zip(bob: Browser, world: World) -> None:
    commented(bob, uploaded(bob, "a.pdf"), uploaded(bob, "a.pdf", PDF * 20_000))
    answer = bob.send("/tickets/1/files/", {})
    assert answer["Content-Disposition"] == 'attachment; filename="ticket-1-files.zip"'
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        assert archive.testzip() is None
        assert {info.filename: info.file_size for info in archive.infolist()} == {"a.pdf": 9, "a (2).pdf": 180_000}


# --- isolation ---


def test_nobody_attaches_what_somebody_else_has_sent(bob: Browser, world: World) -> None:
    file_id = uploaded(world.browser("alice", "acme"))
    answer = commented(bob, file_id)
    assert answer.status_code == 422
    assert "is not yours" in answer.content.decode()


def test_a_file_of_another_desk_is_no_file_here(bob: Browser, world: World) -> None:
    world.tickets("globex", 1)
    charlie = world.context("charlie", "globex")
    file = attachments.store(charlie, "secret.pdf", PDF)
    commenting.comment(charlie, 1, body="Ours.", files=[file])
    assert bob.get(f"/tickets/1/files/{file.id}/").status_code == 404
    assert "is not yours" in commented(bob, file.id).content.decode()


def test_a_file_is_found_under_its_own_ticket_alone(bob: Browser, world: World) -> None:
    world.tickets("acme", 1)
    file_id = uploaded(bob)
    assert bob.get(f"/tickets/1/files/{file_id}/").status_code == 404  # not attached yet
    commented(bob, file_id)
    assert bob.get(f"/tickets/2/files/{file_id}/").status_code == 404
    assert bob.get(f"/tickets/1/files/{file_id[:-1]}/").status_code == 404


def test_a_viewer_has_the_files_of_comments_and_none_of_notes(bob: Browser, world: World) -> None:
    public, internal = uploaded(bob, "public.pdf"), uploaded(bob, "internal.pdf")
    commented(bob, public)
    commented(bob, internal, internal="on")
    vera = world.browser("vera")
    page = vera.get("/tickets/1/").content.decode()
    assert "public.pdf" in page
    assert "internal.pdf" not in page
    assert vera.get(f"/tickets/1/files/{public}/").status_code == 302
    assert vera.get(f"/tickets/1/files/{internal}/").status_code == 404
    answer = vera.send("/tickets/1/files/", {})
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        assert archive.namelist() == ["public.pdf"]


def test_no_page_holds_a_key_that_signs(bob: Browser) -> None:
    answer = bob.send("/tickets/files/", {"name": "a.pdf", "size": "9"})
    fields = json.loads(answer.content)["fields"]
    assert set(fields) == {
        "key", "Content-Type", "tagging", "success_action_status", "policy",
        "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature",
    }  # fmt: skip
    assert fields["Content-Type"] == "application/octet-stream"
    assert settings.OBJECTS_ORIGIN in bob.get("/tickets/1/")["Content-Security-Policy"]
