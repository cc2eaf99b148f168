"""Reports on letters that were sent: they are shown on the comment and on the address, and concern one desk alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delivery.mail import bounces
from portal.errors import Invalid
from tenants.sign_in import suppressed_addresses
from tests.support import mailing
from tests.support.mail_receiver import MailReceiver
from tests.support.world import World
from tickets.desk import commenting, creating, timelines
from tickets.replies import delivery_states, message_ids
from tickets.replies.message_ids import Thread
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket.stored import ActivityItem


@pytest.fixture
def entry(world: World, number: int, inbox: MailReceiver) -> ActivityItem:
    """A comment that was sent, with a copy to Grace."""
    commenting.comment(world.context("bob", "acme"), number, body="Hello.", cc=["grace@example.org"])
    assert mailing.carry() == ["answered"]
    return comment_of(world, number)


def comment_of(world: World, number: int) -> ActivityItem:
    activity = timelines.ticket(world.context("bob", "acme"), number).activity
    (found,) = [one for one in activity if one.kind == "comment"]
    return found


def report(
    world: World, number: int, entry: ActivityItem, kind: str, address: str = "ada@example.org", **more: Any
) -> str:
    """A record of Amazon SES, as AWS documents it, about the letter of this entry."""
    about = delivery_states.tag_of(number, message_ids.entry_of(entry.sk))
    tags = {"tenant": [world.tenants["acme"].tenant_id], "about": [about]} | more.get("tags", {})
    at = "2026-11-26T00:41:02.669Z"
    told = {
        "Bounce": {
            "bounceType": "Permanent",
            "bouncedRecipients": [{"emailAddress": address, "diagnosticCode": f"smtp; 550 5.1.1 <{address}> unknown"}],
            "timestamp": at,
        },
        "Complaint": {"complainedRecipients": [{"emailAddress": address}], "timestamp": at},
    }
    mail = {"timestamp": "2026-11-26T00:40:02.012Z", "tags": tags}
    return json.dumps({"eventType": kind, kind.lower(): told[kind], "mail": mail})


def bounced_of(world: World, ada: Requester) -> dict[str, str]:
    person = requesters.find(world.context("bob", "acme"), ada.id)
    assert person is not None
    return dict(person.bounced)


def test_a_letter_that_came_back_is_shown_on_its_comment_and_on_the_address(
    world: World, number: int, ada: Requester, entry: ActivityItem
) -> None:
    assert bounces.note(report(world, number, entry, "Bounce")) == "bounced"
    found = comment_of(world, number)
    assert (found.delivery, found.delivery_note) == ("bounced", "smtp; 550 5.1.1 (address) unknown")
    assert "unknown" in bounced_of(world, ada)["ada@example.org"]


def test_a_complaint_about_a_desks_letter_keeps_no_other_mail_from_the_address(
    world: World, number: int, ada: Requester, entry: ActivityItem
) -> None:
    assert bounces.note(report(world, number, entry, "Complaint")) == "complained"
    assert comment_of(world, number).delivery == "complained"
    assert bounced_of(world, ada)
    assert suppressed_addresses.of(["ada@example.org"]) == {}, "other desks, and her own password, go on by mail"


def test_a_copy_that_came_back_leaves_the_letter_delivered(
    world: World, number: int, ada: Requester, entry: ActivityItem
) -> None:
    bounces.note(report(world, number, entry, "Bounce", "grace@example.org"))
    found = comment_of(world, number)
    assert found.delivery == "sent"
    assert str(found.delivery_note).startswith("A copy was not delivered: smtp; 550")
    assert bounced_of(world, ada) == {}


@pytest.mark.parametrize(
    "about", ["reply_", "reply_x_y", "reply_999_20261120t093000000000z-0a1b2c3d4e5f", "reply_1_new"]
)
def test_a_report_about_what_is_no_letter_of_the_desk_changes_nothing(
    world: World, number: int, entry: ActivityItem, about: str
) -> None:
    body = report(world, number, entry, "Bounce", tags={"about": [about]})
    assert bounces.note(body) == "bounced"
    assert comment_of(world, number).delivery == "sent"


def test_a_report_with_another_desks_id_changes_nothing_here(world: World, number: int, entry: ActivityItem) -> None:
    other = world.tenants["globex"].tenant_id
    bounces.note(report(world, number, entry, "Bounce", tags={"tenant": [other]}))
    assert comment_of(world, number).delivery == "sent"
    globex = world.context("charlie", "globex")
    thread = Thread(world.tenants["acme"].tenant_id, number, message_ids.entry_of(entry.sk))
    delivery_states.note_report(globex, thread, address="ada@example.org", why="It came back.")
    assert comment_of(world, number).delivery == "sent"


def test_a_report_of_another_mail_server_does_the_same(world: World, number: int, entry: ActivityItem) -> None:
    thread = Thread(world.tenants["acme"].tenant_id, number, message_ids.entry_of(entry.sk))
    for _ in range(2):
        delivery_states.note_report(
            world.context("bob", "acme"), thread, address="Ada@example.org", why="Mailbox gone."
        )
    found = comment_of(world, number)
    assert (found.delivery, found.delivery_note) == ("bounced", "Mailbox gone.")


def test_a_letter_that_came_back_before_it_was_noted_as_sent_stays_so(
    world: World, number: int, entry: ActivityItem
) -> None:
    bob = world.context("bob", "acme")
    assert delivery_states.mark(bob, number, entry.sk, "bounced")
    assert not delivery_states.mark(bob, number, entry.sk, "sent")
    assert comment_of(world, number).delivery == "bounced"


def test_no_state_is_written_on_what_is_no_letter(world: World, number: int) -> None:
    bob = world.context("bob", "acme")
    commenting.comment(bob, number, body="Not for Ada.", internal=True)
    note = timelines.ticket(bob, number).activity[-1]
    assert not delivery_states.mark(bob, number, note.sk, "sent")
    assert timelines.ticket(bob, number).activity[-1].delivery is None


def test_a_report_about_an_address_that_had_no_letter_is_not_believed(
    world: World, number: int, entry: ActivityItem
) -> None:
    bob = world.context("bob", "acme")
    lin = requesters.ensure(bob, "lin@example.org", name="Lin")
    thread = Thread(world.tenants["acme"].tenant_id, number, message_ids.entry_of(entry.sk))
    delivery_states.note_report(bob, thread, address="lin@example.org", why="Mailbox gone.")
    person = requesters.find(bob, lin.id)
    assert person is not None
    assert person.bounced == {}
    assert comment_of(world, number).delivery_note is None


def test_nobody_whose_address_no_mail_server_takes_ends_the_worker_that_sends(
    world: World, inbox: MailReceiver
) -> None:
    bob = world.context("bob", "acme")
    zoe = requesters.ensure(bob, "zo\N{LATIN SMALL LETTER E WITH DIAERESIS}@example.org", name="Zoe")
    number = creating.create(bob, title="The engine stops", requester=zoe)
    commenting.comment(bob, number, body="Hello.")
    assert mailing.carry() == ["answered"]
    found = comment_of(world, number)
    assert (found.delivery, "such letters" in found.delivery_note) == ("bounced", True)
    with pytest.raises(Invalid, match="such letters"):
        commenting.comment(bob, number, body="Hello.", cc=[zoe.address])
