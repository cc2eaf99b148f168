"""What export_tickets writes is what the API says, and more of the same kind."""

from __future__ import annotations

import json

from tenants.api_keys.scopes import Scope
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.ticket.fields import Status

WAITS = {"due_at", "missed_at", "snoozed", "target"}  # what a ticket waits for now, which is no part of what it was
MORE = {"desk", "activity", "responded_at", "days"}  # what the API has elsewhere, or counts from


def test_a_line_of_the_export_says_of_a_ticket_what_the_api_says(world: World) -> None:
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    creating.create(alice, title="The printer", description="It *broke*.", tags=["printer"])
    changing.assign(alice, 1, to=bob.user_id, version=1)
    commenting.comment(bob, 1, body="Between us.", internal=True)
    commenting.comment(bob, 1, body="Done.", then=Status.RESOLVED)
    client = api_client(world, Scope.TICKETS_READ, Scope.NOTES_READ)

    line = json.loads(run("export_tickets", "--tenant", "acme").out)

    said = {name: value for name, value in client.ask("/tickets/1").json().items() if name not in WAITS}
    assert {name: value for name, value in line.items() if name not in MORE} == said
    told = client.ask("/tickets/1/activity").json()["data"]
    assert line["activity"] == [{n: v for n, v in entry.items() if v is not None} for entry in told]
