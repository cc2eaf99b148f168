"""An admin sets up the public form: what is stored, what is refused, and what other sites may show."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.attachments.pictures import encoded, png
from tests.public_form.conftest import FORM, open_form
from tests.support import defined
from tests.support.world import World
from tickets.outside import looks
from tickets.public_form import form_settings

PAGE = "/acme/desk/settings/public/"
SETTINGS = {"is_on": "on", "asks_name": "on", "intro": "", "next_steps": "We ring.", "origins": "", "version": "0"}
LOOKS = {"looks_name": "Acme Help", "colour": "#FFEE00", "language": "de", "looks_version": "0"}


def test_what_an_admin_sets_up_is_what_strangers_see(world: World) -> None:
    browser = world.browser("alice", "acme")
    origins = "https://www.example.com/contact\nhttps://shop.example.com:8443\n"
    assert browser.send(PAGE, {**SETTINGS, "origins": origins}).status_code == 302
    assert browser.send(f"{PAGE}looks/", LOOKS).status_code == 302
    answer = Client().get(FORM)
    page, policy = answer.content.decode(), answer["Content-Security-Policy"]
    assert '<html lang="de">' in page
    assert "Acme Help" in page
    assert "frame-ancestors 'self' https://www.example.com https://shop.example.com:8443" in policy
    assert "X-Frame-Options" not in answer
    assert "unsafe" not in policy
    line = "&lt;iframe src=&#34;http://testserver/forms/acme/&#34; title=&#34;Acme Help&#34;"
    assert line in browser.get(PAGE).content.decode().replace("http://127.0.0.1:80", "http://testserver")


def test_a_form_that_no_site_may_show_is_shown_by_none(world: World) -> None:
    open_form(world)
    answer = Client().get(FORM)
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    ("origin", "sentence"),
    [
        ("http://www.example.com", "Only sites with https"),
        ("javascript:alert(1)", "is no address of a site"),
        ("https://*.example.com", "is no address of a site"),
        ("https://example", "is no address of a site"),
        ("https://a.example; script-src *", "is no address of a site"),
        ("https://me@example.com", "is no address of a site"),
        ("https://[::1", "is no address of a site"),
        ("data:", "is no address of a site"),
    ],
)
def test_what_is_no_site_is_refused_and_what_was_typed_stays(world: World, origin: str, sentence: str) -> None:
    answer = world.browser("alice", "acme").send(PAGE, {**SETTINGS, "origins": origin})
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert "We ring." in answer.content.decode()
    assert form_settings.read(world.context("alice", "acme")).version == 0


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"colour": "teal"}, "six digits"),
        ({"colour": "#12345"}, "six digits"),
        ({"colour": "#000000;}body{"}, "six digits"),
        ({"language": "fr"}, "Select a valid choice"),
        ({"looks_name": "x" * 81}, "at most 80 characters"),
    ],
)
def test_looks_that_cannot_be_are_refused(world: World, values: dict[str, str], sentence: str) -> None:
    answer = world.browser("alice", "acme").send(f"{PAGE}looks/", {**LOOKS, **values})
    assert (answer.status_code, sentence in answer.content.decode()) == (422, True)


def test_an_admin_chooses_which_custom_fields_the_form_asks(world: World) -> None:
    text, number, *rest = defined.one_of_each_type(world)
    browser = world.browser("alice", "acme")
    chosen = {f"of_{text}": "1", f"of_{number}": "2", **{f"of_{one}": "0" for one in rest}}
    assert browser.send(PAGE, {**SETTINGS, **chosen}).status_code == 302
    stored = form_settings.read(world.context("alice", "acme"))
    assert (stored.own_fields, stored.needed_fields) == ((text, number), (number,))
    page = browser.get(PAGE).content.decode()
    assert '<option value="2" selected>Required</option>' in page
    preview = browser.send(f"{PAGE}preview/", {**SETTINGS, **chosen, f"of_{number}": "0"}).content.decode()
    assert [f'name="{one}"' in preview for one in (text, number)] == [True, False]


def test_each_change_is_in_the_audit_trail(world: World) -> None:
    browser = world.browser("alice", "acme")
    browser.send(PAGE, SETTINGS)
    browser.send(f"{PAGE}looks/", LOOKS)
    trail = browser.get("/acme/desk/audit/").content.decode()
    assert trail.count("changed the public pages of") == 2


def test_the_preview_shows_unsaved_settings_and_stores_nothing(world: World) -> None:
    browser = world.browser("alice", "acme")
    answer = browser.send(f"{PAGE}preview/", {**SETTINGS, "intro": "Not saved yet"})
    page = answer.content.decode()
    assert "Not saved yet" in page
    assert "This is a preview. It cannot be sent." in page
    assert answer["X-Frame-Options"] == "DENY"
    assert form_settings.read(world.context("alice", "acme")).version == 0


@pytest.mark.parametrize("colour", ["#ffee00", "#000000", "#ffffff", "#0a6a7b", "#ff0000", "#1a2427"])
def test_a_colour_is_readable_whatever_is_chosen(colour: str) -> None:
    for background in ("#ffffff", "#f5f8f8", "#ecf1f1"):
        assert looks.contrast(looks.readable(colour, on="#ecf1f1"), background) >= 4.5
    for background in ("#0e1416", "#151d20", "#1a2427", "#0b1012"):
        assert looks.contrast(looks.readable(colour, on="#1a2427"), background) >= 4.5
    css = looks.style(colour).css
    accents = [part.split("--accent:")[1][:7] for part in css.split("{") if "--accent:" in part]
    inks = [part.split("--on-accent:")[1][:7] for part in css.split("{") if "--on-accent:" in part]
    hovers = [part.split("--accent-hover:")[1][:7] for part in css.split("{") if "--accent-hover:" in part]
    assert len(accents) == len(inks) == len(hovers) == 2
    for accent, hover, ink in zip(accents, hovers, inks, strict=True):
        assert looks.contrast(accent, ink) >= 4.5
        assert looks.contrast(hover, ink) >= 4.5


def test_a_desk_that_changed_nothing_has_its_own_name(world: World) -> None:
    found: Any = looks.looks_of(world.context("alice", "acme"))
    assert (found.name, found.style, found.language) == ("Acme", None, "en")


def picture(content: bytes, name: str = "logo.png") -> dict[str, Any]:
    return {"logo": SimpleUploadedFile(name, content, content_type="image/png")}


def test_a_logo_is_made_anew_and_shown_on_the_form_until_it_is_removed(world: World) -> None:
    open_form(world)
    browser, sent = world.browser("alice", "acme"), encoded("PNG", 900, 300)
    assert browser.send(f"{PAGE}looks/", {**LOOKS, **picture(sent + b"<script>hidden</script>")}).status_code == 302
    page = Client().get(FORM).content.decode()
    address = page.split('class="outside-logo" src="')[1].split('"')[0]
    answer = Client().get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/webp")
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.content[8:12] == b"WEBP"
    assert b"hidden" not in answer.content
    assert browser.send(f"{PAGE}looks/", {**LOOKS, "looks_version": "1", "looks_name": "Other"}).status_code == 302
    assert "outside-logo" in Client().get(FORM).content.decode(), "other changes leave it"
    assert browser.send(f"{PAGE}looks/", {**LOOKS, "looks_version": "2", "no_logo": "on"}).status_code == 302
    assert "outside-logo" not in Client().get(FORM).content.decode()
    assert Client().get(address).status_code == 404


@pytest.mark.parametrize(
    "content",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<script></script>",
        lambda: png(40_000, 40_000),
        b"\0" * 1_000_001,
    ],
    ids=["svg", "html", "many pixels", "too long"],
)
def test_what_is_no_picture_becomes_no_logo_and_what_was_typed_stays(world: World, content: Any) -> None:
    content = content if isinstance(content, bytes) else content()
    answer = world.browser("alice", "acme").send(f"{PAGE}looks/", {**LOOKS, **picture(content)})
    assert answer.status_code == 422
    assert "Choose a picture" in answer.content.decode()
    assert "Acme Help" in answer.content.decode()
    assert looks.looks_of(world.context("alice", "acme")).version == 0
