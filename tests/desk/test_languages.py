"""Queue and ticket in the language of each person, whoever looked at them before in another one."""

from __future__ import annotations

import pytest

from portal.errors import Invalid
from portal.web import locales
from tests.support.world import World
from tickets.desk import changing, commenting
from tickets.desk.changing import Wishes
from tickets.ticket.fields import Status

GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de"}
SAID = {
    "tickets/1/": (
        ("changed status from", "änderte Status von"),
        (">pending</ins>", ">wartend</ins>"),
        ("opened the ticket", "eröffnete das Ticket"),
        ("ticked “Call”:", "hakte „Call“ ab:"),
        ('aria-label="Comment by Alice', 'aria-label="Kommentar von Alice'),
    ),
    "tickets/?status=pending&priority=normal": (
        ("priority: normal", "Priorität: normal"),
        ("1 ticket on this page", "1 Ticket auf dieser Seite"),
        ("Pending", "Wartend"),
    ),
    "tickets/?status=closed": (("No closed tickets.", "Keine Tickets mit dem Status „Geschlossen“."),),
}


@pytest.mark.parametrize("path", SAID)
def test_a_page_is_in_the_language_of_each_person(world: World, path: str) -> None:
    world.tickets("acme", 1)
    alice = world.context("alice", "acme")
    changing.change_status(alice, 1, to=Status.PENDING, version=1)
    changing.change(alice, 1, Wishes(restoring="ticked “Call”:", description="- [x] Call"), version=2)
    commenting.comment(alice, 1, body="It stands still.")
    bob = world.browser("bob")
    for english in (True, False, True):
        page = bob.get(f"/{path}", **({} if english else GERMAN)).content.decode()
        for ours, theirs in SAID[path]:
            assert (ours in page, theirs in page) == (english, not english), (ours, theirs)


def test_the_message_after_a_change_is_in_the_language_of_the_person(world: World) -> None:
    world.tickets("acme", 1)
    sent = {"status": "pending", "version": 1}
    world.browser("bob").send("/tickets/1/change/", sent, **GERMAN)
    page = world.browser("bob").send("/tickets/1/change/", {"priority": "high", "version": 2}, **GERMAN, follow=True)
    assert "Priorität ist jetzt hoch." in page.content.decode()


def test_a_refusal_is_in_the_language_in_use(world: World) -> None:
    world.tickets("acme", 1)
    alice = world.context("alice", "acme")
    changing.change_status(alice, 1, to=Status.RESOLVED, version=1)
    with locales.in_language("de"), pytest.raises(Invalid, match="nicht von „gelöst“ zu „wartend“ wechseln"):
        changing.change_status(alice, 1, to=Status.PENDING, version=2)
