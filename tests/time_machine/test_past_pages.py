"""The pages of the past: what an admin sees of tickets as they were, and how they are restored."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from portal import clock
from portal.web import locales
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tenants.tenancy.context import Role, TenantContext
from tests.desk.test_cost import _watching
from tests.support.commands import run
from tests.support.operators import text_of
from tests.support.world import Browser, World
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import TicketState, Wishes
from tickets.ticket.fields import Status
from tickets.time_machine import past_tickets, presenters, restoring


@pytest.fixture
def alice(world: World) -> TenantContext:
    world.tickets("acme", 3)
    return world.context("alice", "acme")


@pytest.fixture
def browser(world: World, alice: TenantContext) -> Browser:
    return world.browser("alice", "acme")


def changed(alice: TenantContext, number: int = 1) -> str:
    """Change a ticket, and return the moment before."""
    then = clock.stamp()
    changing.change(alice, number, Wishes(title="Other title", status=Status.CLOSED))
    return then


def restore(browser: Browser, alice: TenantContext, at: str, *numbers: int, **more: str) -> Any:
    states = [str(TicketState.of(changing.read(alice, number))) for number in numbers]
    return browser.send("/tickets/past/restore/", {"at": at, "tickets": states, **more}, follow=True)


def test_a_ticket_stands_as_it_was_beside_what_it_is(browser: Browser, alice: TenantContext) -> None:
    then = changed(alice)
    page = text_of(browser.get("/tickets/1/past/", {"at": then}))
    assert "Ticket #1 as it was on" in page
    assert re.search(r"Title Different Then Ticket 1 Now Other title", page)
    assert re.search(r"Status Different Then Open Now Closed", page)
    assert "Nothing can be changed here" in page


def test_a_ticket_offers_the_moments_before_its_changes(browser: Browser, alice: TenantContext) -> None:
    changed(alice)
    page = browser.get("/tickets/1/past/")
    assert "Nothing has happened since" in text_of(page)
    (before,) = [one["url"] for one in page.context["moments"]]
    assert "Then Ticket 1 Now Other title" in text_of(browser.get(before))


def test_tickets_are_listed_as_they_were(browser: Browser, alice: TenantContext) -> None:
    then = changed(alice)
    page = browser.get("/tickets/past/", {"at": then})
    assert [row["ticket"].title for row in page.context["rows"]] == ["Ticket 3", "Ticket 2", "Ticket 1"]
    assert len(re.findall(r'type="checkbox" name="tickets"', page.content.decode())) == 1


def test_the_list_is_filtered_by_what_tickets_were_and_the_next_page_is_too(
    world: World, browser: Browser, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing.change(alice, 2, Wishes(resolver=world.users["bob"].id, tags=["vip"], status=Status.PENDING))
    then = changed(alice, 2)
    changing.change(alice, 2, Wishes(resolver="", tags=[]))
    commenting.comment(alice, 3, body="No change.")

    def listed(**only: str) -> list[int]:
        return [row["ticket"].number for row in browser.get("/tickets/past/", {"at": then, **only}).context["rows"]]

    assert [listed(status="pending"), listed(assignee="bob"), listed(tag="VIP"), listed(changed="yes")] == [[2]] * 4
    assert [listed(status="open"), listed(status="closed"), listed(tag="vi")] == [[3, 1], [], []]
    assert browser.get("/tickets/past/", {"at": then, "status": "lost"}).status_code == 400
    monkeypatch.setattr(past_tickets, "PAGE_SIZE", 1)
    monkeypatch.setattr(past_tickets, "LOOKED", 2)
    page = browser.get("/tickets/past/", {"at": then, "status": "open", "from": "3"})
    assert [row["ticket"].number for row in page.context["rows"]] == [3]
    following = browser.get(f"/tickets/past/{page.context['lower_url']}")
    assert [row["ticket"].number for row in following.context["rows"]] == [1]


def test_restoring_asks_first_and_says_what_will_change(browser: Browser, alice: TenantContext) -> None:
    then = changed(alice)
    asked = text_of(restore(browser, alice, then, 1))
    assert "Title: Other title → Ticket 1" in asked
    assert changing.read(alice, 1).title == "Other title"
    done = restore(browser, alice, then, 1, confirmed="yes")
    assert "1 ticket was restored" in text_of(done)
    assert f"as of: {clock.parse(then):%-d %b %Y, %H:%M:%S} UTC tickets: 1" in text_of(browser.get("/desk/audit/"))
    stored = changing.read(alice, 1)
    assert (stored.title, stored.status) == ("Ticket 1", "open")
    assert f"restored the ticket as of {clock.parse(then):%-d %B %Y, %H:%M:%S} UTC" in text_of(
        browser.get("/tickets/1/")
    )


def test_several_are_restored_and_each_that_was_not_is_named(browser: Browser, alice: TenantContext) -> None:
    then = changed(alice, 1)
    changed(alice, 2)
    page = text_of(restore(browser, alice, then, 1, 2, 3, confirmed="yes"))
    assert "2 tickets were restored" in page
    assert "#3: the same now as then." in page


# --- what cannot be restored ---


def handed_on(world: World, alice: TenantContext) -> str:
    """Bob leaves three tickets, which Alice takes, the third under another title; return the moment before."""
    for number in (1, 2, 3):
        changing.change(alice, number, Wishes(resolver=world.users["bob"].id))
    then = clock.stamp()
    for number in (1, 2, 3):
        changing.change(alice, number, Wishes(resolver=alice.user_id))
    changing.change(alice, 3, Wishes(title="Other title"))
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=SYSTEM)
    return then


def test_the_page_that_asks_counts_what_will_change_and_leads_to_the_members_that_are_missing(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    then = handed_on(world, alice)
    asked = restore(browser, alice, then, 1, 2, 3)
    page = text_of(asked)
    assert "Restore 1 ticket to" in page
    assert "1 of the 3 selected tickets will change." in page
    assert (
        "#3 Other title Title: Other title → Ticket 3 Assignee stays Alice Example : Bob Example is no longer" in page
    )
    assert "2 will not change #1 Ticket 1 Assignee stays Alice Example : Bob Example is no longer a member." in page
    (link,) = set(re.findall(r'<a href="([^"]+)">Restore the member first</a>', asked.content.decode()))
    assert "Bob Example bob@example.com Agent No member" in text_of(browser.get(link))


def test_a_restoration_says_of_each_ticket_what_was_not_restored_and_why(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    then = handed_on(world, alice)
    page = text_of(restore(browser, alice, then, 1, 2, 3, confirmed="yes"))
    assert re.search(r"1 ticket was restored to [^.]* UTC in part\.", page)
    assert "#1, #2, #3: assignee not restored: Bob Example is no longer a member." in page
    assert "Restore the members first" in page
    assert "restored 1 ticket as of:" in text_of(browser.get("/desk/audit/"))
    assert "the same now as then" not in page
    assert (changing.read(alice, 3).title, changing.read(alice, 1).version) == ("Ticket 3", 3)


def test_where_nothing_would_change_there_is_nothing_to_press(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    then = handed_on(world, alice)
    asked = restore(browser, alice, then, 1, 2)
    assert "Nothing can be restored to" in text_of(asked)
    assert 'name="confirmed"' not in asked.content.decode()
    done = text_of(restore(browser, alice, then, 1, confirmed="yes"))
    assert "No ticket was restored to" in done
    assert "#1: assignee not restored: Bob Example is no longer a member." in done


def test_once_the_member_is_back_the_tickets_are_restored_whole(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    then = handed_on(world, alice)
    member_changes.add(user=world.users["bob"], tenant=world.tenants["acme"], role=Role.AGENT, by=SYSTEM)
    page = text_of(restore(browser, alice, then, 1, 2, 3, confirmed="yes"))
    assert re.search(r"3 tickets were restored to [^.]* UTC\.", page)
    assert "not restored" not in page
    assert {changing.read(alice, number).resolver for number in (1, 2, 3)} == {world.users["bob"].id}


def test_an_assignee_who_is_the_same_although_no_member_is_not_called_missing(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    changing.change(alice, 1, Wishes(resolver=world.users["bob"].id))
    then = changed(alice)
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=SYSTEM)
    assert "Bob Example" not in text_of(restore(browser, alice, then, 1))
    page = text_of(restore(browser, alice, then, 1, confirmed="yes", list="yes"))
    assert re.search(r"1 ticket was restored to [^.]* UTC\.", page)
    assert "not restored" not in page


def test_an_assignee_who_was_erased_is_no_member_who_could_be_restored(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    then = handed_on(world, alice)
    run("erase_person", "acme", "bob@example.com")
    asked = text_of(restore(browser, alice, then, 1))
    assert re.search(r"Assignee stays Alice Example : Erased person \w+ is no longer known\.", asked)
    assert "Restore the member first" not in asked
    done = text_of(restore(browser, alice, then, 1, confirmed="yes"))
    assert re.search(r"#1: assignee not restored: Erased person \w+ is no longer known\.", done)
    assert "Restore the members first" not in done


def test_many_reasons_are_counted_and_no_ticket_is_left_out(
    world: World, browser: Browser, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presenters, "REASONS", 1)
    then = handed_on(world, alice)
    states = [str(TicketState.of(changing.read(alice, number))) for number in (1, 2)]
    changing.change(alice, 2, Wishes(title="Theirs"))
    creating.create(alice, title="Later")
    form = {"at": then, "tickets": [*states, "4.1.open.", "9.1.open."], "confirmed": "yes"}
    page = text_of(browser.send("/tickets/past/restore/", form, follow=True))
    assert "#1: assignee not restored: Bob Example is no longer a member." in page
    assert "3 more were not restored whole, for other reasons: #2, #4, #9." in page


def test_the_filter_outlives_a_restoration_and_its_cancelling(browser: Browser, alice: TenantContext) -> None:
    then = changed(alice, 1)
    changed(alice, 2)
    address = {"at": then, "status": "open", "changed": "yes", "from": "3"}
    listed = browser.get("/tickets/past/", address)
    assert [row["ticket"].number for row in listed.context["rows"]] == [2, 1]
    form = dict(re.findall(r'type="hidden" name="([a-z]+)" value="([^"]*)"', listed.content.decode()))
    asked = restore(browser, alice, then, 1, **{name: form[name] for name in ("list", "status", "changed", "from")})
    (cancel,) = re.findall(r'href="([^"]+)">Cancel', asked.content.decode())
    assert dict(parse_qsl(urlsplit(unescape(cancel)).query)) == address
    again = dict(re.findall(r'type="hidden" name="([a-z]+)" value="([^"]*)"', asked.content.decode()))
    done = browser.send("/tickets/past/restore/", again, follow=True)
    assert dict(parse_qsl(urlsplit(done.redirect_chain[-1][0]).query)) == address  # type: ignore[attr-defined]
    assert [row["ticket"].number for row in done.context["rows"]] == [2]  # type: ignore[attr-defined]


def test_a_ticket_that_is_the_same_again_is_not_offered(browser: Browser, alice: TenantContext) -> None:
    then = changed(alice)
    restore(browser, alice, then, 1, confirmed="yes")
    page = browser.get("/tickets/past/", {"at": then})
    assert "The same again , ticket 1" in text_of(page)
    assert 'name="tickets"' not in page.content.decode()
    assert "Restore the selected" not in text_of(page)
    assert browser.get("/tickets/past/", {"at": then, "changed": "yes"}).context["rows"] == []


def test_the_page_that_asks_costs_two_queries_for_each_ticket_and_a_read_of_their_assignees(
    world: World, browser: Browser, alice: TenantContext
) -> None:
    then = handed_on(world, alice)
    with _watching() as bills:
        restore(browser, alice, then, 1, 2, 3)
    (bill,) = [bill for bill in bills if bill.trips > 1]
    assert [call.operation for call in bill.calls] == ["BatchGetItem", *["Query"] * 6, "BatchGetItem"]
    assert bill.trips == 3  # who calls; the tickets, eight at a time; those who had them then


@pytest.mark.parametrize("address", ["/tickets/past/", "/tickets/1/past/", "/desk/members/past/"])
def test_a_moment_that_is_none_is_said(browser: Browser, address: str) -> None:
    beyond_the_calendar = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"]
    for at in ("yesterday", "2999-01-01T00:00:00", "2026-13-01", *beyond_the_calendar):
        page = browser.get(address, {"at": at})
        assert page.status_code == 400, at
        assert 'role="alert"' in page.content.decode()


def test_a_year_that_is_half_typed_is_one_in_which_there_was_no_desk(browser: Browser) -> None:
    at = "0202-11-23T07:00:00"  # what a browser's input sends on the way to 2026
    assert 'value="0202-11-23T07:00:00"' in browser.get("/tickets/past/", {"at": at}).content.decode()
    assert browser.get("/tickets/1/past/", {"at": at}).status_code == 200
    assert "Who was a member before that is not known." in text_of(browser.get("/desk/members/past/", {"at": at}))


def test_a_browsers_input_means_the_end_of_its_second(browser: Browser, alice: TenantContext) -> None:
    second = f"{clock.now():%Y-%m-%dT%H:%M:%S}"
    page = browser.get("/tickets/past/", {"at": second})
    assert len(page.context["rows"]) == 3


def test_a_command_restores_what_was_alike_and_refuses_both_ways_at_once(alice: TenantContext) -> None:
    then = changed(alice, 1)
    changed(alice, 3)
    shown = run("time_machine", "acme", "--at", then, "--status", "open", "--changed", "--restore")
    assert (shown.status, "2 tickets were restored" in shown.out) == (0, True), shown
    assert [changing.read(alice, number).status for number in (1, 3)] == ["open", "open"]
    for arguments in (("1", "--status", "open"), (), ("--status", "closed")):
        assert run("time_machine", "acme", *arguments, "--at", then).status == 1


def test_a_command_that_cannot_restore_a_ticket_whole_says_so_and_fails(world: World, alice: TenantContext) -> None:
    then = handed_on(world, alice)
    ended = run("time_machine", "acme", 3, "--at", then, "--restore")
    assert "#3: assignee not restored: Bob Example is no longer a member." in ended.out
    assert (ended.status, "Not all tickets are what they were." in ended.err) == (1, True)


def test_a_command_shows_what_is_different_and_restores_it(alice: TenantContext) -> None:
    then = changed(alice)
    shown = run("time_machine", "acme", 1, 2, "--at", then).out
    assert "  Title: 'Ticket 1', now 'Other title'" in shown
    assert "#2 is as it was: Ticket 2" in shown
    assert changing.read(alice, 1).title == "Other title"
    assert "1 ticket was restored" in run("time_machine", "acme", 1, 2, "--at", then, "--restore").out
    assert changing.read(alice, 1).title == "Ticket 1"


def test_what_was_restored_is_said_in_the_zone_of_the_person() -> None:
    with locales.shown_in(locales.Locale("Asia/Tokyo", "iso", names_zone=False)):
        said, _ = presenters.outcome([restoring.Restored(1, is_changed=True)], "2026-11-26T12:00:00.000000Z")
    assert said == "1 ticket was restored to 2026-11-26, 21:00:00 Asia/Tokyo (UTC+9)."
