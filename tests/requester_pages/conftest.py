from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.support.mail_receiver import MailReceiver, mail_receiver
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.replies import mail_settings, ticket_links
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket.fields import Channel, Status


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
    bob = world.context("bob", "acme")
    texts = {"title": "The engine stops", "description": "It stops at **noon**."}
    return creating.create(bob, **texts, requester=ada, channel=Channel.MAIL)


@dataclass
class Guest:
    """A browser at the page of one link."""

    token: str

    def __post_init__(self) -> None:
        self.client = Client()

    @property
    def address(self) -> str:
        return reverse("tickets:r_ticket", args=[self.token])

    def get(self, more: str = "", **headers: Any) -> Any:
        return self.client.get(self.address + more, **headers)

    def send(self, what: str, follow: bool = False, **data: Any) -> Any:
        return self.client.post(f"{self.address}{what}/", data, follow=follow)

    def text(self, more: str = "") -> str:
        answer = self.get(more)
        assert answer.status_code == 200
        return str(answer.content.decode())


def link_of(world: World, number: int, person: Requester, desk: str = "acme") -> ticket_links.TicketLink:
    alice = world.context("alice", desk)
    return ticket_links.ticket_link(alice, changing.read(alice, number), person, mail_settings.read(alice))


@pytest.fixture
def guest(world: World, number: int, ada: Requester) -> Guest:
    return Guest(link_of(world, number, ada).token)


@pytest.fixture
def resolved(world: World, number: int) -> int:
    bob = world.context("bob", "acme")
    changing.change_status(bob, number, to=Status.RESOLVED, version=int(changing.read(bob, number).version))
    return number
