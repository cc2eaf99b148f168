"""The pages on which many tickets are changed: what to change, how far a job is, and what became of each ticket."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.desk.test_cost import IDENTITY, spent
from tests.support.world import World
from tickets.bulk_jobs import bulk_job, bulk_requests
from tickets.desk import changing
from tickets.desk.changing import Wishes
from tickets.ticket.fields import Priority, Status

EDIT = "/tickets/bulk/edit/"


def text(response: Any) -> str:
    return str(response.content.decode())


def said(response: Any) -> list[str]:
    return re.findall(r"data-text>([^<]+)", text(response))


def work() -> int:
    return bulk_job.follower(per_second=1e6).turn()


def test_fields_of_selected_tickets_are_changed_and_each_refusal_is_told(world: World) -> None:
    world.tickets("acme", 3)
    bob, alice = world.browser("bob"), world.context("alice", "acme")
    chosen = [f"{n}.1.open." for n in (1, 2, 3)]
    form = text(bob.send(EDIT, {"tickets": chosen, "back": "/tickets/"}))
    assert "Change 3 tickets" in form
    assert form.count('name="tickets"') == 3
    changing.change(alice, 2, Wishes(priority=Priority.LOW))
    changing.change(alice, 3, Wishes(priority=Priority.HIGH), version=1)
    done = bob.send(
        EDIT,
        {"tickets": chosen, "apply": "yes", "back": "/tickets/", "priority": "high", "add_tags": "a, b"},
        follow=True,
    )
    assert said(done) == ["2 tickets changed.", "#2 Ticket 2 was changed meanwhile: priority."]
    assert changing.read(alice, 1).tags == ["a", "b"]
    receipt = re.search(r'name="receipt" value="([^"]+)"', text(done))
    assert receipt
    bob.send("/tickets/bulk/undo/", {"receipt": receipt[1]})
    assert (changing.read(alice, 1).priority, changing.read(alice, 1).tags) == ("normal", [])


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({}, "Choose what to change."),
        ({"remove_tags": "kept", "priority": "huge"}, "Select a valid choice"),
        ({"remove_tags": "kept", "add_tags": "a|b"}, "contains one of # | &lt; &gt;"),
        ({"remove_tags": "kept", "resolver": "f" * 32}, "Select a valid choice"),
    ],
)
def test_bad_input_gets_a_sentence_and_loses_nothing(world: World, typed: dict[str, str], sentence: str) -> None:
    world.tickets("acme", 1)
    page = world.browser("bob").send(EDIT, {"tickets": ["1.1.open."], "apply": "yes", **typed})
    assert page.status_code == 422
    assert sentence in text(page)
    assert 'value="1.1.open."' in text(page)
    if typed:
        assert 'value="kept"' in text(page)


def test_all_tickets_of_a_list_are_changed_by_a_job_whose_page_tells_of_each(world: World) -> None:
    world.tickets("acme", 52)
    bob, alice = world.browser("bob"), world.context("alice", "acme")
    changing.change(alice, 7, Wishes(status=Status.CLOSED))
    queue = text(bob.get("/tickets/?status=any"))
    (link,) = re.findall(r'data-all-of-list[^>]* href="/acme([^"]+)"', queue)
    asked = bob.get(link.replace("&amp;", "&"))
    assert "Change all 52 tickets" in text(asked)
    sent = bob.send(EDIT, {"list": "status=any", "apply": "yes", "status": "pending", "resolver": "none"})
    where = sent["Location"].removeprefix("/acme")
    page = text(bob.get(where))
    assert 'hx-trigger="load delay:2s"' in page
    assert "Cancel the bulk change" in page
    assert "Status: Pending" in page
    assert work() == 1
    page = text(bob.get(where))
    assert "51 changed" in page
    assert "A closed ticket cannot become pending" in page
    assert "hx-trigger" not in page[page.index('id="bulk-job"') : page.index("</section>", page.index('id="bulk-job"'))]
    undo = bob.send(f"{where}undo/", follow=True)
    assert "Undo of a bulk change" in text(undo)
    work()
    assert {changing.read(alice, n).status for n in (1, 20, 52)} == {"open"}
    assert text(bob.get("/tickets/bulk/jobs/")).count("is done") == 2


def test_a_second_job_is_refused_by_a_sentence_at_the_form(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.browser("bob")
    asked = {"list": "status=open", "apply": "yes", "priority": "high"}
    first = bob.send(EDIT, asked)
    assert first.status_code == 302
    again = bob.send(EDIT, asked)
    assert again.status_code == 422
    assert "Another bulk change of this desk is running." in text(again)
    cancelled = bob.send(first["Location"].removeprefix("/acme") + "cancel/", follow=True)
    assert "is being cancelled" in text(cancelled)
    work()
    assert "was cancelled" in text(bob.get(first["Location"].removeprefix("/acme")))


def test_what_the_pages_cost(world: World) -> None:
    world.tickets("acme", 3)
    alice = world.browser("alice", "acme")
    job_id = bulk_requests.ask(
        world.context("alice", "acme"),
        bulk_requests.TicketEdit.of({"priority": "low"}),
        params={"status": "open"},
        by=bulk_requests.Actor("x"),
    )
    running = spent(alice, f"/tickets/bulk/jobs/{job_id}/")
    work()
    ended = spent(alice, f"/tickets/bulk/jobs/{job_id}/")
    assert (running.trips, ended.trips) == (2, 3)  # the identity, the job beside the members, its parts
    assert ended.read_units <= IDENTITY + 4
