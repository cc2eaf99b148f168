"""Who looks for somebody that was erased already is told so, and erases again only what is there again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenants.audit_trail.recording import Actor
from tenants.audit_trail.stored import AUDIT
from tenants.membership import member_changes
from tests.support.commands import everything, run
from tests.support.operators import text_of
from tests.support.world import World
from tickets.data import person_erasing
from tickets.desk import commenting, creating
from tickets.ticket.stored import TICKETS

BOB = "bob@example.com"
PAGE = "/desk/settings/person/"
AT = r"was erased on \d+ \w+ \d{4}, \d\d:\d\d UTC, and is Erased person \w{4} in this desk\."


@pytest.fixture
def desk(world: World) -> World:
    """Bob asked for ticket 1, in which Alice wrote his address, and has left."""
    bob, alice = world.context("bob", "acme"), world.context("alice", "acme")
    creating.create(bob, title="The lift")
    commenting.comment(alice, 1, body=f"I wrote to {BOB}.")
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    return world


def searched(desk: World, address: str = BOB) -> Any:
    return desk.browser("alice", "acme").send(PAGE, {"address": address})


def test_of_somebody_erased_the_page_says_when_and_as_whom_and_what_little_is_left(desk: World) -> None:
    assert "was erased" not in text_of(searched(desk))
    run("erase_person", "acme", BOB, "--texts")
    page = searched(desk)
    told = text_of(page)
    assert re.search(AT, told), told
    assert "Nothing is left to be erased." in told
    assert "What stays; the audit trail shows the pseudonym: Audit trail, 1 row" in told
    assert b"Erase this person" not in page.content
    assert re.search(AT, run("find_person", "acme", BOB).err)
    nora = "nora@example.org"  # who stands in texts alone
    commenting.comment(desk.context("alice", "acme"), 1, body=f"Ask {nora}.")
    run("erase_person", "acme", nora, "--texts")
    told = text_of(searched(desk, nora))
    assert (bool(re.search(AT, told)), "stores nothing" in told, "What stays" in told) == (True, False, False), told


def test_an_erasure_where_nothing_is_left_is_refused_and_leaves_no_second_record(desk: World) -> None:
    run("erase_person", "acme", BOB, "--texts")
    before = repr([everything(AUDIT), everything(TICKETS)])
    ended = run("erase_person", "acme", BOB, "--texts")
    assert (ended.status, "Nothing is left to be erased." in ended.err) == (1, True)
    assert repr([everything(AUDIT), everything(TICKETS)]) == before
    assert text_of(desk.browser("alice", "acme").get(PAGE)).count("in place of the name") == 1


def test_what_an_erasure_has_left_or_somebody_wrote_since_can_be_erased_again(desk: World) -> None:
    run("erase_person", "acme", BOB)
    page = searched(desk)
    told = text_of(page)
    assert re.search(AT, told), told
    assert ("Nothing is left" in told, "Erase again" in told) == (False, True)
    assert "occurs here in texts alone" in run("erase_person", "acme", BOB).err
    assert run("erase_person", "acme", BOB, "--texts").status == 0
    assert BOB not in repr(everything(TICKETS))


def test_an_erasure_that_was_not_ended_is_said_and_offered(desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(person_erasing, "end", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("erase_person", "acme", BOB, "--texts")
    told = text_of(searched(desk))
    assert ("was interrupted" in told, "Erase again" in told) == (True, True), told
    assert "not to the end" in run("find_person", "acme", BOB).err
    assert run("erase_person", "acme", BOB).status == 0
    assert re.search(AT, text_of(searched(desk)))
