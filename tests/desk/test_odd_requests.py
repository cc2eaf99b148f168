"""Requests that no page can mean, sent to the portal as a whole: a status and a sentence, never a failure of ours."""

from __future__ import annotations

import io
import logging
import re
from typing import Any, Final
from wsgiref.util import setup_testing_defaults

import pytest
from django.conf import LazySettings

from portal.web.middleware import CLIENT_FAULTS
from tenants.sign_in import views as identity_views
from tests.desk.test_outage import engine_down
from tests.support import articles
from tests.support.world import Browser, World
from tickets.desk import changing, creating

FORM = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data; boundary=x"
PAGES: Final = ("/", "/login/", "/tickets/", "/admin/", "/api/v1/openapi.json", "/api/v1/tickets", "/no/")
TOO_MANY: Final = "&".join(f"a{number}=1" for number in range(1001))


def parts(count: int, name: str) -> str:
    return f'--x\r\nContent-Disposition: form-data; name="a"{name}\r\n\r\n1\r\n' * count + "--x--\r\n"


class BrokenOff(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError("the client has gone")


DAMAGED_FORMS: Final = {
    "too many fields": (TOO_MANY, FORM),
    "too many parts": (parts(1001, ""), MULTIPART),
    "too many files": (parts(101, '; filename="f"'), MULTIPART),
    "no boundary": ("x", "multipart/form-data"),
    "an empty boundary": ("x", "multipart/form-data; boundary="),
    "a boundary of other characters": ("x", "multipart/form-data; boundary=\xff"),
    "a boundary that is too long": ("x", f"multipart/form-data; boundary={'x' * 300}"),
}


def test_health_is_answered_to_any_host_without_the_engine(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    with engine_down(settings):
        response = Browser().get("/healthz", headers={"Host": "10.0.3.17:8000"})
    assert (response.status_code, response.content) == (200, b"ok\n")


def test_health_is_only_asked_for() -> None:
    assert Browser().post("/healthz").status_code == 405


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "FOO"])
def test_a_method_of_no_page_is_405_on_every_page(world: World, method: str) -> None:
    browser = world.browser("bob")
    for path in (
        "/",
        "/login/",
        "/tickets/",
        "/tickets/new/",
        "/tickets/1/comment/",
        "/members/",
        "/admin/",
        "/nowhere/",
    ):
        response = browser.generic(method, path)
        assert (path, response.status_code, response["Allow"]) == (path, 405, "GET, HEAD, POST")
        assert f"No page takes {method} requests." in response.content.decode()


@pytest.mark.parametrize("debug", [True, False])
def test_a_page_of_an_error_is_in_the_language_of_the_browser(
    world: World, settings: LazySettings, debug: bool
) -> None:
    settings.DEBUG = debug
    browser = world.browser("bob")
    for method, path, words in (
        ("PUT", "/tickets/", "Keine Seite nimmt"),
        ("GET", "/tickets/1/comment/", "Gehen Sie zu der Seite zurück"),
        ("GET", "/tickets/nowhere/", "Nicht gefunden"),
    ):
        page = browser.generic(method, path, HTTP_ACCEPT_LANGUAGE="de").content.decode()
        assert ('<html lang="de"' in page, words in page) == (True, True), path


def test_the_page_at_an_address_of_a_form_keeps_its_headers(world: World) -> None:
    browser = world.browser("bob")
    page, other = browser.get("/tickets/1/comment/"), browser.get("/tickets/")
    kept = ("Cache-Control", "Vary", "X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy")
    assert (page["Allow"], page["Content-Length"]) == ("POST", str(len(page.content)))
    assert [page[name] for name in kept] == [other[name] for name in kept]
    assert "damaged" not in page.content.decode()


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("header", ["HX-Current-URL", "Origin", "Referer"])
def test_an_address_header_that_is_none_is_a_bad_request(settings: LazySettings, header: str, debug: bool) -> None:
    settings.DEBUG = debug
    headers = {"HX-Request": "true", header: "http://[bad"}
    assert Browser().get("/tickets/", headers=headers).status_code == 400
    assert Browser(enforce_csrf_checks=True).post("/login/", {"email": "x"}, headers=headers).status_code == 400


