"""Who is told of what, and in which mail: through the rules, the outbox and the worker's handler, up to the mail."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.core import mail
from django.test import override_settings

from delivery.outbox import outbox_rows
from portal.errors import Throttled
from portal.mailing import letters
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import mail_choices, member_changes
from tenants.membership.mail_choices import MailKind
from tenants.sign_in import accounts
from tenants.tenancy.context import Role, TenantContext
from tests.notices.conftest import Minute
from tests.support import deliveries, mailing
from tests.support.mailing import RefusingBackend
from tests.support.world import World
from tickets.desk import changing, commenting, creating, rating
from tickets.desk.letter_texts import FromLetter
from tickets.notices import following, telling
from tickets.replies import reply_addresses
from tickets.requesters import requesters
from tickets.ticket.fields import Rating, Status


def carry() -> list[str]:
    """Let the worker decide on what waits, and then send what that has gathered."""
    return mailing.carry() + mailing.carry()


def told() -> list[tuple[str, str]]:
    """Address and subject of each mail that was sent, in the order of addresses."""
    carry()
    return sorted((message.to[0], message.subject) for message in mail.outbox)


def say(world: World, who: str, body: str, *, internal: bool = False, number: int = 1) -> None:
    commenting.comment(world.context(who, "acme"), number, body=body, internal=internal)


NEWS = "[Acme] #1 Ticket 1"


# --- who is told ---


def test_the_assignee_is_told_of_a_comment(desk: World) -> None:
    say(desk, "alice", "Have a *look*.")
    assert told() == [("bob@example.com", NEWS)]
    assert "Alice Example commented:\n\n    Have a *look*." in mail.outbox[0].body
    html = mail.outbox[0].alternatives[0][0]
    assert "<em>look</em>" in html


def test_nobody_is_told_of_what_they_did_themselves(desk: World) -> None:
    bob = desk.context("bob", "acme")
    following.follow(bob, 1, bob.user_id)
    say(desk, "bob", "Done, says @Bob Example.")
    changing.assign(desk.context("alice", "acme"), 1, to="", version=2)
    changing.assign(bob, 1, to=bob.user_id, version=3)
    assert told() == []


def test_who_gets_a_ticket_is_told(desk: World) -> None:
    alice = desk.context("alice", "acme")
    creating.create(alice, title="Second", resolver=desk.users["bob"].id)
    changing.assign(desk.context("bob", "acme"), 1, to=alice.user_id, version=2)
    assert told() == [("alice@example.com", NEWS), ("bob@example.com", "[Acme] #2 Second")]
    assert all("This ticket is assigned to you now." in message.body for message in mail.outbox)


def test_who_has_lost_a_ticket_again_is_not_told_that_they_have_it(desk: World) -> None:
    bob, alice = desk.context("bob", "acme"), desk.context("alice", "acme")
    changing.assign(bob, 1, to=alice.user_id, version=2)
    changing.assign(bob, 1, to="", version=3)
    assert told() == []


def test_a_follower_is_told_and_one_who_stopped_is_not(desk: World) -> None:
    alice, vera = desk.context("alice", "acme"), desk.context("vera", "acme")
    following.follow(alice, 1, alice.user_id)
    following.follow(vera, 1, vera.user_id)
    following.unfollow(vera, 1, vera.user_id)
    say(desk, "bob", "Works.")
    assert told() == [("alice@example.com", NEWS)]


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("Ask @Vera Example.", ["vera"]),
        ("Ask @vera example, please.", ["vera"]),
        ("Ask @Vera.", ["vera"]),
        ("@Alice and @Vera, see this", ["alice", "vera"]),
        ("Ask @Verana or @Ver.", []),
        ("Write to bob@Vera.example or x.@Vera.", []),
        ("Ask @Vera Examples.", ["vera"]),
        ("Ask @Charlie Example.", []),  # is no member of Acme
        ("a @ b, @, @@Vera", []),
    ],
)
def test_a_mention_tells_the_member_whom_it_names(desk: World, text: str, who: list[str]) -> None:
    say(desk, "bob", text)
    assert [address for address, _ in told()] == [f"{name}@example.com" for name in who]


def test_two_members_of_one_name_are_both_meant_and_two_of_one_first_name_are_not(desk: World) -> None:
    for address, name in (("v1@example.com", "Vera Example"), ("v2@example.com", "Alice Other")):
        desk.users[address] = accounts.seed(email=address, name=name, password_hash="")
        desk.join(address, "acme", Role.AGENT)
    say(desk, "bob", "Ask @Vera Exampleton.")
    assert told() == []
    say(desk, "bob", "Ask @Vera Example, not @Alice.")
    assert [address for address, _ in told()] == ["v1@example.com", "vera@example.com"]


def test_a_viewer_is_never_told_of_an_internal_note(desk: World) -> None:
    vera = desk.context("vera", "acme")
    following.follow(vera, 1, vera.user_id)
    say(desk, "bob", "Between us, @Vera Example and @Alice Example.", internal=True)
    assert told() == [("alice@example.com", NEWS)]


def test_who_became_a_viewer_before_the_mail_left_does_not_get_the_note(desk: World) -> None:
    say(desk, "alice", "Between us.", internal=True)
    say(desk, "alice", "For all.")
    mailing.carry()
    member_changes.set_role(
        user_id=desk.users["bob"].id,
        tenant_id=desk.tenants["acme"].tenant_id,
        role=Role.VIEWER,
        seen=Role.AGENT,
        by=SYSTEM,
    )
    mailing.carry()
    (letter,) = mail.outbox
    assert "For all." in letter.body
    assert not any("Between us." in part for part in (letter.body, letter.alternatives[0][0]))


@pytest.mark.parametrize("when", ["before it is decided", "before the mail leaves"])
def test_who_has_left_the_desk_gets_nothing(desk: World, when: str) -> None:
    say(desk, "alice", "For Bob.")
    if when == "before the mail leaves":
        mailing.carry()
    member_changes.remove(user_id=desk.users["bob"].id, tenant_id=desk.tenants["acme"].tenant_id, by=SYSTEM)
    assert told() == []
    assert not deliveries.dead()


def test_a_muted_ticket_tells_nobody_who_muted_it(desk: World) -> None:
    bob = desk.context("bob", "acme")
    following.mute(bob, 1, bob.user_id)
    say(desk, "alice", "Look, @Bob Example.")
    assert told() == []


def test_muting_while_the_mail_waits_still_keeps_it_back(desk: World) -> None:
    say(desk, "alice", "Look.")
    mailing.carry()
    bob = desk.context("bob", "acme")
    following.mute(bob, 1, bob.user_id)
    assert told() == []


def test_a_kind_that_somebody_does_not_want_is_left_out(desk: World) -> None:
    bob = desk.context("bob", "acme")
    mail_choices.choose(bob.repository, bob.user_id, {MailKind.MENTIONED})
    say(desk, "alice", "First.")
    say(desk, "alice", "Second, @Bob.")
    assert told() == [("bob@example.com", NEWS)]
    assert "First." not in mail.outbox[0].body


def test_a_suspended_desk_tells_nobody(desk: World) -> None:
    say(desk, "alice", "Look.")
    tenant_lifecycle.suspend(desk.tenants["acme"].tenant_id, by=SYSTEM)
    assert told() == []


# --- one mail for what happens within a minute ---


def test_what_happens_within_a_minute_is_one_mail(desk: World, minute: Minute) -> None:
    bob = desk.context("bob", "acme")
    creating.create(bob, title="Second")
    following.follow(bob, 2, bob.user_id)
    for number, text in ((1, "One."), (2, "Two."), (1, "Three.")):
        say(desk, "alice", text, number=number)
    minute.ends()
    say(desk, "alice", "Four.")
    assert told() == [("bob@example.com", NEWS), ("bob@example.com", "[Acme] News of 2 tickets")]
    first, second = sorted((message.body for message in mail.outbox), key=len, reverse=True)
    assert first.index("One.") < first.index("Three.") < first.index("Two.")
    assert "Four." in second


def test_a_mail_of_several_tickets_has_an_address_for_each_answer_and_none_for_all(desk: World) -> None:
    bob = desk.context("bob", "acme")
    creating.create(bob, title="Second", resolver=bob.user_id)
    for number in (1, 2):
        say(desk, "alice", "News.", number=number)
    carry()
    (letter,) = mail.outbox
    assert letter.reply_to == []
    claims = [reply_addresses.read(word) for word in re.findall(r"reply\+\S+@desk.localhost", letter.body)]
    assert [claim and claim.number for claim in claims] == [1, 2]


def test_a_mail_waits_until_its_minute_is_over(desk: World, minute: Minute) -> None:
    say(desk, "alice", "Look.")
    mailing.carry()
    (row,) = mailing.waiting()
    assert outbox_rows.due_members(row) == set()
    minute.ends()
    assert outbox_rows.due_members(row) == {"0/digest"}


def test_what_comes_after_its_mail_has_left_is_in_the_next_one(desk: World) -> None:
    for text in ("One.", "Two."):
        say(desk, "alice", text)
        carry()
    assert ["One." in message.body for message in mail.outbox] == [True, False]
    assert "Two." in mail.outbox[1].body


@pytest.mark.parametrize("sent", [True, False])
def test_a_row_that_is_delivered_again_tells_once(desk: World, minute: Minute, *, sent: bool) -> None:
    """A worker that is killed after it has told people has not noted so: the row comes to another one."""
    say(desk, "alice", "Once, @Vera.")
    (row,) = mailing.waiting()
    work = deliveries.work(deliveries.message(row, "notice"), row)
    for _ in range(3):
        telling.deliver(work)
        if sent:
            mailing.carry()
            minute.ends()
    assert told() == [("bob@example.com", NEWS), ("vera@example.com", NEWS)]


def test_a_mail_that_could_not_be_sent_takes_no_more_and_goes_out_once(desk: World) -> None:
    say(desk, "alice", "One.")
    mailing.carry()
    RefusingBackend.errors = [Throttled("Later.")]
    with override_settings(MAIL_TRANSPORT=mailing.REFUSING):
        assert mailing.carry() == ["failed"]
    say(desk, "alice", "Two.")
    carry()
    assert sorted("One." in message.body for message in mail.outbox) == [False, True]
    assert len(mail.outbox) == 2


# --- the mail ---


def test_an_agent_answers_to_an_address_of_their_own(desk: World) -> None:
    say(desk, "alice", "Look.")
    carry()
    (letter,) = mail.outbox
    claim = reply_addresses.read(letter.reply_to[0])
    assert claim is not None
    assert (claim.tenant_id, claim.number, claim.is_agent) == (desk.tenants["acme"].tenant_id, 1, True)
    assert claim.is_of(desk.users["bob"].id)
    assert letter.extra_headers["Auto-Submitted"] == "auto-generated"


# --- ratings ---


@pytest.fixture
def resolved(desk: World) -> TenantContext:
    """The requester of a ticket that Bob has and has resolved, and that Alice follows. Nobody was told of that."""
    bob, alice = desk.context("bob", "acme"), desk.context("alice", "acme")
    person = requesters.ensure(bob, "ada@example.org", name="Ada Lovelace")
    number = creating.create(bob, title="The engine", requester=person, resolver=bob.user_id)
    assert number == 2
    changing.change_status(bob, number, to=Status.RESOLVED, version=int(changing.read(bob, number).version))
    following.follow(alice, number, alice.user_id)
    carry()
    mail.outbox.clear()
    return replace(desk.context("vera", "acme"), user_id=person.id, user_name=person.label)


def rate(ada: TenantContext, to: Rating, words: str = "") -> None:
    rating.rate(ada, 2, to, words=words, request_id=changing.new_request_id())


RATED = "[Acme] #2 The engine"


@pytest.mark.parametrize("words", ["", "It <b>stops</b>, @Vera."])
def test_a_bad_rating_tells_the_assignee_and_followers(desk: World, resolved: TenantContext, words: str) -> None:
    rate(resolved, Rating.BAD, words)
    assert told() == [("alice@example.com", RATED), ("bob@example.com", RATED)], "words of a rating mention nobody"
    text, html = mail.outbox[0].body, str(mail.outbox[0].alternatives[0][0])
    assert "Ada Lovelace rated this ticket as bad" in text
    assert words in text
    assert "<b>stops" not in html


def test_a_good_rating_tells_nobody(resolved: TenantContext) -> None:
    rate(resolved, Rating.GOOD, "Thank you, @Bob.")
    assert told() == []


def test_a_rating_that_was_changed_before_the_mail_is_not_told(resolved: TenantContext, minute: Minute) -> None:
    rate(resolved, Rating.BAD)
    rate(resolved, Rating.GOOD)
    assert told() == []


def test_bad_ratings_are_muted_apart_from_comments(desk: World, resolved: TenantContext) -> None:
    bob = desk.context("bob", "acme")
    mail_choices.refuse(bob.repository, bob.user_id, MailKind.RATED)
    rate(resolved, Rating.BAD)
    assert told() == [("alice@example.com", RATED)]
    say(desk, "alice", "What was it?", number=2)
    assert ("bob@example.com", RATED) in told()


def test_nobody_is_told_of_a_rating_who_has_left_or_muted_the_ticket(desk: World, resolved: TenantContext) -> None:
    bob, alice = desk.context("bob", "acme"), desk.context("alice", "acme")
    rate(resolved, Rating.BAD)
    following.mute(bob, 2, bob.user_id)
    following.unfollow(alice, 2, alice.user_id)
    assert ("bob@example.com", RATED) not in told()


def test_a_mail_with_an_internal_note_has_no_address_for_an_answer(desk: World) -> None:
    say(desk, "alice", "Look.", internal=True)
    carry()
    (letter,) = mail.outbox
    assert letter.reply_to == []
    assert "reply+" not in letter.body + letter.alternatives[0][0]


def test_a_mail_with_a_note_of_one_ticket_has_no_address_for_an_answer_on_another(desk: World) -> None:
    desk.tickets("acme", 1)
    changing.assign(desk.context("bob", "acme"), 2, to=desk.users["bob"].id, version=1)
    say(desk, "alice", "Look.")
    say(desk, "alice", "They do not pay.", internal=True, number=2)
    carry()
    (letter,) = mail.outbox
    assert "They do not pay." in letter.body
    assert letter.reply_to == []
    assert "reply+" not in letter.body + letter.alternatives[0][0]


def test_a_mail_that_can_be_answered_says_where_an_answer_ends(desk: World) -> None:
    say(desk, "alice", "Look.")
    carry()
    (letter,) = mail.outbox
    read = letters.read(f"From: bob@example.com\nSubject: Re\n\nI did.\n\nVastaus viestiin:\n{letter.body}".encode())
    assert "Look." not in read.text
    assert "/mute/" not in read.text


def test_a_strangers_letter_is_shown_as_it_is_and_hides_no_link(desk: World) -> None:
    eve = replace(desk.context("bob", "acme"), role=Role.VIEWER, user_id=f"rq_{'e' * 32}", user_name="Eve")
    commenting.comment(eve, 1, body="[https://acme.example](https://evil.example)", letter=FromLetter("d" * 32))
    commenting.comment(eve, 1, body="[https://acme.example](https://evil.example) on the page")
    carry()
    html = mail.outbox[0].alternatives[0][0]
    assert html.count("[https://acme.example](https://evil.example)") == 2
    assert 'href="https://evil.example"' not in html
