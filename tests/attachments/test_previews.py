"""Previews are made anew, by a worker, of pictures alone; a trap gets none and harms nothing."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import urllib3
from django.conf import settings
from PIL import Image, PngImagePlugin

from tests.attachments import pictures
from tests.attachments.conftest import objects_of
from tests.support import mailing
from tests.support.world import World
from tickets.attachments import attachments, removing, scanning, thumbnail
from tickets.desk import commenting, creating, timelines

SECRET = b"taken at home"


def commented(world: World, *contents: bytes, name: str = "photo.png") -> list[str]:
    """Comment with files of these contents, let the worker do its part, and return the files' ids."""
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, name, content) for content in contents]
    commenting.comment(bob, 1, body="", files=files)
    mailing.carry()
    return [file.id for file in files]


def noted(world: World) -> list[str | None]:
    entries = timelines.ticket(world.context("bob", "acme"), 1).activity
    return [file.preview for entry in entries for file in entry.files or ()]


def shown(world: World, file_id: str) -> urllib3.BaseHTTPResponse:
    answer = world.browser("bob").get(f"/tickets/1/files/{file_id}/preview/")
    assert answer.status_code == 302
    assert answer["X-Content-Type-Options"] == "nosniff"
    return urllib3.request("GET", answer["Location"])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_has_a_preview_that_a_browser_shows(world: World, kind: str) -> None:
    (file_id,) = commented(world, pictures.encoded(kind, 800, 400))
    assert noted(world) == ["400x200"]
    page = world.browser("bob").get("/tickets/1/")
    assert f'<img src="/acme/tickets/1/files/{file_id}/preview/" width="400" height="200" loading="lazy"' in (
        page.content.decode()
    )
    assert settings.OBJECTS_ORIGIN in re.search(r"img-src ([^;]*)", page["Content-Security-Policy"])[1]
    got = shown(world, file_id)
    assert (got.status, got.headers["Content-Type"]) == (200, "image/webp")
    assert got.headers["Content-Disposition"].startswith("inline")
    with Image.open(io.BytesIO(got.data)) as picture:
        assert (picture.format, picture.size) == ("WEBP", (400, 200))


def test_the_picture_of_a_new_ticket_has_a_preview(world: World) -> None:
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="Look", files=[attachments.store(bob, "a.png", pictures.encoded("PNG"))])
    mailing.carry()
    assert [file.preview for file in timelines.ticket(bob, number).files] == ["64x48"]


def _with_text() -> bytes:
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", SECRET.decode())
    return pictures.encoded("PNG", pnginfo=about)


def _turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, SECRET.decode()  # turned by a quarter, and a description
    return pictures.encoded("JPEG", 100, 50, exif=exif)


@pytest.mark.parametrize(
    ("content", "size", "lost"),
    [
        (_with_text(), "64x48", SECRET),
        (_turned(), "50x100", SECRET),
        (pictures.GIF_AND_SCRIPT, None, b"alert"),
        (pictures.encoded("JPEG") + pictures.zipped("a.js", pictures.SCRIPT), "64x48", b"PK"),
        (pictures.encoded("PNG") + pictures.SCRIPT, "64x48", b"script"),
        (pictures.encoded("PNG") + b"%PDF-1.7\n" + pictures.SCRIPT, "64x48", b"PDF"),
        (lambda: pictures.animation(2000), "200x100", b"NETSCAPE"),
    ],
    ids=["text", "exif", "gif and script", "jpeg and zip", "png and script", "png and pdf", "animation"],
)
def test_of_a_picture_nothing_but_its_pixels_is_shown(world: World, content: Any, size: str, lost: bytes) -> None:
    content = content if isinstance(content, bytes) else content()
    assert lost in content
    (file_id,) = commented(world, content)
    if size:
        assert noted(world) == [size]
    data = shown(world, file_id).data
    assert lost not in data
    assert noted(world) == ["none"] or data[:4] == b"RIFF"