@pytest.mark.parametrize("debug", [True, False])
def test_a_form_in_another_character_set_is_refused(settings: LazySettings, debug: bool) -> None:
    settings.DEBUG = debug
    response = Browser().post("/login/", "email=x", content_type=f"{FORM}; charset=latin-1")
    assert response.status_code == 415
    assert "not encoded as UTF-8" in response.content.decode()


@pytest.mark.parametrize("parameter", ["charset", "boundary", "name"])
def test_a_content_type_in_a_character_set_that_does_not_exist_is_refused(parameter: str) -> None:
    from portal.wsgi import application

    environ: dict[str, Any] = {"PATH_INFO": "/login/", "CONTENT_TYPE": f"text/html; {parameter}*=nonesuch''x"}
    setup_testing_defaults(environ)
    answers: list[str] = []
    page = b"".join(application(environ, lambda status, headers: answers.append(status)))
    assert answers == ["415 Unsupported Media Type"]
    assert b"not encoded as UTF-8" in page


def test_a_form_that_says_utf_8_is_read(engine: None) -> None:
    assert Browser().post("/login/", "email=x", content_type=f"{FORM}; charset=UTF-8").status_code == 422


def test_an_upload_is_refused_by_its_length_before_it_is_read() -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("the upload was read")

    response = Browser().post(
        "/login/",
        b"",
        content_type="multipart/form-data; boundary=x",
        CONTENT_LENGTH="150000000",
        **{"wsgi.input": Unread()},
    )
    assert response.status_code == 413
    page = response.content.decode()
    assert "larger than 1 MB" in page
    assert "damaged" not in page, "nothing is wrong with it but its size"


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("path", PAGES)
def test_more_parameters_than_are_read_are_a_bad_request_and_no_fault_in_the_log(
    settings: LazySettings, caplog: pytest.LogCaptureFixture, path: str, debug: bool
) -> None:
    settings.DEBUG = debug
    browser = Browser()
    response = browser.get(f"{path}?{TOO_MANY}")
    assert (response.status_code, traces(caplog)) == (400, [])
    assert "more than 1,000 parameters" in response.content.decode()


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("kind", DAMAGED_FORMS)
def test_a_form_that_cannot_be_read_is_a_bad_request_and_no_fault_in_the_log(
    settings: LazySettings, caplog: pytest.LogCaptureFixture, kind: str, debug: bool
) -> None:
    settings.DEBUG = debug
    body, content_type = DAMAGED_FORMS[kind]
    # One that the check of the form's origin reads, and one that it leaves to the view.
    for browser in (Browser(enforce_csrf_checks=True), Browser()):
        browser.cookies["pooldesk_csrf"] = "x" * 32
        response = browser.post("/login/", body, content_type=content_type)
        assert (response.status_code, traces(caplog)) == (400, [])
        assert "The form that was sent is damaged" in response.content.decode()


def test_a_form_that_breaks_off_is_a_bad_request_and_no_fault_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    for content_type in (FORM, MULTIPART):
        response = Browser().post("/login/", "a=1", content_type=content_type, **{"wsgi.input": BrokenOff()})
        assert (response.status_code, traces(caplog)) == (400, [])


