"""Letters become tickets and comments: by the envelope, by signed addresses, by our Message-IDs, by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from portal.errors import Conflict
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tests.letters.cases import Case
from tests.letters.test_corpus import CASES
from tests.support.letters_in import DOMAIN, come_in, incoming, letter, objects, post, rows, unclaimed
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.letters import ledger
from tickets.replies import message_ids, reply_addresses
from tickets.requesters import requester_changes, requester_tickets, requesters
from tickets.ticket import stored
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem, DetailItem

EACH = 40  # one of so many letters of our own making is filed; 1 takes some minutes


def thread(world: World, number: int, where: str = "acme"):
    return changing.read(world.context("alice" if where == "acme" else "charlie", where), number)


def entries(world: World, number: int):
    alice = world.context("alice", "acme")
    found = alice.repository.query_all(ActivityItem, stored.ticket, number, begins_with=stored.ACTIVITY_PREFIX)
    return [entry for entry in found if entry.kind == "comment"][::-1]


@pytest.fixture
def ticket(mail: World) -> int:
    """A ticket that Zoe opened by mail, in Acme."""
    come_in(letter())
    (row,) = rows(mail)
    return int(row.number)


def test_a_letter_to_a_desk_becomes_a_ticket_of_its_sender(mail: World) -> None:
    name = come_in(letter())
    (row,) = rows(mail)
    assert (row.state, row.sender, row.subject) == (ledger.FILED, "zoe@customer.example", "The printer is on fire")
    summary = thread(mail, int(row.number))
    assert (summary.title, summary.requester_name, summary.status) == ("The printer is on fire", "Zoe Customer", "open")
    zoe = requesters.by_address(mail.context("alice", "acme"), "zoe@customer.example")
    assert zoe is not None
    assert summary.requester == zoe.id
    assert incoming() == []
    assert objects(mail) == [f"tenant/{mail.tenants['acme'].tenant_id}/letters/{name}"]


@pytest.mark.parametrize("one", CASES[::EACH], ids=lambda one: one.name)
def test_a_letter_of_any_shape_is_filed_or_the_list_says_why_not(mail: World, one: Case) -> None:
    come_in(one.raw, sender="somebody@customer.example")
    (row,) = rows(mail)
    assert (row.state == ledger.FILED) == (row.number == 1) == (not row.reason), row.reason
    if row.number:
        page = mail.browser("bob").get("/acme/tickets/1/")
        assert (page.status_code, "By mail" in page.content.decode()) == (200, True)


def test_the_envelope_decides_the_desk_and_not_to(mail: World) -> None:
    come_in(letter(to=f"acme@{DOMAIN}"), f"globex@{DOMAIN}")
    assert rows(mail, "acme") == []
    assert objects(mail, "acme") == []
    assert [row.state for row in rows(mail, "globex")] == [ledger.FILED]


def test_one_letter_to_two_desks_is_filed_in_both(mail: World) -> None:
    come_in(letter(), f"acme@{DOMAIN}", f"globex@{DOMAIN}")
    assert [row.state for desk in ("acme", "globex") for row in rows(mail, desk)] == [ledger.FILED, ledger.FILED]


def test_a_letter_to_no_desk_is_kept_for_the_operators(mail: World) -> None:
    name = come_in(letter(), f"nobody@{DOMAIN}")
    assert unclaimed() == [f"unclaimed/{name}"]
    assert incoming() == []


def test_mail_to_the_former_name_of_a_desk_comes_to_that_desk_and_to_no_other(mail: World) -> None:
    alice, charlie = mail.context("alice", "acme"), mail.context("charlie", "globex")
    desk_settings.rename(alice, name="Acme", slug="industries", by=Actor(alice.user_id))
    with pytest.raises(Conflict):
        desk_settings.rename(charlie, name="Globex", slug="acme", by=Actor(charlie.user_id))
    come_in(letter(), f"acme@{DOMAIN}")
    come_in(letter(message_id="<2@customer.example>"), f"industries@{DOMAIN}")
    assert (len(rows(mail, "acme")), len(rows(mail, "globex"))) == (2, 0)
    desk_settings.rename(alice, name="Acme", slug="acme", by=Actor(alice.user_id))
    come_in(letter(message_id="<3@customer.example>"), f"acme@{DOMAIN}")
    assert len(rows(mail, "acme")) == 3


def test_the_same_letter_twice_is_one_ticket(mail: World) -> None:
    come_in(letter())
    come_in(letter())
    assert len(rows(mail)) == 1
    assert len(objects(mail)) == 1


def test_two_letters_with_one_message_id_are_both_kept(mail: World) -> None:
    come_in(letter(body="First."))
    come_in(letter(body="Second."))
    assert len(rows(mail)) == 2


def test_an_answer_to_the_reply_address_is_a_comment_of_its_sender(mail: World, ticket: int) -> None:
    tenant, zoe = mail.tenants["acme"], requesters.by_address(mail.context("alice", "acme"), "zoe@customer.example")
    to = reply_addresses.address_of(tenant.tenant_id, ticket, zoe.id, is_agent=False)
    come_in(letter(body="It is out.", message_id="<2@customer.example>"), to)
    (entry,) = entries(mail, ticket)
    assert (entry.body, entry.author, entry.author_name) == ("It is out.", zoe.id, "Zoe Customer")
    assert [row.number for row in rows(mail)] == [ticket, ticket]


def test_an_answer_to_one_of_our_letters_is_a_comment_if_its_sender_is_confirmed(mail: World, ticket: int) -> None:
    ours = message_ids.message_id(mail.tenants["acme"].tenant_id, ticket, "abc")
    answer = {"message_id": "<2@customer.example>", "In_Reply_To": ours}
    come_in(letter(body="Confirmed.", **answer))
    assert [entry.body for entry in entries(mail, ticket)] == ["Confirmed."]
    come_in(letter(body="Forged.", **answer), dmarc="FAIL")
    assert [entry.body for entry in entries(mail, ticket)] == ["Confirmed."]
    assert rows(mail)[0].number != ticket


@pytest.mark.parametrize(
    ("sender", "subject", "reference"),
    [
        ("eve@stranger.example", "Re: The printer is on fire", "ours"),  # confirmed, but takes no part
        ("zoe@customer.example", "Re: [#1] The printer is on fire", ""),  # a number alone
        ("zoe@customer.example", "Re: The printer is on fire", "<r.aaaa.bbb@desk.example>"),
        ("zoe@customer.example", "Re: The printer is on fire", "of globex"),
    ],
)
def test_a_letter_without_a_token_and_a_part_in_the_ticket_is_a_new_ticket(
    mail: World, ticket: int, sender: str, subject: str, reference: str
) -> None:
    references = {
        "ours": message_ids.message_id(mail.tenants["acme"].tenant_id, ticket, "abc"),
        "of globex": message_ids.message_id(mail.tenants["globex"].tenant_id, ticket, "abc"),
    }
    names = references.get(reference, reference)
    come_in(letter(sender=sender, subject=subject, message_id="<2@x.example>", References=names))
    assert entries(mail, ticket) == []
    assert rows(mail)[0].number not in (0, ticket)


def test_an_answer_of_the_requester_opens_the_ticket_again(mail: World, ticket: int) -> None:
    alice = mail.context("alice", "acme")
    commenting.comment(alice, ticket, body="It is out.", then=Status.RESOLVED)
    to = reply_addresses.address_of(alice.tenant_id, ticket, thread(mail, ticket).requester, is_agent=False)
    come_in(letter(body="No, it still burns.", message_id="<2@customer.example>"), to)
    assert thread(mail, ticket).status == "open"


def test_an_agent_answers_a_notification_as_the_agent_it_was_sent_to(mail: World, ticket: int) -> None:
    bob = mail.context("bob", "acme")
    to = reply_addresses.address_of(bob.tenant_id, ticket, bob.user_id, is_agent=True)
    come_in(letter(sender="Bob <bob@example.com>", body="On my way."), to, sender="bob@example.com")
    (entry,) = entries(mail, ticket)
    assert (entry.author, entry.author_name) == (bob.user_id, "Bob Example")


@pytest.mark.parametrize(
    ("sender", "who", "is_agent", "verdicts"),
    [
        ("bob@example.com", "bob", True, {"dmarc": "FAIL"}),  # a forged From
        ("bob@example.com", "bob", True, {"dmarc": "GRAY", "spf": "FAIL"}),
        ("eve@stranger.example", "bob", True, {}),  # somebody else with Bob's address
        ("alice@example.com", "bob", True, {}),  # another agent
        ("vera@example.com", "vera", True, {}),  # a viewer is no agent
        ("charlie@example.com", "charlie", True, {}),  # no member of this desk
    ],
)
def test_nobody_else_writes_as_an_agent(
    mail: World, ticket: int, sender: str, who: str, is_agent: bool, verdicts: dict[str, str]
) -> None:
    tenant_id = mail.tenants["acme"].tenant_id
    to = reply_addresses.address_of(tenant_id, ticket, mail.users[who].id, is_agent=is_agent)
    come_in(letter(sender=sender, body="Give me the keys."), to, sender=sender, **verdicts)
    assert entries(mail, ticket) == []
    row = rows(mail)[0]
    assert row.state == ledger.REFUSED
    assert row.reason.startswith("It answers a notification")


def test_the_reply_address_of_a_requester_never_yields_an_agent(mail: World, ticket: int) -> None:
    to = reply_addresses.address_of(
        mail.tenants["acme"].tenant_id, ticket, thread(mail, ticket).requester, is_agent=False
    )
    come_in(letter(sender="bob@example.com", body="As Bob?"), to, sender="bob@example.com")
    (entry,) = entries(mail, ticket)
    assert entry.author != mail.users["bob"].id
    assert entry.author.startswith("rq_")
    come_in(letter(sender="bob@example.com", body="Forged."), to, dmarc="FAIL")
    assert {"unconfirmed", "claims-member", "other-person"} <= set(entries(mail, ticket)[0].letter.as_dict()["marks"])


def test_a_token_of_another_desk_reaches_that_desk_and_not_this_one(mail: World, ticket: int) -> None:
    charlie = mail.context("charlie", "globex")
    ada = requesters.ensure(charlie, "ada@example.org")
    number = creating.create(charlie, title="Of Globex", requester=ada)
    to = reply_addresses.address_of(charlie.tenant_id, number, ada.id, is_agent=False)
    come_in(letter(body="Hello", message_id="<3@x.example>"), to)
    assert len(rows(mail, "acme")) == 1
    assert [row.number for row in rows(mail, "globex")] == [number]


def test_a_letter_that_a_forwarder_rewrote_is_of_its_original_sender(mail: World) -> None:
    come_in(letter(sender=f"Acme via Groups <acme@{DOMAIN}>", X_Original_From="Zoe <zoe@customer.example>"))
    assert thread(mail, int(rows(mail)[0].number)).requester_name == "Zoe"


def test_a_letter_from_the_desk_itself_is_no_ticket(mail: World) -> None:
    come_in(letter(sender=f"acme@{DOMAIN}"))
    assert [(row.state, row.number) for row in rows(mail)] == [(ledger.AUTOMATIC, 0)]


@pytest.mark.parametrize("slug", ["acme", "globex"])
@pytest.mark.parametrize("is_known_by", ["Message-ID", "X-Loop"])
def test_a_letter_of_the_desk_that_is_passed_on_to_it_again_is_no_ticket(
    mail: World, slug: str, is_known_by: str
) -> None:
    ours = message_ids.message_id(mail.tenants[slug].tenant_id, 1, "e1")
    headers = {"message_id": ours} if is_known_by == "Message-ID" else {"X_Loop": f"{slug}@{DOMAIN}"}
    come_in(letter(sender="robot@forwarder.example", **headers))
    (row,) = rows(mail)
    assert row.state == (ledger.AUTOMATIC if slug == "acme" else ledger.FILED)
    assert ("came back" in row.reason) == (slug == "acme")


@pytest.mark.parametrize(
    ("headers", "verdicts", "state"),
    [
        ({}, {"virus": "FAIL"}, ledger.REFUSED),
        ({}, {"spam": "FAIL"}, ledger.WAITING),
        ({"sender": "nobody at all"}, {}, ledger.REFUSED),
    ],
)
def test_what_must_not_be_filed_waits_with_a_reason(
    mail: World, headers: dict[str, str], verdicts: dict[str, str], state: str
) -> None:
    come_in(letter(**headers), **verdicts)
    alice = mail.context("alice", "acme")
    (row,) = ledger.waiting(alice.repository, limit=10)[0]
    assert row.state == state
    assert row.reason.endswith(".")


def test_a_letter_without_a_notification_stays_where_it_arrived(mail: World) -> None:
    post(letter())
    assert len(incoming()) == 1


def test_mail_that_a_group_forwards_to_its_desk_is_of_the_person_who_wrote_it(mail: World) -> None:
    headers = {"X_Original_From": "Zoe <zoe@customer.example>", "List_Id": "<acme.example>", "Precedence": "list"}
    come_in(letter(sender=f"Zoe via Acme <acme@{DOMAIN}>", **headers))
    assert [(row.state, row.sender) for row in rows(mail)] == [(ledger.FILED, "zoe@customer.example")]
    come_in(letter(sender="News <news@shop.example>", message_id="<2@x.example>", **headers))
    assert rows(mail)[0].state == ledger.AUTOMATIC


def test_who_writes_much_to_a_group_holds_up_nobody_else_whose_mail_it_forwards(mail: World) -> None:
    for n in range(5):
        headers = {"List_Id": "<acme.example>", "X_Original_From": "Eve <eve@evil.example>"}
        come_in(letter(sender=f"acme@{DOMAIN}", subject="Help", message_id=f"<{n}@x.example>", **headers))
    headers["X_Original_From"] = "Zoe <zoe@customer.example>"
    come_in(letter(sender=f"acme@{DOMAIN}", subject="Help", message_id="<6@x.example>", **headers))
    assert [row.state for row in rows(mail)] == [ledger.FILED, ledger.WAITING] + [ledger.FILED] * 4


@pytest.mark.parametrize(
    "sender",
    [
        "zoe@customer.example, eve@evil.example",
        '"zoe@customer.example, ' + "x" * 400 + '" <eve@evil.example>',
        "zoe@customer.example\nFrom: eve@evil.example",
    ],
)
def test_a_verdict_that_may_be_about_another_address_confirms_no_sender(mail: World, ticket: int, sender: str) -> None:
    ours = message_ids.message_id(mail.tenants["acme"].tenant_id, ticket, "abc")
    come_in(f"From: {sender}\nSubject: Re: It burns\nMessage-ID: <2@x>\nIn-Reply-To: {ours}\n\nForged.".encode())
    assert entries(mail, ticket) == []
    alice = mail.context("alice", "acme")
    detail = alice.repository.get(DetailItem, stored.ticket, int(rows(mail)[0].number), sort=stored.DETAIL)
    assert detail is not None
    assert "unconfirmed" in detail.letter.as_dict()["marks"]


def test_a_letter_with_half_of_a_character_is_filed_and_keeps_no_worker_busy(mail: World) -> None:
    come_in(b"From: Zoe <zoe@customer.example>\nSubject: =?utf-7?q?Fire+2AA-?=\nMessage-ID: <9@x.example>\n\nIt burns.")
    assert [(row.state, "Fire" in row.subject) for row in rows(mail)] == [(ledger.FILED, True)]


@pytest.mark.parametrize("bytes_each", [3, 4])
def test_a_letter_of_the_longest_characters_is_filed(mail: World, bytes_each: int) -> None:
    text = "\n".join([("\u706b" if bytes_each == 3 else "\U0001f525") * 60] * 3000)
    come_in(f"From: Zoe <zoe@customer.example>\nContent-Type: text/plain; charset=utf-8\n\n{text}".encode())
    assert [row.state for row in rows(mail)] == [ledger.FILED]


def test_a_letter_that_comes_while_its_sender_is_merged_is_a_ticket_of_both(
    mail: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = mail.context("alice", "acme")
    ada, zoe = (requesters.ensure(alice, address) for address in ("ada@example.org", "zoe@customer.example"))
    create = creating.create

    def merged_first(*args: Any, **values: Any) -> int:
        requester_changes.merge(alice, ada.id, zoe.id, by=Actor("d" * 32, "alice@example.com", "test"))
        return create(*args, **values)

    with monkeypatch.context() as patch:
        patch.setattr(creating, "create", merged_first)
        come_in(letter())
    come_in(letter(message_id="<2@customer.example>", subject="Later"))
    assert [row.state for row in rows(mail)] == [ledger.FILED] * 2
    _, both = requester_tickets.with_person(alice, ada.id, limit=10)
    assert {int(row.number) for row in both} == {1, 2}
    to = reply_addresses.address_of(alice.tenant_id, 1, zoe.id, is_agent=False)
    come_in(letter(message_id="<3@customer.example>", subject="Re: it"), to)
    assert int(rows(mail)[0].number) == 1
