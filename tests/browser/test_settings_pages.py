"""Every page of API keys, webhooks and a desk's export, found by its route, in light and dark, wide and narrow."""

from __future__ import annotations

import io
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.management import call_command
from django.test import override_settings
from playwright.sync_api import Page, expect

from delivery.management.commands import webhook_receiver
from delivery.webhooks import delivery_log, development_receiver, endpoints
from delivery.webhooks.development_receiver import Receiving
from delivery.webhooks.stored import EndpointItem
from portal import clock
from portal.engines.endpoint import LOOPBACK, free_port
from portal.load import usage
from portal.load.measurement import NoiseTally
from tenants.api_keys import key_authentication
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import Actor
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import NARROW, WAYS, audit, audit_all, turn
from tests.isolation.test_outsider import DESK_ROUTES
from tests.support.api_keys import alter, make_key
from tests.support.endpoints import SETTINGS, endpoint, tell, work_off
from tests.support.receivers import answering, listening
from tests.support.waiting import wait_until
from tests.support.world import PASSWORD, World
from tickets.desk_export import export_job

pytestmark = pytest.mark.browser

KEYS = "/acme/desk/settings/api-keys/"
EXPORT = "/acme/desk/settings/export/"
KEY_NAME = "Synchronising-the-warehouse-with-the-desk-every-few-minutes-"
ENDPOINT_NAME = "Deliveries-to-the-warehouse-" * 7
BODY = b'{"error": "' + b"x" * 1500 + b'"}'
ERROR = b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture
def page(world: World, person: NewPage) -> Page:
    return person("alice", "acme")


