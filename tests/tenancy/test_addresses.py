"""An address names its desk: one's own other desk, a desk that was renamed, and addresses from before."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.conf import settings
from django.core.signing import Signer
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from portal.web.desk_prefix import addresses_of
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import desk_settings, tenant_lifecycle
from tenants.membership import member_changes
from tenants.operators.facades import AuditRow
from tenants.tenancy import tenant_directory
from tenants.tenancy.request import PINS, Ids, Pin, write_cookie
from tests.desk.test_cost import _watching
from tests.sign_in.test_changing import add_app
from tests.support.commands import run
from tests.support.factors import code, give_app
from tests.support.world import Browser, World, captured
from tickets.desk import creating

REQUEST = "a" * 32


@pytest.fixture
def desks(world: World) -> World:
    """Acme and Globex, each with a ticket number 1."""
    creating.create(world.context("alice", "acme"), title="Acme's printer", description="")
    creating.create(world.context("charlie", "globex"), title="Globex's printer", description="")
    return world


def renamed(world: World, who: str, where: str, slug: str) -> None:
    desk_settings.rename(world.context(who, where), name=where.title(), slug=slug, by=Actor(world.users[who].id))


def text(response: Any) -> str:
    page: str = response.content.decode()
    return page


# --- another desk of one's own ---


def test_two_tabs_on_two_desks_work_side_by_side(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    names = ("acme", "globex")
    marks = {name: desks.context("alice", name).page_mark for name in names}
    for _ in range(2):  # opened, and reloaded
        for name, other in (names, names[::-1]):
            for page in (alice.get(f"/{name}/tickets/"), alice.get(f"/{name}/tickets/1/")):
                assert page.status_code == 200
                assert f"{name.title()}&#39;s printer" in text(page)
                assert f"{other.title()}&#39;s printer" not in text(page)
    for name in names:
        form = {"_page": marks[name], "body": f"Told to {name}", "request_id": REQUEST}
        assert alice.post(f"/{name}/tickets/1/comment/", form)["Location"].startswith(f"/{name}/")
    for name, other in (names, names[::-1]):
        page = text(alice.get(f"/{name}/tickets/1/"))
        assert (f"Told to {name}" in page, f"Told to {other}" in page) == (True, False)


def test_a_desk_beside_another_costs_what_one_alone_does(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    bills = []
    for path in ("/acme/tickets/", "/globex/tickets/", "/acme/tickets/", "/globex/tickets/"):
        with _watching() as bill:
            alice.get(path)
        bills.append(bill[0])
    # Some are made together, in any order.
    alone, opened, *later = [sorted((c.operation, c.table) for c in bill.calls) for bill in bills]
    assert later == [alone, alone]
    assert [bill.trips for bill in bills[2:]] == [bills[0].trips] * 2
    lookup = [operation for operation, table in opened if table.endswith("Platform.Memberships")]
    assert lookup.count("Query") == 1
    assert "Query" not in [operation for operation, table in alone if table.endswith("Platform.Memberships")]


def test_opening_another_desk_stands_in_its_trail_once(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    for path in ("/globex/tickets/", "/acme/tickets/", "/globex/tickets/", "/globex/tickets/1/"):
        assert alice.get(path).status_code == 200
    assert entered(desks, "globex") == ["alice@example.com"]
    assert entered(desks, "acme") == []


def entered(world: World, where: str) -> list[str]:
    """Who entered the desk, by its audit trail."""
    rows = AuditRow.objects.filter(tenant_id=world.tenants[where].tenant_id)[:50]
    return [row.actor_email for row in rows if row.action == "session.started"]


def test_a_page_without_a_desk_is_of_the_one_used_last(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    for path, name in (("/globex/tickets/", "Globex"), ("/acme/tickets/1/", "Acme")):
        alice.get(path)
        assert alice.get("/account/").context["tenant"].name == name
        assert alice.get("/tickets/1/").wsgi_request.path == path[: path.index("/", 1)] + "/tickets/1/"


@pytest.mark.parametrize("headers", [{"HX-Request": "true"}, {"Sec-Fetch-Mode": "cors"}], ids=["htmx", "fetch"])
def test_a_part_fetched_in_the_background_does_not_make_its_desk_the_last_used(
    desks: World, headers: dict[str, str]
) -> None:
    alice = desks.browser("alice", "acme")
    for path in ("/globex/tickets/", "/acme/tickets/"):
        alice.get(path)
    assert alice.get("/globex/tickets/", headers=headers).status_code == 200
    assert alice.get("/account/").context["tenant"].name == "Acme"


def test_a_form_from_a_desk_that_the_cookie_has_lost_arrives(desks: World) -> None:
    """Of two tabs that open a desk each at the same moment, the later answer's cookie is the browser's."""
    alice = desks.browser("alice", "acme")
    form = {"_page": desks.context("alice", "globex").page_mark, "body": "Arrived", "request_id": REQUEST}
    assert alice.post("/globex/tickets/1/comment/", form).status_code == 302
    assert "Arrived" in text(alice.get("/globex/tickets/1/"))


def test_a_form_whose_page_and_address_disagree_is_refused(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    alice.get("/globex/tickets/")
    form = {"_page": desks.context("alice", "acme").page_mark, "body": "For Acme only", "request_id": REQUEST}
    page = alice.post("/globex/tickets/1/comment/", form)
    assert page.status_code == 409
    assert "That page belongs to Acme" in text(page)
    acme = desks.tenants["acme"].tenant_id
    kept = captured(r'name="resume" value="([^"]+)"', text(page))
    offered = text(alice.post("/tenants/switch/", {"tenant": acme, "resume": kept}))
    assert 'action="/acme/tickets/1/comment/"' in offered
    for name in ("acme", "globex"):
        assert "For Acme only" not in text(alice.get(f"/{name}/tickets/1/"))


def test_many_desks_stay_open_and_the_cookie_stays_small(world: World) -> None:
    alice = world.browser("alice", "acme")
    names = ["acme", *(f"a-desk-whose-short-name-is-long-{n:02}-{'x' * 5}" for n in range(PINS + 1))]
    for name in names[1:]:
        tenant_lifecycle.create(name=name, slug=name, owner=world.users["alice"], by=SYSTEM)
    for _ in range(2):
        for name in names:
            assert alice.get(f"/{name}/tickets/").context["tenant"].slug == name
    assert len(alice.pins) == PINS
    assert len(alice.cookies[settings.SESSION_COOKIE_NAME].value) < 1500


def test_who_is_removed_from_one_desk_goes_on_in_the_other(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    alice.get("/globex/tickets/")
    member_changes.unseed_member(desks.users["alice"].id, desks.tenants["globex"].tenant_id)
    assert alice.get("/acme/tickets/1/").status_code == 200
    lost = alice.get("/globex/tickets/1/", follow=True)
    assert lost.redirect_chain[-1][0] == "/tenants/?next=/globex/tickets/1/"
    assert "You no longer have access to the desk you used last." in text(lost)
    assert alice.get("/acme/tickets/1/").status_code == 200
    assert "You no longer have access" not in text(alice.get("/tenants/"))


def test_who_leaves_one_desk_goes_on_in_the_other(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    alice.get("/globex/tickets/")
    alice.send("/globex/desk/leave/")
    assert {pin.slug for pin in alice.pins} <= {"", "acme"}
    assert alice.get("/acme/tickets/1/").status_code == 200
    assert alice.get("/globex/tickets/1/").status_code == 404


def test_a_suspended_desk_keeps_out_in_its_tab_alone(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    alice.get("/globex/tickets/")
    tenant_lifecycle.suspend(desks.tenants["globex"].tenant_id, by=SYSTEM)
    for _ in range(2):
        assert "suspended" in text(alice.get("/globex/tickets/1/"))
        assert alice.get("/acme/tickets/1/").status_code == 200


def test_signing_out_in_one_tab_ends_all(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    alice.get("/globex/tickets/")
    cookie = alice.cookies[settings.SESSION_COOKIE_NAME].value
    alice.post("/logout/")
    alice.cookies[settings.SESSION_COOKIE_NAME] = cookie
    for name in ("acme", "globex"):
        assert alice.get(f"/{name}/tickets/")["Location"] == f"/login/?next=/{name}/tickets/"


def test_who_signs_in_next_has_no_desk_of_the_person_before(desks: World) -> None:
    browser = desks.browser("alice", "acme")
    browser.get("/acme/tickets/")
    browser.sign_in("charlie@example.com")
    assert [pin.slug for pin in browser.pins] == ["globex"]


def test_a_cookie_of_a_former_version_goes_on(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    ids = alice.ids
    assert ids is not None
    former = f"{ids.session_key}.{ids.user_id}.{desks.tenants['acme'].tenant_id}"
    for path, calls in (("/account/", 1), ("/acme/tickets/", 2)):
        alice.cookies[settings.SESSION_COOKIE_NAME] = Signer(salt="pooldesk.session-cookie").sign(former)
        with _watching() as bills:
            assert alice.get(path).context["tenant"].name == "Acme"
        assert bills[0].trips == calls or path == "/account/"
    alice.cookies[settings.SESSION_COOKIE_NAME] = Signer(salt="pooldesk.session-cookie").sign(former)
    assert alice.get("/globex/tickets/").status_code == 200
    assert alice.get("/acme/tickets/").status_code == 200


def test_a_name_in_the_cookie_makes_nobody_a_member(desks: World) -> None:
    """Even a cookie that we signed only says what to read."""
    charlie = desks.browser("charlie")
    ids = charlie.ids
    assert ids is not None
    acme = Pin("acme", desks.tenants["acme"].tenant_id)
    forged = Ids(ids.session_key, ids.user_id, (*ids.pins, acme))
    charlie.cookies[settings.SESSION_COOKIE_NAME] = write_cookie(forged)
    assert "printer" not in text(charlie.get("/acme/tickets/1/", follow=True))


def test_the_address_is_compared_with_the_desk_that_was_read(desks: World) -> None:
    """A cookie that calls Globex "acme" shows Globex nowhere but at its own address."""
    alice = desks.browser("alice", "acme")
    ids = alice.ids
    assert ids is not None
    wrong = Ids(ids.session_key, ids.user_id, (Pin("acme", desks.tenants["globex"].tenant_id),))
    alice.cookies[settings.SESSION_COOKIE_NAME] = write_cookie(wrong)
    assert "Acme&#39;s printer" in text(alice.get("/acme/tickets/1/"))


def test_a_part_of_a_page_never_moves_it_to_another_site(desks: World) -> None:
    alice = desks.browser("alice", "globex")
    alice.post("/logout/")
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver//acme/tickets/"}
    assert alice.get("/acme/tickets/updates/", headers=headers)["HX-Redirect"] == "/login/?next=/%252Facme/tickets/"


def test_choosing_a_desk_does_not_lead_back_to_another_desks_page(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    fields = {"tenant": desks.tenants["globex"].tenant_id, "next": "/acme/tickets/1/"}
    assert alice.post("/tenants/switch/", fields)["Location"] == "/globex/tickets/"


# --- a link that is opened before signing in ---

DEEP = "/globex/tickets/1/?from=mail"


def led_to_sign_in(browser: Browser) -> str:
    """Where the link says to come back to, once it has been opened by somebody who is not signed in."""
    asked = browser.get(DEEP)
    assert asked["Location"].startswith("/login/?next=/globex/")
    return hidden_next(browser.get(asked["Location"]))


def hidden_next(page: Any) -> str:
    found = captured(r'name="next" value="([^"]+)"', text(page))
    return html.unescape(found)


def test_it_leads_there_by_the_password(desks: World) -> None:
    browser = Browser()
    back = led_to_sign_in(browser)
    assert browser.sign_in("alice@example.com", next=back)["Location"] == DEEP  # type: ignore[index]
    assert "Globex&#39;s printer" in text(browser.get(DEEP))


def test_it_leads_there_by_the_second_factor(desks: World) -> None:
    secret, _ = give_app(desks, "alice")
    browser = Browser()
    step = browser.sign_in("alice@example.com", next=led_to_sign_in(browser))
    entered = {"one_time_code": code(secret, later=1), "next": hidden_next(step)}
    assert browser.post("/login/second-step/", entered)["Location"] == DEEP


def test_it_leads_there_after_a_second_factor_was_set_up_because_the_desk_asks_for_one(desks: World) -> None:
    give_app(desks, "charlie")
    charlie = desks.users["charlie"]
    desk_settings.demand_second_factor(
        desks.context("charlie", "globex"), demanded=True, by=Actor(charlie.id, charlie.email)
    )
    browser = Browser()
    browser.sign_in("alice@example.com", next=led_to_sign_in(browser))
    asked = browser.get(DEEP)
    assert asked["Location"] == "/account/security/?next=/globex/tickets/1/%3Ffrom%3Dmail"
    assert "Globex asks for a second factor" in text(browser.get(asked["Location"]))
    _, codes = add_app(browser, next=DEEP)
    assert f'href="{DEEP}"' in text(codes)
    assert entered(desks, "globex") == []
    assert browser.get(DEEP).status_code == 200
    assert entered(desks, "globex") == ["alice@example.com"]


def test_it_leads_there_where_another_tab_has_signed_in_meanwhile(desks: World) -> None:
    browser = desks.browser("alice", "acme")
    assert browser.get("/login/", {"next": DEEP})["Location"] == DEEP
    browser.get(DEEP)
    assert browser.get("/login/", {"next": "https://evil.example/"})["Location"] == "/globex/tickets/"


def test_an_invitation_comes_before_the_choice_of_desks(desks: World) -> None:
    browser = Browser()
    answer: Any = browser.sign_in("alice@example.com", next="/invitation/abc/")
    assert answer["Location"] == "/invitation/abc/"


# --- addresses without a desk ---


def test_an_address_without_a_desk_leads_to_the_pinned_one(desks: World) -> None:
    alice = desks.browser("alice", "globex")
    alice.at_desk = str  # type: ignore[method-assign]  # each address as it stands
    for path in (
        "/tickets/",
        "/tickets/1/",
        "/tickets/?status=closed&tag=a%26b",
        "/letters/waiting/",
        "/articles/",
        "/desk/leave/",
    ):
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


def test_the_former_name_leads_there_from_a_tab_beside_another_desk(desks: World) -> None:
    alice = desks.browser("alice", "acme")
    for path in ("/acme/tickets/", "/globex/tickets/"):
        alice.get(path)
    renamed(desks, "alice", "acme", "industries")
    for _ in range(2):
        assert alice.get("/acme/tickets/1/")["Location"] == "/industries/tickets/1/"
        assert alice.get("/industries/tickets/1/").status_code == 200
        assert alice.get("/globex/tickets/").status_code == 200
    assert entered(desks, "acme") == []


def test_a_form_on_a_page_from_before_the_renaming_arrives(desks: World) -> None:
    bob = desks.browser("bob")
    mark = bob.mark()
    renamed(desks, "alice", "acme", "industries")
    form = {"_page": mark, "body": "Still here", "request_id": REQUEST}
    assert "Still here" in text(bob.post("/acme/tickets/1/comment/", form, follow=True))


def test_a_former_name_that_another_desk_has_now_is_that_desks(desks: World) -> None:
    renamed(desks, "alice", "acme", "works")
    renamed(desks, "alice", "acme", "industries")
    renamed(desks, "charlie", "globex", "acme")
    alice = desks.browser("alice", "acme")
    assert "Globex&#39;s printer" in text(alice.get("/acme/tickets/1/"))
    assert "Acme&#39;s printer" in text(alice.get("/industries/tickets/1/"))
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
    return {word for word in words if word and not word.startswith(".")}  # no name of a desk has a dot


def test_no_desk_can_be_called_like_the_beginning_of_another_address() -> None:
    words = first_words(get_resolver().url_patterns)
    assert {"login", "account", "admin", "tickets", "desk", "invitation"} <= words
    outside = {settings.STATIC_URL.strip("/"), "healthz", "readyz", "api"}
    assert words | outside <= tenant_directory.RESERVED


def test_no_tenant_is_created_under_the_beginning_of_another_address(world: World) -> None:
    for word in sorted(first_words(get_resolver().url_patterns)):
        for arguments in ((word,), ("Initech", "--slug", word)):
            refused = run("create_tenant", *arguments)
            assert (refused.status, refused.err) == (1, f"The name {word} is reserved. Choose another one.")
    assert {desk.name for desk in tenant_directory.all_tenants()} == {"acme", "globex"}


OF_THE_INSTALLATION = ["postmaster", "hostmaster", "webmaster", "administrator", "abuse", "noreply", "reply"]


@pytest.mark.parametrize(
    ("slug", "said"),
    [
        *((word, f"The name {word} is reserved. Choose another one.") for word in ("admin", *OF_THE_INSTALLATION)),
        ("acme support!", tenant_directory.SLUG_RULE),
    ],
)
def test_a_name_that_no_desk_can_have_is_refused_where_it_was_typed(desks: World, slug: str, said: str) -> None:
    page = desks.browser("alice", "acme").send("/desk/settings/", {"name": "Acme", "slug": slug})
    assert page.status_code == 422
    assert page.context["form"].errors == {"slug": [said]}


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
