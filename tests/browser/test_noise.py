"""The noise page in a browser: it looks again by itself, and says where it could not."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from portal.load.measurement import NoiseTally
from tests.browser.conftest import NewPage, Witness
from tests.noise.test_noise_page import told
from tests.support.operators import make_operator
from tests.support.world import World

pytestmark = pytest.mark.browser

LOUD = NoiseTally(requests=123_456, units=23_456, refused=345, reads=9_999, writes=999, throttles=12, wait=400)


def test_it_looks_again_by_itself_and_says_where_it_could_not(world: World, person: NewPage, witness: Witness) -> None:
    world.users["root"] = make_operator()
    acme, globex = (world.tenants[name].tenant_id for name in ("acme", "globex"))
    told({acme: LOUD})
    page = person("root")
    page.clock.install()
    page.goto("/admin/noise/")
    noisy, trouble = page.locator("#noise-noisy tbody th"), page.locator("[data-refresh-problem]")
    expect(noisy).to_have_text(["acme"])
    expect(trouble).to_be_hidden()
    page.get_by_role("link", name="acme").first.focus()

    told({globex: NoiseTally(requests=5)})
    page.clock.run_for(17_000)
    expect(noisy).to_have_text(["acme", "globex"])
    expect(page.get_by_role("link", name="acme").first).to_be_focused()

    witness.accepts(503)
    page.route("**/admin/noise/", lambda route: route.fulfill(status=503, body="away"))
    page.clock.run_for(17_000)
    expect(trouble).to_be_visible()
    expect(noisy).to_have_text(["acme", "globex"])

    page.unroute("**/admin/noise/")
    page.clock.run_for(17_000)
    expect(trouble).to_be_hidden()