@pytest.mark.parametrize(
    "content",
    [
        lambda: pictures.png(20_000, 20_000),
        pictures.encoded("PNG", 800, 800)[:-200],
        pictures.encoded("JPEG", 800, 800)[:1500],
        b"\x89PNG\r\n\x1a\n" + pictures.SVG,
        b"RIFF\xff\xff\xff\xffWEBP" + b"\0" * 100,
        b"GIF89a\xff\xff\xff\xff\0\0\0",
    ],
    ids=["400 megapixels", "truncated PNG", "truncated JPEG", "SVG with a PNG's beginning", "WebP of zeros", "no GIF"],
)
def test_what_is_no_whole_picture_or_too_large_has_no_preview_and_stays_a_file(world: World, content: Any) -> None:
    commented(world, content if isinstance(content, bytes) else content())
    assert noted(world) == ["none"]
    assert objects_of(world.tenants["acme"].tenant_id, "previews") == []
    page = world.browser("bob").get("/tickets/1/").content.decode()
    assert "photo.png" in page
    assert "<img" not in page
    assert mailing.carry() == [], "nothing is tried again"


@pytest.mark.parametrize("content", [pictures.SVG, b"<html>" + pictures.SCRIPT, b"%PDF-1.7\n" + pictures.SCRIPT])
def test_what_only_its_name_calls_a_picture_is_never_opened(world: World, content: bytes) -> None:
    with patch.object(thumbnail, "make", side_effect=AssertionError):
        commented(world, content)
    assert noted(world) == [None]
    assert "<img" not in world.browser("bob").get("/tickets/1/").content.decode()


def test_a_picture_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnail, "SECONDS", 0.001)
    assert thumbnail.make(pictures.encoded("PNG"), patience=5) is None


def test_pictures_for_which_there_is_no_time_are_made_by_the_next_delivery(world: World) -> None:
    real: Callable[..., object] = thumbnail.make
    calls = []

    def busy(content: bytes, *, patience: float) -> object:
        calls.append(content)
        if len(calls) == 2:
            raise TimeoutError
        return real(content, patience=patience)

    with patch.object(thumbnail, "make", busy):
        commented(world, pictures.encoded("PNG"), pictures.encoded("GIF"))
        assert noted(world) == ["64x48", None]
        mailing.carry()
    assert noted(world) == ["64x48", "64x48"]
    assert len(calls) == 3


def test_a_removed_file_has_no_preview_any_more(world: World) -> None:
    (file_id,) = commented(world, pictures.encoded("PNG"))
    tenant_id = world.tenants["acme"].tenant_id
    assert len(objects_of(tenant_id, "previews")) == 1
    alice = world.context("alice", "acme")
    removing.remove(alice, 1, file_id)
    assert objects_of(tenant_id, "previews") == []
    assert world.browser("bob").get(f"/tickets/1/files/{file_id}/preview/").status_code == 400
    assert "<img" not in world.browser("bob").get("/tickets/1/").content.decode()


def test_a_file_that_is_removed_while_its_preview_is_made_keeps_none(world: World) -> None:
    real = thumbnail.make

    def removed_meanwhile(content: bytes, *, patience: float) -> object:
        removing.remove(world.context("alice", "acme"), 1, files[0])
        return real(content, patience=patience)

    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, "a.png", pictures.encoded("PNG")).id]
    commenting.comment(bob, 1, body="", files=attachments.uploaded(bob, files))
    with patch.object(thumbnail, "make", removed_meanwhile):
        mailing.carry()
    assert objects_of(bob.tenant_id, "previews") == []
    assert noted(world) == [None]


def test_no_preview_is_made_of_a_file_that_waits_for_its_scanner_or_was_refused(world: World, settings) -> None:
    settings.FILE_SCANNER = "guardduty"
    with patch.object(thumbnail, "make", side_effect=AssertionError):
        commented(world, pictures.encoded("PNG"))
        with patch.object(scanning, "look_at_finding", return_value=scanning.REFUSED):
            mailing.carry()
    assert noted(world) == [None]


def test_a_viewer_has_no_preview_of_a_file_of_a_note(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "a.png", pictures.encoded("PNG"))
    commenting.comment(bob, 1, body="", internal=True, files=[file])
    mailing.carry()
    assert world.browser("vera").get(f"/tickets/1/files/{file.id}/preview/").status_code == 404
    assert world.browser("charlie", "globex").get(f"/tickets/1/files/{file.id}/preview/").status_code == 404
