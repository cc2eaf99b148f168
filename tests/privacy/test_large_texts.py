"""Texts that have no room for a pseudonym are erased as well, or named; what is behind them is done in any case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portal.dynamo.meter import item_size
from portal.dynamo.store import ITEM_LIMIT
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tests.support import archives
from tests.support.commands import Ended, everything, run
from tests.support.operators import text_of
from tests.support.stored import unguarded
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.ticket.stored import TICKETS

BOB = "bob@example.com"


@pytest.fixture
def desk(world: World) -> World:
    """Bob has left Acme, and has no ticket."""
    tenant_id = world.tenants["acme"].tenant_id
    member_changes.remove(user_id=world.users["bob"].id, tenant_id=tenant_id, by=SYSTEM)
    return world


def erased() -> Ended:
    return run("erase_person", "acme", BOB, "--texts")


def descriptions() -> set[str]:
    return {item["description"]["S"] for item in everything(TICKETS) if "description" in item}


def test_a_text_without_room_for_the_name_has_a_shorter_one_and_loses_nothing_else(desk: World, tmp_path: Path) -> None:
    body = f"{BOB} wrote. " * 17_000
    assert archives.imported(archives.write(tmp_path / "a.json", archives.issue(1, body=body))).status == 0
    creating.create(desk.context("alice", "acme"), title="Behind it", description=f"Ask {BOB}.")
    alice = desk.browser("alice", "acme")
    page = alice.send("/desk/settings/person/", {"address": BOB})
    typed = {"so_far": page.context["so_far"], "typed_address": BOB, "texts": "on"}
    told = text_of(alice.send("/desk/settings/person/erase/", typed, follow=True))
    assert "Ticket 1 has a text without room for the whole name: a shorter one is in it." in told
    (short,) = {f"Erased {digits}" for digits in re.findall(r"Erased person (\w{4})", told)}
    name = short.replace("Erased", "Erased person")
    assert descriptions() == {f"Ask {name}.", body.replace(BOB, short).strip()}


def test_a_ticket_without_any_room_is_named_and_those_behind_it_are_done(desk: World) -> None:
    alice = desk.context("alice", "acme")
    for number in (1, 2):
        creating.create(alice, title=f"Ticket {number}")
        commenting.comment(alice, number, body="Me.")
    for item in everything(TICKETS):
        if "body" in item:
            item |= {"author": {"S": desk.users["bob"].id}, "author_name": {"S": "B"}}
            if "TICKET#1" in item["pk"]["S"]:
                item["body"]["S"] += "." * (ITEM_LIMIT - item_size(item))
            unguarded().dispatch("PutItem", {"TableName": TICKETS.full_name, "Item": item})
    ended = erased()
    assert (ended.status, ended.out) == (1, "")
    assert "Ticket 1 has no room left for the pseudonym. All others are done." in ended.err
    authors = {item["pk"]["S"][-1]: item["author_name"]["S"] for item in everything(TICKETS) if "body" in item}
    assert (authors["1"], authors["2"].startswith("Erased person")) == ("B", True)
    assert "was erased, but not to the end" in run("find_person", "acme", BOB).err
