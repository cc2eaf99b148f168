"""An address names its desk: one's own other desk, a desk that was renamed, and addresses from before."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from portal.web.desk_prefix import addresses_of
from portal.web.middleware import HealthMiddleware
from tenants.audit_trail.recording import Actor
from tenants.provisioning import renaming
from tenants.tenancy import slugs, tenant_directory
from tests.support.commands import run
from tests.support.world import PASSWORD, Browser, World
from tickets.desk import creating

REQUEST = "a" * 32


@pytest.fixture
def desks(world: World) -> World:
    """Acme and Globex, each with a ticket number 1."""
    creating.create(world.context("alice", "acme"), title="Acme's printer", description="")
    creating.create(world.context("charlie", "globex"), title="Globex's printer", description="")
    return world


def renamed(world: World, who: str, where: str, slug: str) -> None:
    renaming.rename(world.context(who, where), name=where.title(), slug=slug, by=Actor(world.users[who].id))


def text(response: Any) -> str:
    page: str = response.content.decode()
    return page


def button(response: Any) -> tuple[str, dict[str, str]]:
    """Where the page's form to switch desks leads, and what it sends."""
    form = re.search(r'<form method="post" action="(/tenants/switch/)">(.*?)</form>', text(response), re.DOTALL)
    assert form is not None
    return form[1], dict(re.findall(r'name="(tenant|next)" value="([^"]*)"', form[2]))


# --- another desk of one's own ---


def test_a_tab_of_one_desk_does_not_show_the_other_desks_ticket(desks: World) -> None:
    alice = desks.browser("alice", "globex")
    page = alice.get("/acme/tickets/1/")
    assert page.status_code == 409
    assert "This page belongs to Acme" in text(page)
    assert "You are working in <b>Globex</b> now." in text(page)
    assert "printer" not in text(page)


def test_the_offered_button_switches_and_opens_what_was_asked_for(desks: World) -> None:
    alice = desks.browser("alice", "globex")
    action, fields = button(alice.get("/acme/tickets/1/?from=mail"))
    answer = alice.post(action, fields, follow=True)
    assert answer.redirect_chain == [("/acme/tickets/1/?from=mail", 302)]
    assert "Acme&#x27;s printer" in text(answer)


