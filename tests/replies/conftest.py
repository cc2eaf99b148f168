from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.mail_receiver import MailReceiver, mail_receiver
from tests.support.world import World
from tickets.desk import creating
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket.fields import Channel


@pytest.fixture
def inbox() -> Iterator[MailReceiver]:
    with mail_receiver() as receiver:
        yield receiver


@pytest.fixture
def ada(world: World) -> Requester:
    return requesters.ensure(world.context("alice", "acme"), "ada@example.org", name="Ada Lovelace")


@pytest.fixture
def number(world: World, ada: Requester) -> int:
    """The number of a ticket that Ada, who is outside, has opened."""
    create = partial(creating.create, world.context("bob", "acme"), title="The engine stops")
    return create(description="It stops at **noon**.", requester=ada, channel=Channel.MAIL)
