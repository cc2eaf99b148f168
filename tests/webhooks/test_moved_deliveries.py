"""What was told where a desk lay before is shown and sent again from there, as long as that copy is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from delivery.outbox.stored import OUTBOX, OutboxItem
from delivery.queues.message_handling import MessageHandler
from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.streams.stream_source import StreamSource
from tests.support import deliveries, placed
from tests.support.endpoints import SETTINGS, endpoint, tell
from tests.support.folding import Follower
from tests.support.receivers import Receiver, answering, listening
from tests.support.world import World

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening(answering(OK)) as found, override_settings(WEBHOOK_RECEIVER=f"http://127.0.0.1:{found.port}"):
        yield found


@pytest.fixture(params=[placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def where(request: pytest.FixtureRequest, settings: Any) -> Placement:
    settings.SILOS = placed.sites()
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def delivery(world: World, where: Placement, receiver: Receiver) -> str:
    """The address of a delivery that was made out of Acme's own outbox, before Acme was moved into the pool."""
    source = StreamSource(placed.lay(world, "acme", where), where)
    item, _ = endpoint(world.context("alice", "acme"), f"http://127.0.0.1:{receiver.port}/hooks")
    tell(world.context("alice", "acme"), 1)
    (row,) = told(source)
    message = deliveries.message(row, item.endpoint_id, where=where)
    assert MessageHandler().handle(deliveries.received(message)).did == "answered"
    placed.say(source.tenant_id, POOL)
    (shown,) = world.browser("alice", "acme").get(f"{SETTINGS}{item.endpoint_id}/").context["rows"]
    return f"{SETTINGS}{item.endpoint_id}/deliveries/{shown['name']}/"


def told(source: StreamSource) -> list[OutboxItem]:
    with source.entered():
        images = [record.typed_new for record in Follower(OUTBOX).new()]
    return [OutboxItem.from_raw_data(dict(image)) for image in images if image]


def test_it_is_shown_and_sent_again_from_where_it_was_told(world: World, where: Placement, delivery: str) -> None:
    alice = world.browser("alice", "acme")
    assert "no longer kept" not in alice.get(delivery).content.decode()
    page = alice.send(f"{delivery}redeliver/", follow=True)
    assert "It is being sent again" in page.content.decode()
    source = StreamSource(world.tenants["acme"].tenant_id, where)
    assert told(source)[-1].open


def test_when_the_old_copy_is_gone_it_is_kept_no_longer(world: World, where: Placement, delivery: str) -> None:
    provisioning.delete_placed(world.tenants["acme"].tenant_id, where)
    alice = world.browser("alice", "acme")
    assert "What was sent is no longer kept" in alice.get(delivery).content.decode()
    page = alice.send(f"{delivery}redeliver/", follow=True)
    assert "no longer kept" in page.content.decode()
