"""A ticket is marked as spam, its sender is blocked, and all of it is taken back or removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.dynamo import meter
from portal.errors import Conflict, NotFound
from portal.objects import object_store
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import spent
from tests.requester_pages.conftest import Guest
from tests.support import letters_in, searching
from tests.support.api_client import api_client
from tests.support.folding import Follower, kept_counts, numbers, recounted
from tests.support.kills import Killed, killed_at
from tests.support.operators import text_of
from tests.support.world import Browser, World
from tickets.attachments import attachments
from tickets.attachments import stored as file_keys
from tickets.attachments.stored import FileItem
from tickets.desk import changing, commenting, creating, lists, timelines
from tickets.desk.changing import Wishes
from tickets.letters import ledger
from tickets.linking import linking
from tickets.merging import ticket_merging
from tickets.replies import mail_settings, ticket_links
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.spam import spam_marking
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.set_aside import SetAside
from tickets.ticket.stored import TICKET_ITEMS

EVE = "eve@spam.example"
BY = Actor("d" * 32, "bob@example.com", "test")


@pytest.fixture
def browser(world: World) -> Browser:
    return world.browser("bob", "acme")


@pytest.fixture
def eve(bob: TenantContext) -> Requester:
    """Eve, who sent tickets 1 and 2."""
    made = requesters.ensure(bob, EVE, name="Eve")
    for title in ("Cheap watches", "Cheaper watches"):
        creating.create(bob, title=title, description="Buy one.", requester=made)
    return made


def in_lists(tenant: TenantContext) -> set[int]:
    return {int(row.number) for row in lists.page(tenant, status=tuple(Status)).rows}


def items(tenant: TenantContext, number: int) -> list[Any]:
    return [*tenant.repository.query_all(TICKET_ITEMS, stored.ticket, number)]


def ends(tenant: TenantContext, number: int) -> set[bool]:
    """Whether the items of a ticket end; one value where all are alike."""
    return {one.expires_at is not None for one in items(tenant, number)}


def is_blocked(tenant: TenantContext) -> bool:
    return mail_settings.read(tenant).is_blocked(EVE)


# --- pages ---


def test_one_press_marks_a_ticket_blocks_its_sender_and_offers_the_others(
    bob: TenantContext, browser: Browser, eve: Requester
) -> None:
    page = browser.get("/tickets/1/").content.decode()
    assert 'data-shortcut="spam"' in page
    answer = browser.send("/tickets/1/spam/")
    assert answer["Location"].endswith("/tickets/1/spam/")
    offered = browser.get("/tickets/1/spam/").content.decode()
    assert "Cheaper watches" in offered
    assert f"{EVE} cannot write to this desk any more." in offered
    assert "data-undo" in offered
    assert (in_lists(bob), is_blocked(bob)) == ({2}, True)
    assert browser.send("/tickets/spam/mark/", {"tickets": ["2"]}).status_code == 302
    assert in_lists(bob) == set()
    view = browser.get("/tickets/spam/").content.decode()
    assert view.index("Cheaper watches") < view.index("Cheap watches"), "the last that was marked comes first"


def test_undo_and_not_spam_bring_the_ticket_back_and_unblock_its_sender(
    bob: TenantContext, browser: Browser, eve: Requester
) -> None:
    marked = spam_marking.mark(bob, 1, by=BY)
    answer = browser.send("/tickets/bulk/undo/", {"receipt": marked.receipt(bob), "back": "/"})
    assert answer.status_code == 302
    assert (in_lists(bob), is_blocked(bob)) == ({1, 2}, False)
    spam_marking.mark(bob, 1, by=BY)
    banner = browser.get("/tickets/1/").content.decode()
    assert "This ticket was marked as spam" in banner
    assert "/tickets/1/comment/" not in banner
    browser.send("/tickets/1/spam/take-back/")
    assert (in_lists(bob), is_blocked(bob)) == ({1, 2}, False)
    page = browser.get("/tickets/1/").content.decode()
    assert "marked it as <ins>spam</ins>" in page
    assert "marked it as <ins>no spam</ins>" in page


def test_whom_somebody_had_blocked_before_stays_blocked(bob: TenantContext, eve: Requester) -> None:
    mail_settings.block(bob, EVE, by=BY)
    spam_marking.mark(bob, 1, by=BY)
    spam_marking.unmark(bob, 1, by=BY)
    assert is_blocked(bob)


def test_the_list_of_spam_is_empty_first_and_viewers_have_none(world: World, browser: Browser, eve: Requester) -> None:
    assert "No spam" in browser.get("/tickets/spam/").content.decode()
    vera = world.browser("vera", "acme")
    assert vera.get("/tickets/spam/").status_code == 403
    assert vera.send("/tickets/1/spam/").status_code == 403


def test_a_list_of_spam_has_pages(monkeypatch: pytest.MonkeyPatch, world: World, bob: TenantContext) -> None:
    monkeypatch.setattr(spam_marking, "PAGE", 2)
    world.tickets("acme", 5)
    for number in range(1, 6):
        spam_marking.mark(bob, number, by=BY)
    found, after = list[int](), ""
    while True:
        page = spam_marking.page(bob, after=after)
        found += [int(row.number) for row in page.rows]
        if page.next is None:
            break
        after = page.next
    assert found == [5, 4, 3, 2, 1]


# --- what spam is shut out of ---


def test_spam_is_found_by_no_search_opened_by_no_link_and_changed_by_nobody(
    world: World, bob: TenantContext, browser: Browser, eve: Requester
) -> None:
    link = ticket_links.ticket_link(bob, changing.read(bob, 1), eve, mail_settings.read(bob))
    spam_marking.mark(bob, 1, by=BY, block=False)
    searching.index_all()
    assert "Cheap watches" not in text_of(browser.get("/search/?q=watches"))
    assert Guest(link.token).get().status_code == 404
    for act in (
        lambda: changing.change(bob, 1, Wishes(priority=Priority.LOW)),
        lambda: commenting.comment(bob, 1, body="Hello"),
        lambda: ticket_links.revoke(bob, 1),
        lambda: ticket_merging.merge(bob, 1, into=2),
        lambda: linking.link(bob, 1, "blocks", 2),
        lambda: linking.link(bob, 2, "blocks", 1),
    ):
        with pytest.raises(SetAside):
            act()
    with pytest.raises(Conflict):
        ticket_merging.merge(bob, 2, into=1)


def test_letters_of_the_sender_are_refused_and_those_of_others_to_spam_become_tickets(
    world: World, bob: TenantContext, eve: Requester
) -> None:
    spam_marking.mark(bob, 1, by=BY)
    with letters_in.mail():
        letters_in.come_in(letters_in.letter(sender=f"Eve <{EVE}>"), sender=EVE)
        (row,) = letters_in.rows(world)
    assert row.state == ledger.REFUSED
    assert in_lists(bob) == {2}


# --- exactness ---


def test_lists_numbers_files_and_times_are_exact_there_and_back(bob: TenantContext, eve: Requester) -> None:
    object_store.create_bucket()
    follower = Follower()
    file = attachments.store(bob, "watch.txt", b"a watch")
    commenting.comment(bob, 1, body="See.", files=[file])
    commenting.comment(bob, 1, body="Between us.", internal=True)
    changing.change(bob, 1, Wishes(tags=["ads"], resolver=bob.user_id))
    follower.fold()
    before, counts, usage = changing.read(bob, 1).serialize(), numbers(bob), attachments.usage(bob)
    spam_marking.mark(bob, 1, by=BY)
    follower.fold()
    assert kept_counts(bob) == recounted(bob)
    assert not [name for name in numbers(bob) if "ads" in name or bob.user_id in name or "commented" in name]
    assert ends(bob, 1) == {True}
    (line,) = [one for entry in timelines.ticket(bob, 1).activity for one in entry.files or ()]
    assert _file(bob, line.id).expires_at
    assert attachments.usage(bob) != usage
    spam_marking.unmark(bob, 1, by=BY)
    follower.fold()
    assert kept_counts(bob) == recounted(bob)
    assert (numbers(bob), attachments.usage(bob)) == (counts, usage)
    assert (ends(bob, 1), _file(bob, line.id).expires_at) == ({False}, None)
    moved = ("version", "updated_at", "resolver_updated", "noted_at", "raised_at", "resolver_raised")
    after = changing.read(bob, 1).serialize()
    assert {n: v for n, v in after.items() if n not in moved} == {n: v for n, v in before.items() if n not in moved}


def _file(tenant: TenantContext, file_id: str) -> FileItem:
    found = tenant.repository.get(
        FileItem, file_keys.files, file_keys.bucket_of(file_id), sort=file_keys.file(file_id), consistent=True
    )
    assert found
    return found


def test_what_ttl_removes_after_thirty_days_leaves_numbers_and_search_exact(
    bob: TenantContext, browser: Browser, eve: Requester
) -> None:
    follower = Follower()
    marked = spam_marking.mark(bob, 1, by=BY)
    assert marked.is_new
    follower.fold()
    summary = changing.read(bob, 1)
    kept_for = int(summary.expires_at) - clock.parse(summary.spam_at).timestamp()
    assert timedelta(days=31) - timedelta(seconds=1) <= timedelta(seconds=kept_for) <= timedelta(days=31)
    for one in items(bob, 1):  # as DynamoDB does
        key = {"pk": {"S": one.pk}, "sk": {"S": one.sk}}
        with bob.repository.as_role("lifecycle")._connection() as connection:
            connection.dispatch("DeleteItem", {"TableName": one.table.full_name, "Key": key})
    follower.fold()
    assert kept_counts(bob) == recounted(bob)
    searching.index_all()
    assert "Cheap watches" not in text_of(browser.get("/search/?q=cheap"))
    assert browser.get("/tickets/1/").status_code == 404
    assert browser.get("/tickets/spam/").status_code == 200
    with pytest.raises(NotFound):
        spam_marking.unmark(bob, 1, by=BY)


def test_spam_of_more_than_thirty_days_is_not_shown_and_not_brought_back(
    monkeypatch: pytest.MonkeyPatch, bob: TenantContext, eve: Requester
) -> None:
    spam_marking.mark(bob, 1, by=BY)
    later = clock.now() + timedelta(days=30, minutes=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert spam_marking.page(bob).rows == []
    with pytest.raises(Conflict, match="is being removed"):
        spam_marking.unmark(bob, 1, by=BY)


def test_a_kill_at_any_write_leaves_a_mark_that_the_same_again_completes(
    monkeypatch: pytest.MonkeyPatch, bob: TenantContext, eve: Requester
) -> None:
    for write in range(1, 4):
        for sent in (False, True):
            with pytest.raises(Killed), killed_at(monkeypatch, write, sent=sent, writes_only=True):
                spam_marking.mark(bob, 1, by=BY)
            spam_marking.mark(bob, 1, by=BY)
            assert (in_lists(bob), is_blocked(bob), ends(bob, 1)) == ({2}, True, {True})
            spam_marking.unmark(bob, 1, by=BY)
            assert (in_lists(bob), ends(bob, 1)) == ({1, 2}, {False})
            now = mail_settings.read(bob)
            mail_settings.change(bob, values={"blocked": []}, version=now.version, by=BY)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(st.sampled_from(["mark", "unmark", "comment", "note", "overtaken", "change"]), max_size=10))
def test_any_sequence_of_marks_and_changes_is_exact(
    bob: TenantContext, monkeypatch: pytest.MonkeyPatch, acts: list[str]
) -> None:
    follower, is_spam = Follower(), False
    number = creating.create(bob, title="Watches", tags=["ads"])
    for act in acts:
        if act in ("mark", "overtaken"):
            if act == "overtaken" and not is_spam:
                _comment_in_between(bob, monkeypatch, number)
            assert spam_marking.mark(bob, number, by=BY).is_new is not is_spam
            monkeypatch.undo()
            is_spam = True
        elif act == "unmark" and not is_spam:
            with pytest.raises(Conflict):
                spam_marking.unmark(bob, number, by=BY)
        elif act == "unmark":
            spam_marking.unmark(bob, number, by=BY)
            is_spam = False
        elif is_spam:
            with pytest.raises(SetAside):
                commenting.comment(bob, number, body="No.", internal=act == "note")
        elif act == "change":
            priority = changing.read(bob, number).priority
            changing.change(bob, number, Wishes(priority=Priority.LOW if priority != Priority.LOW else Priority.HIGH))
        else:
            commenting.comment(bob, number, body="Yes.", internal=act == "note")
        follower.fold()
        assert kept_counts(bob) == recounted(bob)
        assert ends(bob, number) == {is_spam}
        assert (number in in_lists(bob)) is not is_spam


def _comment_in_between(bob: TenantContext, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    read, meanwhile = spam_marking._read, [True]

    def overtaken(tenant: TenantContext, which: int) -> Any:
        found = read(tenant, which)
        if meanwhile:
            meanwhile.clear()
            commenting.comment(bob, number, body="In between.")
        return found

    monkeypatch.setattr(spam_marking, "_read", overtaken)


def test_a_long_conversation_and_one_of_merged_tickets_are_no_spam(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 2)
    for n in range(spam_marking._MOST):
        commenting.comment(bob, 1, body=f"c{n}")
    with pytest.raises(Conflict, match="too many entries"):
        spam_marking.mark(bob, 1, by=BY)
    ticket_merging.merge(bob, 1, into=2)
    with pytest.raises(Conflict, match="Take them out first"):
        spam_marking.mark(bob, 2, by=BY)


@pytest.mark.parametrize("fewer", range(8))
def test_the_longest_conversation_that_is_spam_comes_back(world: World, bob: TenantContext, fewer: int) -> None:
    world.tickets("acme", 1)
    have = len(items(bob, 1))
    for n in range(spam_marking._MOST - have - fewer):
        commenting.comment(bob, 1, body=f"c{n}")
    try:
        spam_marking.mark(bob, 1, by=BY)
    except Conflict:
        return
    spam_marking.unmark(bob, 1, by=BY)
    assert ends(bob, 1) == {False}


def test_a_mark_that_is_refused_blocks_nobody(bob: TenantContext, eve: Requester) -> None:
    ticket_merging.merge(bob, 1, into=2)
    with pytest.raises(Conflict, match="Take them out first"):
        spam_marking.mark(bob, 2, by=BY)
    assert not is_blocked(bob)


def test_a_mark_that_is_taken_back_frees_only_what_it_blocked_and_says_so(
    bob: TenantContext, browser: Browser, eve: Requester
) -> None:
    mail_settings.block(bob, EVE, by=BY)
    marked = spam_marking.mark(bob, 1, by=BY)
    page = browser.send("/tickets/bulk/undo/", {"receipt": marked.receipt(bob), "back": "/"}, follow=True)
    assert "is no spam" in page.content.decode()
    assert "not blocked any more" not in page.content.decode()
    assert is_blocked(bob)


# --- the API, and costs ---


def test_the_api_marks_and_takes_back_and_the_audit_trail_says_so(
    world: World, bob: TenantContext, eve: Requester
) -> None:
    client = api_client(world)
    assert client.call("PUT", "/tickets/1/spam").json()["spam_at"]
    assert [one["number"] for one in client.call("GET", "/tickets").json()["data"]] == [2]
    assert client.call("DELETE", "/tickets/1/spam").json()["spam_at"] is None
    assert client.call("DELETE", "/tickets/1/spam").status_code == 409
    assert client.call("PUT", "/tickets/9/spam").status_code == 404
    page = world.browser("alice", "acme").get("/desk/audit/").content.decode()
    assert "marked as spam" in page
    assert "took the mark of spam from" in page


def test_a_mark_costs_a_query_and_a_transaction_and_the_list_one_query(world: World, bob: TenantContext) -> None:
    world.tickets("acme", 1)
    with meter.measure() as bill:
        spam_marking.mark(bob, 1, by=BY, block=False)
    operations = [call.operation for call in bill.calls]
    assert operations.count("Query") == 1
    assert operations.count("TransactWriteItems") == 2, "the ticket, and the audit row"
    browser = world.browser("bob", "acme")
    spent(browser, "/tickets/spam/")
    again = spent(browser, "/tickets/spam/")
    assert (again.trips, len(again.calls)) == (2, 2)