def test_a_link_that_htmx_follows_shows_the_offer_as_a_whole_page(desks: World) -> None:
    headers = {"HX-Request": "true", "HX-Boosted": "true", "HX-Current-URL": "http://testserver/acme/tickets/"}
    answer = desks.browser("alice", "globex").get("/acme/tickets/1/", headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/acme/tickets/1/")


def test_a_part_of_a_page_moves_the_whole_page_to_the_offer(desks: World) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/acme/tickets/dashboard/?days=90"}
    answer = desks.browser("alice", "globex").get("/acme/tickets/dashboard/verified/", headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/acme/tickets/dashboard/?days=90")


def test_a_part_of_a_page_never_moves_it_to_another_site(desks: World) -> None:
    alice = desks.browser("alice", "globex")
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver//acme/tickets/"}
    assert alice.get("/acme/tickets/updates/", headers=headers)["HX-Redirect"] == "/%2Facme/tickets/"


def test_choosing_a_desk_does_not_lead_back_to_another_desks_page(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    fields = {"tenant": desks.tenants["globex"].tenant_id, "next": "/acme/tickets/1/"}
    assert alice.post("/tenants/switch/", fields)["Location"] == "/globex/tickets/"


def test_a_link_into_one_of_several_desks_leads_there_after_signing_in(desks: World) -> None:
    browser = Browser()
    asked = browser.get("/globex/tickets/1/")
    assert asked["Location"] == "/login/?next=/globex/tickets/1/"
    credentials = {"email": "alice@example.com", "password": PASSWORD}
    page = browser.post("/login/", credentials | {"next": "/globex/tickets/1/"}, follow=True)
    assert "Globex&#x27;s printer" in text(page)


# --- addresses without a desk ---


def test_an_address_without_a_desk_leads_to_the_pinned_one(desks: World) -> None:
    alice = desks.browser("alice", "globex")
    alice.at_desk = str  # type: ignore[method-assign]  # each address as it stands
    for path in ("/tickets/", "/tickets/1/", "/tickets/?status=closed&tag=a%26b", "/desk/leave/"):
        answer = alice.get(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/globex{path}")


def test_a_form_sent_to_an_address_without_a_desk_arrives_whole_and_once(desks: World) -> None:
    bob = desks.browser("bob")
    bob.at_desk = str  # type: ignore[method-assign]  # each address as it stands
    page = bob.send("/tickets/1/comment/", {"body": "Have you tried?", "request_id": REQUEST}, follow=True)
    assert page.redirect_chain[0] == ("/acme/tickets/1/comment/", 307)
    assert text(page).count("Have you tried?") == 1


def test_the_name_alone_leads_to_the_queue(desks: World) -> None:
    assert desks.browser("bob").get("/acme/")["Location"] == "/acme/tickets/"


# --- a desk that was renamed ---


def test_the_former_name_leads_to_the_present_one(desks: World) -> None:
    renamed(desks, "alice", "acme", "industries")
    answer = desks.browser("bob").get("/acme/tickets/1/?from=mail")
    assert (answer.status_code, answer["Location"]) == (302, "/industries/tickets/1/?from=mail")


def test_a_form_on_a_page_from_before_the_renaming_arrives(desks: World) -> None:
    bob = desks.browser("bob")
    mark = bob.mark()
    renamed(desks, "alice", "acme", "industries")
    form = {"_page": mark, "body": "Still here", "request_id": REQUEST}
    assert "Still here" in text(bob.post("/acme/tickets/1/comment/", form, follow=True))


def test_a_former_name_that_another_desk_has_now_is_that_desks(desks: World) -> None:
    renamed(desks, "alice", "acme", "industries")
    renamed(desks, "charlie", "globex", "acme")
    alice = desks.browser("alice", "acme")
    assert "This page belongs to Globex" in text(alice.get("/acme/tickets/1/"))
    assert desks.browser("charlie").get("/globex/tickets/1/")["Location"] == "/acme/tickets/1/"
    assert desks.browser("charlie").get("/industries/tickets/1/").status_code == 404


# --- names that are no desk's ---


def first_words(patterns: list[URLPattern | URLResolver]) -> set[str]:
    """The first word of each address that does not begin with a desk's name."""
    words = set()
    for pattern in patterns:
        route = str(pattern.pattern)
        if route == "" and isinstance(pattern, URLResolver):
            words |= first_words(pattern.url_patterns)
        elif not route.startswith("<slug:desk>"):
            words.add(re.split(r"[/<]", route)[0])
    return words - {""}


def test_no_desk_can_be_called_like_the_beginning_of_another_address() -> None:
    words = first_words(get_resolver().url_patterns)
    assert {"login", "account", "admin", "tickets", "desk", "invitation"} <= words
    outside = {settings.STATIC_URL.strip("/"), HealthMiddleware.PATH.strip("/"), "api"}
    assert words | outside <= slugs.RESERVED


def test_no_tenant_is_created_under_the_beginning_of_another_address(world: World) -> None:
    for word in sorted(first_words(get_resolver().url_patterns)):
        for arguments in ((word,), ("Initech", "--slug", word)):
            refused = run("create_tenant", *arguments)
            assert (refused.status, refused.err) == (1, f"The name {word} is reserved. Choose another one.")
    assert {desk.name for desk in tenant_directory.all_tenants()} == {"acme", "globex"}


def test_a_reserved_name_is_refused_where_it_was_typed(desks: World) -> None:
    page = desks.browser("alice", "acme").send("/desk/settings/", {"name": "Acme", "slug": "admin"})
    assert page.status_code == 422
    assert page.context["form"].errors == {"slug": ["The name admin is reserved. Choose another one."]}


def test_a_name_with_other_characters_is_refused_with_the_rule_for_names(desks: World) -> None:
    page = desks.browser("alice", "acme").send("/desk/settings/", {"name": "Acme", "slug": "acme support!"})
    assert page.status_code == 422
    assert page.context["form"].errors == {"slug": [slugs.SLUG_RULE]}


# --- how addresses are made ---


def test_every_named_address_can_be_made_with_and_without_a_desk() -> None:
    with addresses_of("acme"):
        assert reverse("tickets:ticket", args=[7]) == "/acme/tickets/7/"
        assert reverse("tenants:member_role", args=["x"]) == "/acme/desk/members/x/role/"
        assert reverse("tenants:login") == "/login/"
    assert reverse("tickets:ticket", args=[7]) == "/tickets/7/"


def test_addresses_of_one_request_do_not_stay_for_the_next(desks: World) -> None:
    desks.browser("bob").get("/acme/tickets/")
    assert reverse("tickets:queue") == "/tickets/"
    page = Browser().get("/login/")
    assert "/acme/" not in text(page)
