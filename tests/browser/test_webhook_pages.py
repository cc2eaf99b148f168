"""Every page of webhooks, found by its route, in light and dark, wide and narrow, with much and with nothing on it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import override_settings
from playwright.sync_api import expect

from delivery.management.commands import webhook_receiver
from delivery.webhooks import delivery_log, development_receiver, endpoints
from delivery.webhooks.development_receiver import Receiving
from delivery.webhooks.stored import EndpointItem
from tenants.audit_trail.recording import Actor
from tests.browser.conftest import NewPage
from tests.browser.page_audit import NARROW, audit, audit_all
from tests.isolation.test_outsider import DESK_ROUTES
from tests.support.endpoints import SETTINGS, endpoint, tell, work_off
from tests.support.receivers import answering, listening
from tests.support.world import World

pytestmark = pytest.mark.browser

ROUTES = [route for route in DESK_ROUTES if "/settings/webhooks/" in route]
LONG = "Deliveries-to-the-warehouse-" * 7
BODY = b'{"error": "' + b"x" * 1500 + b'"}'
ERROR = b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture
def failing(world: World) -> Iterator[EndpointItem]:
    """An endpoint of Acme's with a long name and address, of which one delivery failed with a long answer."""
    with listening(answering(ERROR)) as receiver:
        origin = f"http://127.0.0.1:{receiver.port}"
        with override_settings(WEBHOOK_RECEIVER=origin):
            alice = world.context("alice", "acme")
            item, _ = endpoint(alice, f"{origin}/hooks/{'x' * 170}", name=LONG[: endpoints.DESCRIPTION_LIMIT])
            tell(world.context("alice", "acme"), 250)
            work_off(alice)
            yield item


def test_no_page_of_webhooks_is_hard_to_read_or_to_reach(world: World, failing: EndpointItem, person: NewPage) -> None:
    alice = world.context("alice", "acme")
    (row,) = delivery_log.page(alice.repository, failing.endpoint_id).rows
    names = {"desk": "acme", "endpoint": failing.endpoint_id, "delivery": delivery_log.name_of(row)}
    paths = ["/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: names[m[1]], route) for route in ROUTES]
    browser, page, found = world.browser("alice", "acme"), person("alice", "acme"), []
    shown = [path for path in paths if browser.get(path).status_code == 200]  # the others take forms alone
    assert len(shown) >= 8
    for path in shown:
        page.goto(path)
        found += audit_all(page, path, within="#main")
    assert not found


def test_what_is_shown_once_asked_refused_or_not_there_yet_is_no_harder(world: World, person: NewPage) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice, name="Quiet")
    page, found = person("alice", "acme"), []
    page.goto(f"/acme{SETTINGS}{item.endpoint_id}/")
    found += audit(page, "an endpoint without a delivery", within="#deliveries")
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


def test_what_scrolls_only_in_a_window_that_was_turned_can_be_reached_by_keyboard(
    world: World, person: NewPage
) -> None:
    page = person("alice", "acme")
    page.goto(f"/acme{SETTINGS}events/")
    code = page.get_by_role("group", name="Example in Python")
    expect(code).not_to_have_attribute("tabindex", "0")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    expect(code).to_have_attribute("tabindex", "0")


def test_the_page_of_the_development_receiver(person: NewPage, world: World) -> None:
    state = Receiving(secrets=["whsec_known"])
    page, found = person("alice", "acme"), []
    for name in ("nothing arrived", "something arrived"):
        page.set_content(webhook_receiver.page_of(state))
        found += audit(page, f"receiver, {name}")
        state.take(f"{development_receiver.HOOKS}/{'x' * 200}", {"webhook-id": f"evt_{'0' * 32}_0"}, BODY, 200)
    assert not found
