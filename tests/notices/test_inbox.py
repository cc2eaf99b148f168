"""The inbox: what concerns a member, what of it is unread, and what that costs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core import mail

from delivery.outbox import publisher
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import Event, EventField, EventType
from portal import clock
from portal.dynamo import meter
from portal.dynamo.store import Transaction
from portal.schema import keys
from tenants.audit_trail.recording import Actor
from tenants.membership import mail_choices
from tenants.membership.mail_choices import MailKind
from tenants.tenancy.context import Role
from tests.desk.test_cost import IDENTITY, spent
from tests.notices.conftest import Minute
from tests.notices.test_telling import carry, say
from tests.support import mailing
from tests.support.defined import add_group
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.groups import agent_changes, roster
from tickets.notices import following, inbox, stored, telling
from tickets.notices.stored import NoticeItem

ALL = tuple(MailKind)


def unread(desk: World, who: str = "bob") -> set[int]:
    return set(inbox.unread(desk.context(who, "acme")))


def rows(desk: World, who: str = "bob") -> list[NoticeItem]:
    person = desk.context(who, "acme")
    prefix = stored.notices_of(person.user_id)
    return list(person.repository.query_all(NoticeItem, keys.tenant, begins_with=prefix, consistent=True))


def listed(desk: World, address: str = "/acme/inbox/", who: str = "bob") -> list[str]:
    """The numbers of the tickets that the page lists, unread ones with a star."""
    page = desk.browser(who, "acme").get(address).content.decode()
    found = re.findall(r'inbox-row( is-unread)?">.*?#(\d+)<', page, re.DOTALL)
    return [f"{number}*" if is_unread else number for is_unread, number in found]


# --- what is in it ---


def test_it_has_each_kind_of_event_under_its_ticket(desk: World) -> None:
    say(desk, "alice", "First.")
    creating.create(desk.context("alice", "acme"), title="Second", resolver=desk.users["bob"].id)
    say(desk, "alice", "Look, @Bob Example.", number=1)
    carry()
    assert listed(desk) == ["1*", "2*"]
    page = desk.browser("bob", "acme").get("/acme/inbox/").content.decode()
    assert "You were mentioned · New comment" in page
    assert "Assigned to you" in page
    assert "Look, @Bob Example." in page
    assert 'data-unread="2"' in page


def test_nothing_of_it_is_anybody_elses(desk: World) -> None:
    say(desk, "alice", "For Bob.")
    carry()
    assert listed(desk, who="alice") == []
    assert "No news" in desk.browser("alice", "acme").get("/acme/inbox/").content.decode()
    desk.browser("alice", "acme").send("/acme/inbox/mark/", {"number": "1", "change": "read"})
    assert unread(desk) == {1}


def test_an_event_that_is_delivered_again_is_in_it_once_also_when_it_was_read_meanwhile(desk: World) -> None:
    say(desk, "alice", "Look.")
    (row,) = mailing.waiting()
    bob = desk.context("bob", "acme")
    work = Work(bob.repository, row, 0, "notice")
    for note, left in (("1 told.", {1}), ("Nobody is to be told.", set())):
        assert telling.deliver(work).note == note
        assert (len(rows(desk)), unread(desk)) == (1, left)
        inbox.mark_read(bob, [1])


@pytest.mark.parametrize(
    ("event", "to", "words"),
    [
        ("ticket.due", "alice", "Due now"),
        ("ticket.breached", "", "Target missed or due soon"),
        ("ticket.due_soon", "", "Target missed or due soon"),
    ],
)
def test_what_comes_by_itself_is_told_to_its_member_or_the_assignee(
    desk: World, event: str, to: str, words: str
) -> None:
    happen(desk, event, to)
    assert listed(desk, who=to or "bob") == ["1*"]
    assert words in desk.browser(to or "bob", "acme").get("/acme/inbox/").content.decode()
    assert len(mail.outbox) == 1


@pytest.mark.parametrize(
    ("group", "is_away", "told"),
    [(["bob"], False, ["bob"]), (["bob"], True, ["alice"]), ([], False, ["alice"]), (None, False, ["alice"])],
    ids=["its group", "a group that is away", "an empty group", "no group"],
)
@pytest.mark.parametrize("event", ["ticket.breached", "ticket.due_soon"])
def test_targets_of_a_ticket_that_nobody_has_are_told_to_its_group_else_to_the_admins(
    desk: World, event: str, group: list[str] | None, is_away: bool, told: list[str]
) -> None:
    alice, bob = desk.context("alice", "acme"), desk.users["bob"].id
    wanted = {} if group is None else {"group": add_group(desk, "Billing", members=group)}
    if is_away:
        later = (clock.now() + timedelta(days=7)).date().isoformat()
        version, by = roster.read(alice).agent(bob).version, Actor(alice.user_id)
        agent_changes.set_availability(alice, bob, away_until=later, stand_in="", version=version, by=by)
    changing.edit(desk.context("alice", "acme"), 1, version=2, resolver="", **wanted)
    happen(desk, event)
    assert [who for who in ("alice", "bob") if unread(desk, who)] == told


def happen(desk: World, event: str, to: str = "") -> None:
    """Let an event of ticket 1 come by itself."""
    tenant = desk.context("bob", "acme")
    data = {"number": 1} | ({"to": desk.users[to].id} if to else {})
    kind = EventType(event, 1, "", tuple(EventField(name, "text", "", "") for name in data))
    transaction = Transaction()
    publisher.publish(tenant, transaction, Event(kind, data, 1, ("notice",)), subject="ticket/1")
    tenant.repository.transact(transaction)
    carry()


def test_who_muted_the_ticket_or_the_kind_finds_nothing_there(desk: World) -> None:
    bob = desk.context("bob", "acme")
    mail_choices.choose(bob.repository, bob.user_id, ALL, [MailKind.MENTIONED])
    say(desk, "alice", "Only by mail.")
    carry()
    assert rows(desk) == []
    assert len(mail.outbox) == 1
    mail_choices.choose(bob.repository, bob.user_id, [], ALL)
    following.mute(bob, 1, bob.user_id)
    say(desk, "alice", "Into a muted ticket.")
    carry()
    assert rows(desk) == []


def test_a_viewer_reads_no_note_there_and_an_erased_text_is_gone(desk: World) -> None:
    say(desk, "alice", "Between us, @Bob Example.", internal=True)
    carry()
    assert "Between us" in desk.browser("bob", "acme").get("/acme/inbox/").content.decode()
    tickets = inbox.page(desk.context("bob", "acme")).tickets
    assert tickets[0].latest is not None
    viewer = replace(desk.context("bob", "acme"), role=Role.VIEWER)
    assert inbox.page(viewer).tickets[0].latest is None


# --- read and unread ---


def test_tickets_are_marked_one_by_one_and_all_together(desk: World) -> None:
    for number in (2, 3):
        desk.tickets("acme", 1)
        changing.assign(desk.context("alice", "acme"), number, to=desk.users["bob"].id, version=1)
    carry()
    bob = desk.browser("bob", "acme")
    assert listed(desk) == ["3*", "2*"]
    bob.send("/acme/inbox/mark/", {"number": "2", "change": "read"})
    assert listed(desk) == ["3*", "2"]
    assert listed(desk, "/acme/inbox/?unread=1") == ["3*"]
    bob.send("/acme/inbox/mark/", {"number": "2", "change": "unread"})
    assert unread(desk) == {2, 3}
    bob.send("/acme/inbox/mark/", {"number": ["2", "3", "x", "0"], "change": "read"})
    assert unread(desk) == set()
    assert "You have seen everything" in bob.get("/acme/inbox/?unread=1").content.decode()


def test_opening_a_ticket_with_news_lets_the_page_mark_it_as_read(desk: World) -> None:
    say(desk, "alice", "Look.")
    carry()
    bob = desk.browser("bob", "acme")
    assert 'hx-post="/acme/inbox/seen/"' in bob.get("/acme/tickets/1/").content.decode()
    assert "data-unread" not in bob.send("/acme/inbox/seen/", {"number": "1"}).content.decode()
    assert unread(desk) == set()
    assert "/inbox/seen/" not in bob.get("/acme/tickets/1/").content.decode()


def test_a_filter_shows_one_kind_and_a_broken_address_the_whole_list(desk: World) -> None:
    say(desk, "alice", "A comment.")
    creating.create(desk.context("alice", "acme"), title="Second", resolver=desk.users["bob"].id)
    carry()
    assert listed(desk, "/acme/inbox/?kind=assigned") == ["2*"]
    assert listed(desk, "/acme/inbox/?kind=of-no-such-kind") == ["2*", "1*"]
    assert desk.browser("bob", "acme").get("/acme/inbox/?before=TENANT%23x").status_code == 302


def test_unread_tickets_stay_listed_when_their_events_have_expired(desk: World) -> None:
    say(desk, "alice", "Long ago.")
    carry()
    bob = desk.context("bob", "acme")
    for row in rows(desk):
        bob.repository.delete(row)
    assert listed(desk, "/acme/inbox/?unread=1") == ["1*"]
    assert "Older than 60 days" in desk.browser("bob", "acme").get("/acme/inbox/?unread=1").content.decode()


def test_a_long_inbox_is_read_page_by_page_and_each_event_expires(desk: World) -> None:
    bob = desk.context("bob", "acme")
    begin = clock.now()
    for number in range(1, inbox.PAGE + 3):
        inbox.tell(bob, bob.user_id, MailKind.DUE, number, at=clock.stamp(begin, offset=number), event=str(number))
    first = inbox.page(bob)
    then = inbox.page(bob, before=first.before)
    assert [one.number for one in (*first.tickets, *then.tickets)] == [*range(inbox.PAGE + 2, 0, -1)]
    assert not then.before
    assert all(row.expires_at > (begin + inbox.KEPT - timedelta(hours=1)).timestamp() for row in rows(desk))


def test_only_so_many_tickets_are_counted_and_further_ones_are_in_the_list(
    desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MOST_UNREAD", 2)
    bob = desk.context("bob", "acme")
    for number in (1, 2, 3):
        assert inbox.tell(bob, bob.user_id, MailKind.DUE, number, at=clock.stamp(), event=str(number))
    assert unread(desk) == {1, 2}
    assert [one.number for one in inbox.page(desk.context("bob", "acme")).tickets] == [3, 2, 1]


# --- mail once a day ---


def test_a_digest_gathers_what_happens_until_the_chosen_hour(desk: World, minute: Minute) -> None:
    bob, due = desk.context("bob", "acme"), clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=3)
    mail_choices.choose(bob.repository, bob.user_id, ALL, ALL, due.hour)
    say(desk, "alice", "One.")
    minute.ends()
    say(desk, "alice", "Two.")
    mailing.carry()
    assert [row.due_at for row in mailing.waiting()] == [clock.stamp(due)]
    mailing.carry()
    assert ["One." in mail.outbox[0].body, "Two." in mail.outbox[0].body, len(mail.outbox)] == [True, True, 1]


@pytest.mark.parametrize(
    ("at", "hour", "zone", "due"),
    [
        ("2026-03-28T12:00", 8, "UTC", "2026-03-29T08:00"),
        ("2026-03-28T08:00", 8, "UTC", "2026-03-29T08:00"),
        ("2026-03-28T12:00", 2, "Europe/Berlin", "2026-03-29T01:00"),  # the hour that the clocks skip
        ("2026-10-25T00:30", 2, "Europe/Berlin", "2026-10-26T01:00"),  # the hour that comes twice
        ("2026-12-31T23:30", 0, "Asia/Kathmandu", "2027-01-01T18:15"),
    ],
)
def test_the_hour_is_one_of_the_persons_clocks(at: str, hour: int, zone: str, due: str) -> None:
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert telling.digest_time(moment, hour, ZoneInfo(zone)).isoformat()[:16] == due


# --- costs ---


def test_the_count_takes_no_further_round_trip(desk: World) -> None:
    say(desk, "alice", "Look.")
    carry()
    bill = spent(desk.browser("bob"), "/tickets/1/")
    assert (bill.trips, bill.read_units) == (2, IDENTITY + 0.5)


def test_the_page_takes_three_trips_and_marking_is_one_write(desk: World) -> None:
    say(desk, "alice", "Look.")
    carry()
    bill = spent(desk.browser("bob"), "/acme/inbox/")
    assert (bill.trips, bill.read_units) == (3, IDENTITY + 1.5)
    bob = desk.context("bob", "acme")
    with meter.measure() as marking:
        inbox.mark_read(bob, [1])
    assert Counter(call.operation for call in marking.calls) == {"UpdateItem": 1}


def test_followers_are_listed_by_name(desk: World) -> None:
    bob = desk.context("bob", "acme")
    following.follow(bob, 1, bob.user_id)
    alice = desk.browser("alice", "acme")
    assert "1 follower" in alice.get("/acme/tickets/1/").content.decode()
    assert "Bob Example" in alice.get("/acme/tickets/1/followers/").content.decode()