def every_fault() -> list[type[Exception]]:
    found: list[type[Exception]] = []
    families: list[type[Exception]] = list(CLIENT_FAULTS)
    while families:
        found.append(families.pop())
        families += found[-1].__subclasses__()
    return found


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("fault", every_fault())
def test_a_clients_fault_that_a_view_finds_is_a_bad_request_and_no_fault_in_the_log(
    settings: LazySettings,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[Exception],
    debug: bool,
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise fault("x")

    settings.DEBUG = debug
    monkeypatch.setattr(identity_views, "render", fail)
    assert (Browser().get("/login/").status_code, traces(caplog)) == (400, [])


def traces(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says with a traceback."""
    return [record.getMessage() for record in caplog.records if record.exc_info]


_HUGE: Final = "9" * 5000  # more digits than Python reads
_NOT_1: Final = ("\uff11", "\u0661", "\u00b9", "1\n", "0", _HUGE)  # the digit 1 of other scripts, and others


@pytest.mark.parametrize(
    ("path", "field", "value", "others"),
    [
        ("/tickets/bulk/", "tickets", "{}.1.open.", {"to": "pending"}),
        ("/tickets/bulk/", "tickets", "1.{}.open.", {"to": "pending"}),
        ("/tickets/1/tick/", "tick", "{}.00000000.1", {}),
        ("/tickets/spam/mark/", "tickets", "{}", {}),
        ("/tickets/files/", "size", "{}", {"name": "a.txt"}),
        ("/acme/articles/1/publish/", "edit", "{}", {}),
        ("/acme/articles/1/versions/", "before", "{}", None),
        ("/tickets/1/", "entry", "{}026-11-27T10:00:00.000000Z~a", None),
        ("/tickets/past/", "from", "{}", None),
    ],
)
def test_a_number_is_written_in_few_plain_digits_and_anything_else_does_nothing(
    world: World, path: str, field: str, value: str, others: dict[str, object] | None
) -> None:
    world.tickets("acme", 1)
    alice, browser = world.context("alice", "acme"), world.browser("alice", "acme")
    articles.published(alice, "Paper")
    for text in _NOT_1:
        sent = {field: value.format(text)}
        answer = browser.get(path, sent) if others is None else browser.send(path, {**others, **sent})
        assert answer.status_code not in (404, 500), text
    summary = changing.read(alice, 1)
    assert (int(summary.version), summary.is_aside) == (1, False)


def test_a_text_of_odd_digits_is_shown_and_leads_to_no_ticket(world: World) -> None:
    alice, browser = world.context("alice", "acme"), world.browser("alice", "acme")
    for text in ("#\uff11", "#1\u0661", f"- [ ] a\n\n\ue000{_HUGE}\ue001", f"#{_HUGE}"):
        number = creating.create(alice, title="Digits", description=text)
        page = browser.get(f"/tickets/{number}/")
        assert page.status_code == 200
        assert not re.search(r'<a href="[^"]*">#', page.content.decode())


def test_a_host_that_is_not_served_is_one_line_of_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        response = Browser().get("/login/", headers={"Host": "elsewhere.example"})
    assert response.status_code == 400
    assert "This host name is not served here." in response.content.decode()
    (record,) = [one for one in caplog.records if "a host that ALLOWED_HOSTS does not name" in one.getMessage()]
    assert record.exc_info is None
    assert "elsewhere.example" not in caplog.text


def test_a_request_without_a_host_is_a_bad_request() -> None:
    response = Browser().get("/login/", SERVER_NAME="waitress.invalid")
    assert response.status_code == 400
    assert "This host name is not served here." in response.content.decode()


def test_no_request_is_refused_because_messages_wait_for_a_page_that_nobody_opens(world: World, settings: Any) -> None:
    """With DEBUG, Django raises where it has to drop messages, after the view has written."""
    world.tickets("acme", 1)
    settings.DEBUG, bob = True, world.browser("bob")
    for n in range(30):
        said = {"version": n + 1, "priority": "low" if n % 2 else "high"}
        assert bob.send("/tickets/1/change/", said).status_code == 302


@pytest.mark.parametrize(
    ("who", "path", "status"), [("vera", "/tickets/1/comment/", 403), ("bob", "/tickets/99/comment/", 404)]
)
def test_what_was_typed_is_shown_where_a_role_or_a_ticket_has_gone_meanwhile(
    world: World, who: str, path: str, status: int
) -> None:
    world.tickets("acme", 1)
    answer = world.browser(who, "acme").send(path, {"body": "Long and <b>dear</b>.", "request_id": "a" * 32})
    assert (answer.status_code, "Long and &lt;b&gt;dear&lt;/b&gt;." in answer.content.decode()) == (status, True)
