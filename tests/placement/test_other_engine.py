"""A silo that is another engine, at another address: a desk moves there, is worked on and comes back, and when the
engine is away nobody else notices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from django.conf import LazySettings

from delivery.outbox.stored import OUTBOX
from delivery.queues.dispatcher import Dispatcher
from delivery.queues.message_handling import MessageHandler
from delivery.queues.sender import Sender
from portal.dynamo import client
from portal.dynamo.placement import Placement
from portal.engines.endpoint import REGION, free_port
from portal.streams.poller import Poller
from portal.streams.poller_fleet import PollerFleet
from portal.streams.stream_source import StreamSource
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import placements, tenant_directory
from tests.engine_plugin import QuickMinistack
from tests.moving.moves import last, mover
from tests.support import deliveries, folding, placed
from tests.support.commands import run
from tests.support.endpoints import SETTINGS
from tests.support.engine_memory import Wire, wire
from tests.support.folding import numbers
from tests.support.kills import Killed
from tests.support.operators import Operator, make_operator
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.receivers import answering, listening
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.following.ticket_stream import handle
from tickets.moving import move_requests
from tickets.ticket.stored import TICKETS

TICKET = {"title": "The lift hums", "description": "All night.", "priority": "normal", "request_id": "a" * 32}
FAR = Placement("silo", "far")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture(scope="module")
def other() -> Iterator[QuickMinistack]:
    """A second engine, in a process and on a port of its own."""
    with QuickMinistack() as engine:
        yield engine


@pytest.fixture
def far(world: World, other: QuickMinistack, settings: LazySettings) -> World:
    """The world, and a site that nobody uses yet."""
    Wire(other.endpoint_url).post("/_ministack/reset")
    settings.SILOS = {"far": {"endpoint_url": other.endpoint_url, "region": REGION, "prefix": "Far"}}
    client.reset()
    return world


@contextmanager
def away(settings: LazySettings) -> Iterator[None]:
    """Nothing listens where the other engine was."""
    stated = settings.SILOS
    settings.SILOS = {"far": {**stated["far"], "endpoint_url": f"http://127.0.0.1:{free_port()}"}}
    client.reset()
    try:
        yield
    finally:
        settings.SILOS = stated
        client.reset()


@contextmanager
def followed() -> Iterator[PollerFleet]:
    """The tickets' streams, those of own tables too, as a stream worker follows them."""
    fleet = PollerFleet(TICKETS, partial(Poller, TICKETS, handle, lease_seconds=1), look_seconds=0.1)
    with fleet.running(), folding.poller():
        yield fleet


def place(*options: str) -> None:
    ended = run("place_tenant", "acme", "--settle=0", *options)
    assert ended.status == 0, ended.err


def names_at(engine: QuickMinistack) -> list[str]:
    return sorted(Wire(engine.endpoint_url).call("ListTables")["TableNames"])


def in_the_pool(world: World) -> list[str]:
    """What is Acme's in the tickets' table of all, but for what goes by TTL."""
    found = [raw for raw in wire().call("Scan", TableName=TICKETS.full_name)["Items"] if "expires_at" not in raw]
    return [raw["pk"]["S"] for raw in found if world.tenants["acme"].tenant_id in raw["pk"]["S"]]


def test_a_place_that_is_gone_for_good_is_given_up_for_a_reason(far: World, settings: LazySettings) -> None:
    far.tickets("acme", 2)
    acme = far.tenants["acme"].tenant_id
    with followed():
        place("--on=silo/far")
        place("--on=pool", "--grace=0")
    with away(settings):
        assert run("place_tenant", "acme", "--discard").status == 1
        assert "need --reason" in run("place_tenant", "acme", "--discard", "--lost").err
        place("--discard", "--lost", "--reason=The account was closed.")
        assert (tenant_directory.get(acme).former_placement, placements.listed()) == (None, [])


def test_a_move_to_a_place_that_went_away_is_called_off_for_a_reason(far: World, settings: LazySettings) -> None:
    far.tickets("acme", 2)
    acme = far.tenants["acme"].tenant_id
    move_requests.begin(tenant_directory.get(acme), to=FAR, by=SYSTEM)

    def die(phase: str) -> None:
        if phase == "catching":
            raise Killed

    with pytest.raises(Killed):
        mover(far, die).run()
    with away(settings):
        assert run("place_tenant", "acme", "--roll-back", "--settle=0").status == 1
        assert last(far).state == "cancelling"
        place("--roll-back", "--lost", "--reason=The account was closed.")
    assert (last(far).state, tenant_directory.get(acme).move, placements.listed()) == ("cancelled", None, [])
    assert far.browser("alice", "acme").send("/tickets/new/", TICKET).status_code == 302


