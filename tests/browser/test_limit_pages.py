"""What people see of their desk's limits: its usage, and a page that keeps what was typed."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import expect

from portal import clock
from portal.limits import usage
from portal.limits.tenant_limiter import Counts
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit
from tests.browser.portal_process import Portal, serve
from tests.support.world import World

pytestmark = pytest.mark.browser

TEXT = "An hour of work"


@pytest.fixture
def portal(chromium: object, tmp_path: Path) -> Iterator[Portal]:
    """One in which each desk may ask for four units a second, forty at once."""
    with serve(tmp_path / "server.log", TENANT_RATES="standard=4") as portal:
        yield portal


def ask(portal: Portal, cookie: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(portal.url).netloc, timeout=120)
    connection.request("GET", "/acme/tickets/", headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"})
    status = connection.getresponse().status
    connection.close()
    return status


@contextmanager
def asking_all_the_while(portal: Portal, cookie: str) -> Iterator[None]:
    """Begin with the rate used up, and use up what comes back, however long it takes."""
    while ask(portal, cookie) != 429:
        pass
    stopped = threading.Event()

    def go_on() -> None:
        while not stopped.is_set():
            ask(portal, cookie)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def test_a_refused_form_shows_what_was_typed_and_goes_through_a_moment_later(
    world: World, portal: Portal, person: NewPage, witness: Witness
) -> None:
    witness.accepts(429)
    world.tickets("acme", 1)
    cookie = world.browser("vera", "acme").cookies[settings.SESSION_COOKIE_NAME].value
    page = person("bob")
    page.goto("/tickets/1/")
    page.get_by_label("Comment", exact=True).fill(TEXT)
    heading = page.get_by_role("heading", level=1)
    with asking_all_the_while(portal, cookie):
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(heading).to_have_text("Too much at once")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    assert not audit(page, "429")
    # The form may go through, and the page that it leads to be one too many.
    again = page.get_by_role("button", name="Send again").or_(page.get_by_role("link", name="Try again"))
    while heading.inner_text() == "Too much at once":
        with page.expect_navigation():
            again.click()
    expect(page.locator("#main")).to_contain_text(TEXT)


def test_the_page_of_a_desks_usage(world: World, portal: Portal, person: NewPage) -> None:
    acme, now = world.tenants["acme"].tenant_id, clock.now()
    for minute, (units, refused) in {1: (30, 0), 2: (140, 0), 4: (236, 1208), 9: (12, 0)}.items():
        usage.add(acme, Counts(units, 5 * refused, units, refused), at=now - timedelta(minutes=minute))
    page = person("alice", "acme")
    page.goto("/desk/settings/usage/")
    expect(page.get_by_role("link", name="Usage")).to_have_attribute("aria-current", "page")
    expect(page.get_by_text("1208 requests were refused")).to_be_visible()
    assert not audit(page, "usage")
