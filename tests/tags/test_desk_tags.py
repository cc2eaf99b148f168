"""The tags of a desk: renamed, merged and deleted on all tickets, coloured, and suggested while somebody types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.errors import Conflict, Invalid
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import spent
from tests.support.folding import Follower, kept_counts, recounted
from tests.support.world import Browser, World
from tickets.bulk_jobs import bulk_job, bulk_requests
from tickets.desk import changing, creating
from tickets.desk_setup import setup
from tickets.tags import desk_tags

BY = Actor("d" * 32, "alice@example.com", "test")


@pytest.fixture
def browser(world: World) -> Browser:
    return world.browser("alice", "acme")


@pytest.fixture
def follower(alice: TenantContext) -> Follower:
    """Tickets 1 to 4 with tags, counted."""
    made = Follower()
    for tags in (["printer"], ["printer", "vpn"], ["drucker"], ["vpn"]):
        creating.create(alice, title="Ticket", tags=tags)
    made.fold()
    return made


def finish(follower: Follower) -> None:
    """Let a job of the desk run to its end, and count what it did."""
    for _ in range(20):
        bulk_job.follower(per_second=1e6).turn()
        follower.fold()


def tags(tenant: TenantContext) -> list[list[str]]:
    return [list(changing.read(tenant, number).tags) for number in range(1, 5)]


def colour(tenant: TenantContext, tag: str) -> str:
    tenant.items.pop("setup", None)
    return setup.colours_of(tenant).get(tag, "")


# --- on all tickets ---


def test_a_tag_is_renamed_on_all_tickets_and_keeps_its_colour(
    alice: TenantContext, browser: Browser, follower: Follower
) -> None:
    setup.change_colours(alice, {"printer": "3"}, by=BY)
    answer = browser.send("/tickets/tags/edit/", {"tag": "printer", "act": "rename", "to": "Print"})
    assert answer.status_code == 302
    finish(follower)
    assert tags(alice) == [["print"], ["vpn", "print"], ["drucker"], ["vpn"]]
    assert kept_counts(alice) == recounted(alice)
    assert (colour(alice, "printer"), colour(alice, "print")) == ("", "3")


def test_a_name_that_another_tag_has_merges_the_two_and_undo_parts_them(
    alice: TenantContext, browser: Browser, follower: Follower
) -> None:
    before = tags(alice)
    job_id = desk_tags.rename(alice, "printer", to="vpn", by=BY)
    finish(follower)
    assert tags(alice) == [["vpn"], ["vpn"], ["drucker"], ["vpn"]]
    assert kept_counts(alice) == recounted(alice)
    bulk_requests.undo(alice, job_id, by=BY)
    finish(follower)
    assert tags(alice) == before
    assert kept_counts(alice) == recounted(alice)


def test_a_tag_is_deleted_on_all_tickets(alice: TenantContext, browser: Browser, follower: Follower) -> None:
    browser.send("/tickets/tags/edit/", {"tag": "vpn", "act": "delete"})
    with pytest.raises(Conflict):
        desk_tags.delete(alice, "printer", by=BY)
    assert "under way" in browser.get("/tickets/tags/").content.decode()
    finish(follower)
    assert tags(alice) == [["printer"], ["printer"], ["drucker"], []]
    assert kept_counts(alice) == recounted(alice)


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ("", "Enter a name."),
        ("a,b", "Enter one tag."),
        ("printer", "Enter another name."),
        ("a#b", "which tags cannot"),
    ],
)
def test_a_name_that_cannot_be_is_refused_at_its_field(browser: Browser, to: str, sentence: str) -> None:
    answer = browser.send("/tickets/tags/edit/", {"tag": "printer", "act": "rename", "to": to})
    assert (answer.status_code, sentence in answer.content.decode()) == (422, True)


def test_agents_see_the_tags_and_admins_change_them(world: World, browser: Browser, follower: Follower) -> None:
    page = browser.get("/tickets/tags/").content.decode()
    assert page.index("vpn") < page.index("drucker"), "the most used first"
    bob = world.browser("bob", "acme")
    shown = bob.get("/tickets/tags/").content.decode()
    assert ("printer" in shown, "tags/edit" in shown) == (True, False)
    assert bob.send("/tickets/tags/edit/", {"tag": "vpn", "act": "delete"}).status_code == 403
    assert world.browser("vera", "acme").get("/tickets/tags/").status_code == 403
    assert "No tags yet" in world.browser("charlie", "globex").get("/tickets/tags/").content.decode()
    assert browser.get("/tickets/tags/edit/?tag=a,b").status_code == 302


# --- colours ---


def test_a_coloured_tag_is_a_coloured_chip_in_lists_tickets_searches_and_on_the_dashboard(
    world: World, browser: Browser, follower: Follower
) -> None:
    assert 'hue-3" href' not in browser.get("/tickets/").content.decode()
    form = browser.get("/tickets/tags/edit/?tag=printer").content.decode()
    assert "Violet" in form
    assert browser.send("/tickets/tags/edit/", {"tag": "printer", "act": "colour", "colour": "3"}).status_code == 302
    for path in ("/tickets/", "/tickets/1/", "/tickets/tags/", "/tickets/dashboard/"):
        page = browser.get(path).content.decode()
        assert re.search(r'class="tag hue-3"[^>]*>printer<', page), path
        assert not re.search(r'class="tag hue-\d"[^>]*>vpn<', page), path
    creating.create(world.context("charlie", "globex"), title="Elsewhere", tags=["printer"])
    assert 'class="tag hue-' not in world.browser("charlie", "globex").get("/tickets/").content.decode()
    assert browser.send("/tickets/tags/edit/", {"tag": "printer", "act": "colour", "colour": "9"}).status_code == 422


def test_a_colour_that_another_tab_has_given_meanwhile_is_shown_before_it_is_replaced(
    browser: Browser, alice: TenantContext, follower: Follower
) -> None:
    setup.change_colours(alice, {"printer": "3"}, by=BY)
    sent = {"tag": "printer", "act": "colour", "colour": "2", "initial-colour": ""}
    page = browser.send("/tickets/tags/edit/", sent)
    assert (page.status_code, "Stored now:" in page.content.decode()) == (409, True)
    assert (colour(alice, "printer"), 'name="initial-colour" value="3"' in page.content.decode()) == ("3", True)
    assert browser.send("/tickets/tags/edit/", sent | {"initial-colour": "3"}).status_code == 302


def test_colours_are_few_and_known(alice: TenantContext) -> None:
    with pytest.raises(Invalid):
        setup.change_colours(alice, {"printer": "12"}, by=BY)
    with pytest.raises(Invalid, match="Up to 100"):
        setup.change_colours(alice, {f"tag-{n}": "1" for n in range(101)}, by=BY)
    assert not setup.change_colours(alice, {"printer": ""}, by=BY)


def test_each_colour_can_be_read_in_light_and_dark() -> None:
    sheet = (Path(settings.BASE_DIR) / "static/css/variables.css").read_text()
    pairs = re.findall(r"--hue-(\d)-bg: (#\w{6}); --hue-\1-fg: (#\w{6});", sheet)
    assert [hue for hue, _, _ in pairs] == [*map(str, range(len(setup.COLOUR_NAMES)))] * 2
    assert [hue for hue, back, front in pairs if _contrast(back, front) < 4.5] == []


def _contrast(one: str, other: str) -> float:
    lights = sorted((_luminance(one), _luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# --- suggestions ---


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", ["printer", "vpn", "drucker"]),
        ("pr", ["printer"]),
        ("printer, v", ["printer, vpn"]),
        ("printer, vpn, r", ["printer, vpn, drucker"]),
        ("zzz", []),
    ],
)
def test_tags_are_suggested_by_their_use(
    alice: TenantContext, browser: Browser, follower: Follower, typed: str, offered: list[str]
) -> None:
    assert desk_tags.suggest(alice, typed) == offered
    page = browser.get("/tickets/tags/options/", {"tags": typed}).content.decode()
    assert re.findall(r'value="([^"]*)"', page) == offered
    assert 'list="tags-options"' in browser.get("/tickets/new/").content.decode()


# --- costs ---


def test_pages_and_suggestions_cost_the_same_however_many_tags_there_are(world: World, alice: TenantContext) -> None:
    browser, follower = world.browser("alice", "acme"), Follower()

    def costs() -> list[Any]:
        found = []
        for path in ("/tickets/tags/", "/tickets/tags/options/?tags=a"):
            spent(browser, path)
            bill = spent(browser, path)
            assert bill.trips == 2
            found.append((len(bill.calls), bill.read_units))
        return found

    creating.create(alice, title="One", tags=["a"])
    follower.fold()
    few = costs()
    for n in range(20):
        creating.create(alice, title="More", tags=[f"a{n}-{m}" for m in range(12)])
    follower.fold()
    assert [calls for calls, _ in costs()] == [calls for calls, _ in few]


def test_a_list_with_colours_costs_what_one_without_does(
    world: World, alice: TenantContext, follower: Follower
) -> None:
    browser = world.browser("alice", "acme")
    spent(browser, "/tickets/")
    plain = spent(browser, "/tickets/")
    setup.change_colours(alice, {"printer": "3"}, by=BY)
    coloured = spent(browser, "/tickets/")
    assert (coloured.trips, len(coloured.calls), coloured.read_units) == (
        plain.trips,
        len(plain.calls),
        plain.read_units,
    )
