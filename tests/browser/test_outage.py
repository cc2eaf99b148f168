"""The engine goes away and comes back while somebody works: on an engine of this file alone, which really stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import Browser, expect

from portal.dynamo import client, provisioning
from portal.engines.engine_process import Engine, start_engine
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit
from tests.support.world import World

pytestmark = pytest.mark.browser

TEXT = "An hour of work"


@pytest.fixture
def engine(chromium: Browser, tmp_path: Path, settings: LazySettings) -> Iterator[Engine]:
    """One that keeps its data when it is stopped, and starts again on the same port."""
    with start_engine(state_dir=tmp_path / "engine", report=lambda text: None) as engine:
        settings.DYNAMODB_ENDPOINT_URL = engine.endpoint_url
        client.reset()
        provisioning.create_all()
        yield engine
    del settings.DYNAMODB_ENDPOINT_URL
    client.reset()


def test_what_was_typed_outlives_an_outage(engine: Engine, world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(503)
    world.tickets("acme", 1)
    page = person("bob")
    title = page.get_by_role("heading", level=1)
    page.goto("/tickets/1/")
    page.get_by_label("Comment", exact=True).fill(TEXT)
    engine.stop()

    page.get_by_role("button", name="Comment", exact=True).click()
    expect(title).to_have_text("We cannot reach the database right now")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    assert not audit(page, "503")
    page.get_by_role("button", name="Try again").click()
    expect(title).to_have_text("We cannot reach the database right now")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    other = page.context.new_page()
    other.goto("/tickets/")
    expect(other.get_by_role("heading", level=1)).to_have_text("We cannot reach the database right now")

    engine.start()
    page.get_by_role("button", name="Try again").click()
    expect(title).to_have_text("Ticket 1")
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    other.get_by_role("link", name="Try again").click()
    expect(other.locator("[data-row]")).to_have_count(1)
