"""The noise page in a browser: it looks again by itself, says where it could not, and is readable at 390 pixels."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from delivery.queues import depths
from delivery.queues.queue_transport import Depth
from portal.load.measurement import NoiseTally
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import TOO_WIDE, WAYS, grave, show
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


def test_full_of_figures_it_is_read_at_each_width_in_light_and_dark(world: World, person: NewPage) -> None:
    world.users["root"] = make_operator()
    told({world.tenants["acme"].tenant_id: LOUD} | {f"{n:032x}": NoiseTally(requests=n, refused=n) for n in range(12)})
    depths.write([Depth(number, 3, 0) for number in range(8)])
    page, found = person("root"), []
    page.goto("/admin/noise/")
    for scheme, size in WAYS:
        show(page, scheme, size)
        way = f"{scheme}, {size['width']}"
        found += [f"{way}: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
        found += grave(page, way, within="#main")
    assert not found