def faults_of(world: World, page: Page, part: str, **names: str) -> list[str]:
    """Audit each page whose route has this part; routes that only take forms are left out."""
    routes = [route for route in DESK_ROUTES if f"/settings/{part}/" in route]
    paths = ["/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: ({"desk": "acme"} | names)[m[1]], route) for route in routes]
    browser = world.browser("alice", "acme")
    shown = [path for path in paths if browser.get(path).status_code == 200]
    assert len(shown) >= 4
    found = []
    for path in shown:
        page.goto(path)
        found += audit_all(page, path, within="#main")
    turn(page, *WAYS[0])
    return found


def test_pages_of_api_keys(world: World, page: Page, witness: Witness) -> None:
    witness.accepts(422)
    page.goto(KEYS)
    found = audit(page, "no keys", within="#main")
    alice = world.context("alice", "acme")
    networks = tuple(f"2001:db8:{number:x}:ffff:ffff:ffff:ffff:0/112" for number in range(1, 9))
    origins = tuple(f"https://a-rather-long-name-{number}.of-a-page.example.com:8443" for number in range(5))
    key, _ = make_key(alice, *Scope, name=KEY_NAME, addresses=networks, origins=origins)
    alter(key, last_used_at=clock.stamp(), last_used_from="2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
    alter(make_key(alice, name="Revoked")[0], revoked_at=clock.stamp())
    tomorrow = clock.stamp(clock.now() + timedelta(days=1))
    alter(make_key(alice, name="Old")[0], expires_at=tomorrow, replaced_by=key.api_key_prefix)
    found += faults_of(world, page, "api-keys", api_key=key.api_key_prefix)
    page.goto(f"{KEYS}new/")
    page.get_by_role("button", name="Make the key").click()
    expect(page.locator("[data-error-summary]")).to_be_focused()
    found += audit(page, "a form that is refused", within="#main")
    assert not found


def test_a_key_is_made_and_copied_by_keyboard_alone(world: World, person: NewPage) -> None:
    page = person("alice", "acme", permissions=["clipboard-read", "clipboard-write"])
    page.goto(KEYS)
    page.get_by_role("link", name="Make a key").first.focus()
    page.keyboard.press("Enter")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type("Billing")
    for key in ("Tab", "Space", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Key made")).to_be_visible()
    text = page.locator("[data-secret]").inner_text()
    assert key_authentication.authenticate(text, address="").scopes == {Scope.TICKETS_READ}
    found = audit(page, "a new key", within="#main")
    page.get_by_role("button", name="Copy the key").focus()
    page.keyboard.press("Enter")
    copied = "navigator.clipboard.readText()"
    wait_until(lambda: page.evaluate(copied) == text, working=lambda: page.wait_for_timeout(20))
    assert not found


@pytest.fixture
def failing(world: World) -> Iterator[EndpointItem]:
    """An endpoint of Acme's with a long name and address, of which one delivery failed with a long answer."""
    with listening(answering(ERROR)) as receiver:
        origin = f"http://127.0.0.1:{receiver.port}"
        with override_settings(WEBHOOK_RECEIVER=origin):
            alice = world.context("alice", "acme")
            name = ENDPOINT_NAME[: endpoints.DESCRIPTION_LIMIT]
            item, _ = endpoint(alice, f"{origin}/hooks/{'x' * 170}", name=name)
            tell(world.context("alice", "acme"), 250)
            work_off(alice)
            yield item


def test_pages_of_webhooks(world: World, failing: EndpointItem, page: Page) -> None:
    (row,) = delivery_log.page(world.context("alice", "acme").repository, failing.endpoint_id).rows
    found = faults_of(world, page, "webhooks", endpoint=failing.endpoint_id, delivery=delivery_log.name_of(row))
    page.goto(f"/acme{SETTINGS}events/")
    code = page.get_by_role("group", name="Example in Python")
    expect(code).not_to_have_attribute("tabindex", "0")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    expect(code).to_have_attribute("tabindex", "0")  # what scrolls only here is reached by keyboard only here
    assert not found


def test_states_of_webhooks(world: World, page: Page) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice, name="Quiet")
    page.goto(f"/acme{SETTINGS}{item.endpoint_id}/")
    found = audit(page, "an endpoint without a delivery", within="#deliveries")
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=Actor(alice.user_id), because="It answered 410 Gone.")
    page.reload()
    found += audit(page, "a paused endpoint", within="#main")
    page.get_by_role("link", name="Replace the secret").click()
    page.get_by_role("button", name="Replace the secret").click()
    expect(page.get_by_role("heading", name="Secret replaced")).to_be_visible()
    found += audit(page, "a new secret", within="#main")
    endpoints.remove(alice, endpoint_id=item.endpoint_id, by=Actor(alice.user_id))
    page.goto(f"/acme{SETTINGS}")
    found += audit(page, "no endpoints", within="#main")
    assert not found


def test_the_page_of_the_development_receiver(page: Page) -> None:
    state, found = Receiving(secrets=["whsec_known"]), []
    for name in ("nothing arrived", "something arrived"):
        page.set_content(webhook_receiver.page_of(state))
        found += audit(page, f"receiver, {name}")
        state.take(f"{development_receiver.HOOKS}/{'x' * 200}", {"webhook-id": f"evt_{'0' * 32}_0"}, BODY, 200)
    assert not found


def test_the_page_of_mail_in_development(page: Page, settings: LazySettings, tmp_path: Path) -> None:
    settings.EMAIL_FILE_PATH, found = str(tmp_path), []
    mail = EmailMultiAlternatives(f"Re: {'long ' * 30}", "x" * 200, "acme@desk.localhost", ["jane@example.org"])
    files = get_connection("django.core.mail.backends.filebased.EmailBackend", file_path=str(tmp_path))
    opened = "document.querySelectorAll('details').forEach(one => one.open = true)"
    for name in ("nothing sent", "a mail sent"):
        page.set_content(webhook_receiver.mail_page({"text": "word " * 90}, "The mail server did not take it."))
        page.evaluate(opened)
        found += audit(page, f"mail of development, {name}")
        files.send_messages([mail])
    mail.attach_alternative(f"<h1>{'Hello ' * 40}</h1>", "text/html")
    files.send_messages([mail])
    page.set_content(webhook_receiver.mail_page())
    page.evaluate(opened)
    expect(page.frame_locator("iframe").get_by_role("heading")).to_be_visible()
    assert not found


def test_an_owner_watches_an_export_and_downloads_it(world: World, page: Page) -> None:
    world.tickets("acme", 2)
    page.goto(EXPORT)
    found = audit_all(page, "no export", within="#main")
    page.get_by_role("button", name="Export this desk").click()
    page.get_by_role("textbox", name="Password").fill(PASSWORD)  # this session has not been confirmed of late
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="Export this desk").click()
    expect(page.get_by_role("heading", name="The export is being made")).to_be_visible()
    found += audit_all(page, "an export that is being made", within="#main")
    assert export_job.follower(parts_a_second=1000.0).turn() == 1
    expect(page.get_by_role("heading", name="Your file is ready")).to_be_visible()  # it looks again by itself
    found += audit_all(page, "a file that is ready", within="#main")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download").click()
    assert downloading.value.suggested_filename.startswith("acme-")
    assert not found


