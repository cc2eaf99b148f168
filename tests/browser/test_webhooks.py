"""An admin adds an endpoint, tries it out and sees the delivery, and what the receiver shows."""

from __future__ import annotations

import io
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from playwright.sync_api import expect

from delivery.webhooks import development_receiver
from portal.engines.endpoint import LOOPBACK, free_port
from tests.browser.conftest import NewPage
from tests.support.endpoints import endpoint, tell, work_off
from tests.support.world import World

pytestmark = pytest.mark.browser


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