def test_a_desk_moves_to_another_engine_is_worked_on_there_and_comes_back(far: World, other: QuickMinistack) -> None:
    far.tickets("acme", 3)
    alice = far.browser("alice", "acme")
    with followed():
        place("--on=silo/far")
        place("--discard", "--now")
        assert in_the_pool(far) == []
        tenant_id = far.tenants["acme"].tenant_id
        assert f"Far.{tenant_id}.Support.Tickets" in names_at(other)
        made = alice.send("/tickets/new/", TICKET)
        assert made.status_code == 302
        alice.send("/tickets/1/comment/", {"body": "From afar.", "request_id": "b" * 32})
        ended = run("verify_aggregates", "--tenant", "acme")
        assert ended.status == 0, ended.err
        assert numbers(far.context("alice", "acme"))["open.normal"] == 4
        assert "/acme/tickets/4/" in alice.get("/search/?q=hums").content.decode()
        exported = alice.send("/tickets/export/?status=any")
        assert b"".join(exported.streaming_content).count(b"\n") >= 4
        place("--on=pool")
        place("--discard", "--now")
        assert names_at(other) == []
        page = alice.get("/tickets/1/").content.decode()
        assert "From afar." in page
        assert run("verify_aggregates", "--tenant", "acme").status == 0
    assert numbers(far.context("alice", "acme"))["open.normal"] == 4


def test_what_happens_there_is_told_to_a_webhook(far: World, settings: LazySettings) -> None:
    tenant_id, queues, heard = placed.lay(far, "acme", FAR), QueuesInMemory(), list[bytes]()
    alice = far.browser("alice", "acme")
    source = StreamSource(tenant_id, FAR)
    with listening(answering(OK, heard=heard)) as receiver:
        url = f"http://127.0.0.1:{receiver.port}"
        settings.WEBHOOK_RECEIVER = url
        hook = {"url": f"{url}/hooks", "event_types": ["ticket.created"], "request_id": "c" * 32}
        assert alice.send(f"{SETTINGS}new/", hook).status_code == 200
        with source.entered():
            one = Poller(OUTBOX, Dispatcher(Sender(queues)).handle)
            one.step()
            alice.send("/tickets/new/", TICKET)
            one.step()
            one.release()
        (message,) = queues.left()
        assert MessageHandler().handle(deliveries.received(message)).did == "answered"
    assert b"The lift hums" in heard[-1]


# --- its engine is away ---


def test_while_it_is_away_its_own_desk_alone_is_told_so(far: World, settings: LazySettings) -> None:
    placed.lay(far, "acme", FAR)
    far.tickets("acme", 1)
    far.tickets("globex", 1)
    alice, charlie = far.browser("alice", "acme"), far.browser("charlie")
    with away(settings):
        page = alice.get("/tickets/")
        assert (page.status_code, int(page["Retry-After"]) > 0) == (503, True)
        said = alice.send("/tickets/1/comment/", {"body": "Kept for me.", "request_id": "d" * 32})
        assert (said.status_code, "Kept for me." in said.content.decode()) == (503, True)
        assert alice.get("/desk/members/").status_code == 200
        for path in ("/tickets/", "/tickets/1/", "/tickets/dashboard/", "/search/?q=ticket"):
            assert charlie.get(path).status_code == 200
        assert charlie.send("/tickets/new/", TICKET).status_code == 302
    assert alice.get("/tickets/1/").status_code == 200


def test_while_it_is_away_workers_go_on_with_all_other_streams_and_with_it_afterwards(
    far: World, settings: LazySettings
) -> None:
    placed.lay(far, "acme", FAR)
    with away(settings), followed() as fleet:
        wait_until(lambda: fleet._following)
        far.tickets("globex", 2)
        wait_until(lambda: numbers(far.context("charlie", "globex")).get("open.normal") == 2)
    far.tickets("acme", 1)
    with followed():
        wait_until(lambda: numbers(far.context("alice", "acme")).get("open.normal") == 1)


def test_while_it_is_away_operators_see_whose_tables_do_not_answer(far: World, settings: LazySettings) -> None:
    placed.lay(far, "acme", FAR)
    make_operator()
    root = Operator.signed_in()
    with away(settings):
        ended = run("check_health")
        status = root.get("/admin/status/")
        pages = [
            root.get(path).status_code for path in ("/admin/", "/admin/places/?tenant=acme", "/admin/tenants/tenant/")
        ]
    assert (ended.status, "silo/far" in ended.err) == (1, True)
    assert (status.status_code, pages) == (200, [200, 200, 200])
    assert "silo/far" in status.content.decode()
