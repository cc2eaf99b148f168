"""Operators find tenants by slug and by name, people by address in any case, tickets by number."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tenants.operators.facades import Session
from tenants.tenancy.stored import DirectoryItem
from tenants.tenancy.tenant_directory import TENANTS
from tests.support.operators import IDENTITY, Operator, calls, text_of, user_url
from tests.support.stored import put_all
from tests.support.world import Browser, World


def listed(slug: str, name: str, number: int) -> None:
    put_all([DirectoryItem(TENANTS, slug, tenant_id=f"{number:032}", title=name, created_at="2026-11-20T00:00:00Z")])


def rows(page: object) -> list[str]:
    return [str(obj) for obj in page.context["cl"].result_list]  # type: ignore[attr-defined]


def test_a_tenant_is_found_by_the_beginning_of_its_slug_with_one_query(world: World, root: Operator) -> None:
    with calls() as made:
        assert rows(root.get("/admin/tenants/tenant/?q=GLO")) == ["Globex (globex)"]
    assert [call.operation for call in made] == [IDENTITY, "Query"]


def test_a_tenant_whose_slug_begins_otherwise_is_found_by_a_part_of_its_name(world: World, root: Operator) -> None:
    listed("ms", "Müller & Söhne", 1)
    assert rows(root.get("/admin/tenants/tenant/?q=söhne", follow=True)) == ["Müller & Söhne (ms)"]
    assert rows(root.get("/admin/tenants/account/?q=Alice@Example.COM")) == ["alice@example.com"]


def test_a_search_that_found_a_slug_offers_the_names_too_and_a_filter_does_not_guess(
    world: World, root: Operator
) -> None:
    listed("gf", "Global Foods", 1)
    page = root.get("/admin/tenants/tenant/?q=glo")
    assert rows(page) == ["Globex (globex)"]
    (link,) = re.findall(r'href="([^"]+)">Search all names for', page.content.decode())
    assert sorted(rows(root.get("/admin/tenants/tenant/" + unescape(link)))) == ["Global Foods (gf)", "Globex (globex)"]
    several = "Several tenants have “glob” in their names. Type the slug of one."
    assert several in root.says("/admin/tenants/membership/?tenant_id=glob")


def test_a_search_can_be_cleared(world: World, root: Operator) -> None:
    page = root.get("/admin/tenants/tenant/?status__exact=active&q=ac").content.decode()
    assert '<a href="?status__exact=active">Clear search</a>' in page
    assert "Show all" not in page


@pytest.mark.parametrize("typed", ["acme", "ACME", "Acme "])
def test_a_list_of_a_tenant_takes_its_slug_or_name(world: World, root: Operator, typed: str) -> None:
    assert len(rows(root.get("/admin/tenants/membership/", {"tenant_id": typed}))) == 3


def test_a_column_that_this_list_cannot_be_sorted_by_is_no_link(world: World, root: Operator) -> None:
    acme = world.tenants["acme"].tenant_id
    page = root.get(f"/admin/tenants/membership/?tenant_id={acme}").content.decode()
    for link in re.findall(r'href="(\?[^"]*\bo=[^"]*)"', page):
        assert root.get("/admin/tenants/membership/" + unescape(link)).status_code == 200


def test_a_session_is_listed_by_its_browser_and_its_desk(world: World, root: Operator) -> None:
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1 CriOS/120.0 Mobile Safari/604.1"
    bob = world.users["bob"].id
    browser = Browser(headers={"user-agent": phone})
    browser.sign_in("bob@example.com")  # into the only desk that Bob has
    session = Session.objects.filter(user_id=bob).first()
    says = root.says(f"/admin/tenants/session/?user_id={bob}")
    assert f"Chrome on iPhone {session.pk}" in says
    assert f"Acme {world.tenants['acme'].tenant_id}" in says
    assert phone not in says


def test_those_who_may_not_sign_in_are_listed_until_they_are_enabled_again(world: World, root: Operator) -> None:
    url = "/admin/tenants/account/?disabled__exact=DISABLED"
    root.act(user_url(world, "bob"), "_disable")
    with calls() as made:
        assert rows(root.get(url)) == ["bob@example.com"]
    assert [call.operation for call in made] == [IDENTITY, "Query", "Query"], "the accounts, and the desks of each"
    root.act(user_url(world, "bob"), "_enable")
    assert rows(root.get(url)) == []
    others = root.says("/admin/tenants/account/?disabled__exact=")
    assert "There are none" not in others, "a list of all others is refused"


@pytest.mark.parametrize(
    ("typed", "found"),
    [*((text, ["#2 Ticket 2"]) for text in ("2", "#2", " 2 ")), *((text, []) for text in ("abc", "-1", "9" * 40, "²"))],
)
def test_a_ticket_is_found_by_its_number_whatever_status_is_chosen(
    world: World, root: Operator, typed: str, found: list[str]
) -> None:
    world.tickets("acme", 3)
    page = root.get("/admin/tickets/ticket/", {"tenant_id": "acme", "status__exact": "closed", "q": typed})
    assert (page.status_code, rows(page)) == (200, found)
    assert "Now choose the tenant" in text_of(root.get("/admin/tickets/ticket/?q=2"))
    assert "“abc” is no number of a ticket." in text_of(root.get("/admin/tickets/ticket/?q=abc"))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("auditrow/?tenant_id=nowhere", "There is no tenant “nowhere”."),
        ("membership/?tenant_id=nowhere", "There is no tenant “nowhere”."),
        ("membership/?user_id=nobody@example.com", "There is no user “nobody@example.com”."),
        ("session/?user_id=nobody@example.com", "There is no user “nobody@example.com”."),
    ],
)
def test_a_filter_by_what_is_not_there_says_so(world: World, root: Operator, address: str, sentence: str) -> None:
    page = root.get(f"/admin/tenants/{address}")
    assert page.status_code == 400
    assert sentence in text_of(page)
    assert "There are none" not in text_of(page)
