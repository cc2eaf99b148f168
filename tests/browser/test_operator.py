"""Pages of the operators' admin, in light and dark, on a wide screen and a narrow one."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from playwright.sync_api import expect

from delivery.outbox.outbox_rows import Work
from delivery.queues import dead_deliveries, depths, holds
from delivery.queues.queue_transport import Depth
from portal import logs
from portal.dynamo.store import Store
from portal.faults import fault_board
from portal.load.measurement import NoiseTally
from portal.logs import FaultNotes
from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage, Witness, sign_in
from tests.browser.page_audit import TOO_WIDE, grave, show, ways_of
from tests.isolation.test_outsider import OPERATOR_ROUTES
from tests.load.test_noise_page import told
from tests.operators.test_errors_page import fail
from tests.support import deliveries
from tests.support.operators import make_operator, membership_url, tenant_url, user_url
from tests.support.world import World
from tickets.sharding import reshard_requests
from tickets.sharding.reshard_follower import ReshardFollower

pytestmark = pytest.mark.browser

LOUD = NoiseTally(requests=123_456, units=23_456, refused=345, reads=9_999, writes=999, throttles=12, wait=400)


# Tables that are wider than their box, so that a column is cut until somebody scrolls.
CUT = """() => [...document.querySelectorAll(".results")].filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.innerText.slice(0, 120))"""


# Every page whose address names nothing: the lists, and the pages of the sidebar.
PLAIN = [f"/{route}" for route in OPERATOR_ROUTES if "<" not in route and not route.endswith(("jsi18n/", "add/"))]


def pages(world: World, dead: str) -> list[str]:
    """Each page once, with something on it where it can be asked for that."""
    acme, bob = world.tenants["acme"].tenant_id, world.users["bob"].id
    asked = [
        "/admin/queues/?tenant=acme",
        "/admin/shards/?tenant=acme",
        "/admin/blast-radius/?queues=32&size=4&tenants=1240",
        f"/admin/tenants/membership/?tenant_id={acme}",
        f"/admin/tenants/session/?user_id={bob}",
        f"/admin/tenants/auditrow/?tenant_id={acme}",
        f"/admin/tickets/ticket/?tenant_id={acme}&status__exact=open",
        "/admin/search/?tenant=acme&q=ticket",
        "/admin/rights/?role=platform",
        "/admin/rights/?role=lifecycle",
    ]
    return [
        *sorted({*PLAIN} - {path.partition("?")[0] for path in asked}),
        *asked,
        "/admin/tenants/tenant/add/",
        tenant_url(world, "acme"),
        tenant_url(world, "acme", "history/"),
        user_url(world, "bob"),
        membership_url(world, "bob", "acme", "delete/"),
        dead,
    ]


@pytest.fixture
def dead(world: World) -> str:
    """The address of a dead delivery with a long reason, of a tenant whose deliveries wait."""
    acme = world.tenants["acme"]
    holds.pause(acme, by=SYSTEM, reason="The receiver asked for it.")
    row = deliveries.row(acme.tenant_id, "ep_0123456789abcdef")
    reason = "There is no host long-label-of-a-customer.integration.example.com. " * 3
    keeping = Store("tenant", acme.tenant_id)
    dead_deliveries.keep(Work(keeping, row, 0, "ep_0123456789abcdef"), reason=reason)
    (letter,) = deliveries.dead()
    return f"/admin/delivery/deaddelivery/{quote(f'{letter.tenant_id}/{letter.letter_id}')}/change/"


@pytest.fixture
def resharded(world: World) -> None:
    """One tenant that was resharded for a long reason, and one that is waiting for it."""
    reason = "Partition 0 of open tickets took 1,204 write units a second, and 500 count as hot. " * 2
    reshard_requests.begin(world.tenants["acme"], shards=4, reason=reason, by=SYSTEM)
    ReshardFollower(hot=0, settle_seconds=0).turn()
    reshard_requests.begin(world.tenants["globex"], shards=2, by=SYSTEM)


@pytest.fixture
def noise(world: World) -> None:
    """Thirteen noisy tenants, one of them with large figures, and a depth of every queue."""
    told({world.tenants["acme"].tenant_id: LOUD} | {f"{n:032x}": NoiseTally(requests=n, refused=n) for n in range(12)})
    depths.write([Depth(number, 3, 0) for number in range(8)])


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "notes", FaultNotes())
    with logs.following(logs.new_request_id()):
        fail(ZeroDivisionError, times=3)
    fail(LookupError)
    fault_board.write("web", "platform")


@pytest.mark.usefixtures("resharded", "noise", "errors")
def test_no_page_of_the_admin_is_hard_to_read_or_wider_than_its_window_or_cuts_a_column(
    world: World, browse: NewPage, person: NewPage, dead: str
) -> None:
    world.users["root"] = make_operator()
    world.tickets("acme", 2)
    sign_in(browse(), "bob@example.com")  # with the name of a real browser, which is long
    page, found = person("root"), []
    for path in pages(world, dead):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        is_djangos = "model-" in (page.locator("body").get_attribute("class") or "") and path != dead
        for scheme, size in ways_of(page):
            if is_djangos:
                page.set_viewport_size(size)  # type: ignore[arg-type]
            else:
                show(page, scheme, size)
            way = f"{path}, {scheme}, {size['width']}"
            found += [f"{way}: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
            found += [f"{way}: cut: {element}" for element in page.evaluate(CUT)]
            found += [] if is_djangos else grave(page, way, within="#main")
    assert not found


def test_fields_beside_each_other_are_of_one_height_and_hold_an_address(
    browse: NewPage, person: NewPage, world: World
) -> None:
    world.users["root"] = make_operator()
    page = person("root")
    page.goto("/admin/search/?tenant=acme&q=printer")
    fields = page.locator(".admin-search :is(input, button), .admin-reason-form :is(#content-reason, button)")
    assert {round(field.bounding_box()["height"]) for field in fields.all()} == {34}  # type: ignore[index]
    page.goto("/admin/tenants/membership/add/")
    assert page.get_by_label("User").bounding_box()["width"] > 300  # type: ignore[index]


def test_the_noise_page_looks_again_by_itself_and_says_where_it_could_not(
    world: World, person: NewPage, witness: Witness
) -> None:
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