def test_the_page_of_usage(world: World, page: Page) -> None:
    acme, now = world.tenants["acme"].tenant_id, clock.now()
    for minute, (units, refused) in {1: (30, 0), 2: (140, 0), 4: (236, 1208), 9: (12, 0)}.items():
        usage.add(acme, NoiseTally(units, units, refused), at=now - timedelta(minutes=minute))
    page.goto("/desk/settings/usage/")
    expect(page.get_by_text("1,208 requests were refused")).to_be_visible()
    assert not audit(page, "usage")


# --- an endpoint is tried out ---


@dataclass(frozen=True)
class DevelopmentReceiver:
    """The command `webhook_receiver` while it runs."""

    url: str

    def page(self) -> str:
        return urllib.request.urlopen(f"{self.url}/", timeout=120).read().decode()

    def tell(self, **values: str) -> None:
        data = urllib.parse.urlencode(values).encode()
        urllib.request.urlopen(f"{self.url}/", data, timeout=120).close()


@pytest.fixture
def receiver(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[DevelopmentReceiver]:
    """The command in a thread of this process, known to the portal by the setting that it reads too."""
    servers: Queue[ThreadingHTTPServer] = Queue()
    make = development_receiver.server

    def noted(*args: Any, **kwargs: Any) -> ThreadingHTTPServer:
        servers.put(make(*args, **kwargs))
        return servers.queue[0]

    monkeypatch.setattr(development_receiver, "server", noted)
    settings.WEBHOOK_RECEIVER = f"http://{LOOPBACK}:{free_port()}"
    command = Thread(target=call_command, args=["webhook_receiver"], kwargs={"stdout": io.StringIO()})
    command.start()
    server = servers.get(timeout=120)
    yield DevelopmentReceiver(settings.WEBHOOK_RECEIVER)
    server.shutdown()
    command.join()


def test_an_admin_adds_an_endpoint_tests_it_and_sees_the_delivery(
    world: World, person: NewPage, receiver: DevelopmentReceiver
) -> None:
    page = person("alice", "acme")
    page.goto("/acme/desk/settings/api-keys/")
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_role("link", name="Add an endpoint").click()
    page.get_by_label("Address").fill(f"{receiver.url}/hooks/acme")
    page.get_by_role("textbox", name="Description").fill("Our own system")
    page.get_by_label(re.compile("ticket.created")).check()
    page.get_by_role("button", name="Add endpoint").click()
    expect(page.get_by_role("heading", name="Endpoint added")).to_be_visible()
    receiver.tell(secret=page.locator("[data-secret]").inner_text())
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("Nothing has been sent yet")).to_be_visible()
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_text("A test is on its way")).to_be_visible()
    work_off(world.context("alice", "acme"))
    page.get_by_role("link", name="webhook.test").click()  # it appears by itself
    expect(page.get_by_label("Body of the request")).to_contain_text('"sent_by": "Alice Example"')
    expect(page.get_by_label("Beginning of the answer")).to_contain_text("200")
    seen = receiver.page()
    assert "The signature is right." in seen
    assert "webhook.test" in seen


def test_the_receiver_misbehaves_on_wish_and_tells_doubles(world: World, receiver: DevelopmentReceiver) -> None:
    _, secret = endpoint(world.context("alice", "acme"), f"{receiver.url}/hooks?status=503")
    receiver.tell(secret=secret)
    tell(world.context("alice", "acme"), 1)
    for _ in range(2):
        assert [outcome.state for outcome in work_off(world.context("alice", "acme"))] == ["failed"]
    assert "This event had arrived before." in receiver.page()
