"""The settings of a desk: name, short name and defaults, each change told to its audit trail."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.urls import reverse

from portal.errors import Conflict, NotFound
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tenants.membership import member_changes, members
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.template_context import DESK_PAGES
from tests.support.world import World

SETTINGS = "/desk/settings/"
DEFAULTS = "/desk/settings/defaults/"


def rows(world: World, action: str) -> list[browsing.TrailRow]:
    found = browsing.page(world.context("alice", "acme").repository, only=browsing.TrailFilter()).rows
    return [row for row in found if row.action == action]


def priority_offered(world: World, who: str = "bob") -> str:
    return str(world.browser(who, "acme").get("/tickets/new/").context["form"]["priority"].value())


# --- name and short name ---


def test_an_owner_renames_the_desk_everybody_sees_it_and_the_one_before_last_is_free(world: World) -> None:
    page = world.browser("alice", "acme").send(SETTINGS, {"name": "  Acme   Industries ", "slug": "acme-industries"})
    assert (page.status_code, page["Location"]) == (302, f"/acme-industries{SETTINGS}")
    bob = world.browser("bob")
    assert bob.get("/tickets/").context["tenant"].name == "Acme Industries"
    assert [d["slug"] for d in bob.get("/tenants/").context["memberships"]] == ["acme-industries"]
    assert [d.name for d in tenant_directory.all_tenants()] == ["acme-industries", "globex"]
    with pytest.raises(NotFound):
        tenant_directory.find("acme")
    charlie = world.browser("charlie")
    assert charlie.send(SETTINGS, {"name": "Globex", "slug": "acme"}).status_code == 422
    alice = world.users["alice"]
    desk_settings.rename(world.context("alice", "acme"), name="Acme", slug="acme-works", by=Actor(alice.id))
    charlie.send(SETTINGS, {"name": "Globex", "slug": "acme"})
    assert tenant_directory.find("acme").name == "Globex"


def test_the_trail_tells_what_was_and_what_is_and_nothing_else(world: World) -> None:
    alice = world.browser("alice", "acme")
    assert alice.send(SETTINGS, {"name": "Acme", "slug": "acme"}).status_code == 302
    assert alice.send(DEFAULTS, {"ticket_priority": "normal"}).status_code == 302
    assert rows(world, "tenant.renamed") == rows(world, "tenant.defaults_changed") == []
    alice.send(SETTINGS, {"name": "Acme Industries", "slug": "acme"})
    alice.send(SETTINGS, {"name": "Acme Industries", "slug": "industries"})
    second, first = rows(world, "tenant.renamed")
    assert (first.before, first.after) == ({"name": "Acme"}, {"name": "Acme Industries"})
    assert (second.before, second.after) == ({"slug": "acme"}, {"slug": "industries"})
    assert (first.actor, first.origin) == ("alice@example.com", "127.0.0.1")


def test_a_page_that_was_open_longer_changes_only_what_was_changed_on_it(world: World) -> None:
    alice = world.browser("alice", "acme")
    assert re.findall(r'name="initial-(\w+)"', alice.get(SETTINGS).content.decode())[:2] == ["name", "slug"]
    shown = {"initial-name": "Acme", "initial-slug": "acme"}
    alice.send(SETTINGS, {"name": "Acme Works", "slug": "acme", **shown})
    alice.send(SETTINGS, {"name": "Acme", "slug": "works", **shown})
    assert tenant_directory.find("works").name == "Acme Works"
    shown = {"initial-ticket_priority": "normal", "initial-language": "browser"}
    alice.send(f"/works{DEFAULTS}", {"ticket_priority": "high", "language": "browser", **shown})
    alice.send(f"/works{DEFAULTS}", {"ticket_priority": "normal", "language": "de", **shown})
    tenant = world.context("alice", "acme")
    assert [desk_settings.default_value(tenant, name) for name in ("ticket_priority", "language")] == ["high", "de"]


def test_a_short_name_that_is_taken_is_refused_at_its_field(world: World) -> None:
    page = world.browser("alice", "acme").send(SETTINGS, {"name": "New name", "slug": "globex"})
    assert page.status_code == 422
    assert page.context["form"].errors == {"slug": ["Another desk is using the short name globex."]}
    assert page.context["form"]["name"].value() == "New name", "what was typed is still there"
    assert tenant_directory.find("acme").name == "Acme"


def test_what_cannot_be_a_name_is_refused_at_its_field_and_not_cut_by_the_browser(world: World) -> None:
    alice = world.browser("alice", "acme")
    assert b"maxlength" not in alice.get(SETTINGS).content
    names, slugs = (" ", "x" * 81, "Acme\u202emoc.elgoog", "\u2800\u3164"), ("Acme", "-acme", "a#b", "x" * 41)
    for field, value in [*(("name", name) for name in names), *(("slug", slug) for slug in slugs)]:
        page = alice.send(SETTINGS, {"name": "Acme", "slug": "acme", field: value})
        assert (page.status_code, [*page.context["form"].errors]) == (422, [field]), value
        assert page.context["form"][field].value() == value
    assert rows(world, "tenant.renamed") == []


def test_of_two_desks_that_want_one_short_name_at_the_same_moment_one_gets_it(world: World) -> None:
    for attempt in range(8):
        wanted = f"wanted-{attempt}"

        def rename(tenant: TenantContext, wanted: str = wanted) -> str:
            try:
                desk_settings.rename(tenant, name=tenant.name, slug=wanted, by=Actor(tenant.user_id))
            except Conflict as error:
                return f"refused at {error.field}"
            return tenant.tenant_id

        desks = [world.context("alice", "acme"), world.context("charlie", "globex")]
        with ThreadPoolExecutor(2) as pool:
            refused, won = sorted(pool.map(rename, desks), key=lambda outcome: not outcome.startswith("refused"))
        assert refused == "refused at slug"
        assert tenant_directory.find(wanted).tenant_id == won
    assert len(list(tenant_directory.all_tenants())) == 2, "no short name is left behind"


def test_of_two_owners_who_rename_at_the_same_moment_none_is_half_done(world: World) -> None:
    world.join("charlie", "acme", Role.OWNER)
    for attempt in range(4):

        def rename(who: str, attempt: int = attempt) -> None:
            name = f"{who}-{attempt}"
            with suppress(Conflict):
                desk_settings.rename(world.context(who, "acme"), name=name, slug=name, by=Actor(world.users[who].id))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(rename, ["alice", "charlie"]))
        stored = tenant_directory.get(world.tenants["acme"].tenant_id)
        assert stored.name == stored.slug
        assert tenant_directory.id_of(stored.slug) == stored.tenant_id
        for who in ("alice", "bob", "charlie"):
            listed = {m.tenant_id: (m.name, m.slug) for m in members.memberships_of(world.users[who].id)}
            assert listed[stored.tenant_id] == (stored.name, stored.slug)
    assert len(list(tenant_directory.all_tenants())) == 2


def test_copies_of_a_name_that_was_overtaken_while_they_were_made_are_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between Alice's renaming and its copies, a second owner renames the desk, copies included."""
    alice, bob = world.context("alice", "acme"), world.users["bob"]
    copy = desk_settings._copy

    def late(tenant: TenantContext, name: str, slug: str) -> None:
        monkeypatch.setattr(desk_settings, "_copy", copy)
        desk_settings.rename(tenant, name="Second", slug="second", by=Actor(tenant.user_id))
        copy(tenant, name, slug)

    monkeypatch.setattr(desk_settings, "_copy", late)
    desk_settings.rename(alice, name="First", slug="first", by=Actor(alice.user_id))
    assert [(m.name, m.slug) for m in members.memberships_of(bob.id)] == [("Second", "second")]


def test_an_owner_who_was_demoted_while_the_form_was_open_changes_nothing(world: World) -> None:
    alice = world.context("alice", "acme")
    world.add_user("Olga")
    world.join("olga", "acme", Role.OWNER)
    member_changes.set_role(
        user_id=alice.user_id, tenant_id=alice.tenant_id, role=Role.ADMIN, seen=Role.OWNER, by=Actor("olga")
    )
    with pytest.raises(Conflict):
        desk_settings.rename(alice, name="Mine", slug="mine", by=Actor(alice.user_id))
    with pytest.raises(Conflict):
        desk_settings.change_defaults(alice, values={"ticket_priority": "high"}, by=Actor(alice.user_id))
    assert tenant_directory.find("acme").defaults is None


def test_the_settings_take_an_owner_and_say_who_the_owners_are(world: World) -> None:
    world.join("charlie", "acme", Role.OWNER)
    page = world.browser("alice", "acme").get(SETTINGS)
    assert [owner.email for owner in page.context["owners"]] == ["alice@example.com", "charlie@example.com"]
    world.add_user("Rita")
    world.join("rita", "acme", Role.ADMIN)
    rita = world.browser("rita")
    assert rita.get(SETTINGS).status_code == 403
    assert rita.send(SETTINGS, {"name": "Ritas", "slug": "ritas"}).status_code == 403
    assert rita.send(DEFAULTS, {"ticket_priority": "urgent"}).status_code == 403
    assert tenant_directory.find("acme").defaults is None


# --- defaults ---


def test_a_new_ticket_begins_with_the_priority_that_the_desk_presets_and_may_get_another(world: World) -> None:
    assert priority_offered(world) == "normal"
    alice = world.browser("alice", "acme")
    page = alice.send(DEFAULTS, {"ticket_priority": "high"})
    assert (page.status_code, page["Location"]) == (302, f"/acme{SETTINGS}")
    assert priority_offered(world) == "high"
    assert str(world.browser("charlie").get("/tickets/new/").context["form"]["priority"].value()) == "normal"
    (row,) = rows(world, "tenant.defaults_changed")
    assert (row.before, row.after) == ({"ticket_priority": "normal"}, {"ticket_priority": "high"})
    bob = world.browser("bob")
    form = bob.get("/tickets/new/").context["form"]
    sent: dict[str, Any] = {"title": "Quiet", "priority": "low", "request_id": form["request_id"].value()}
    assert bob.get(bob.send("/tickets/new/", sent)["Location"]).context["ticket"].choices["priority"].value == "low"
    page = alice.send(DEFAULTS, {"ticket_priority": "asap"})
    assert (page.status_code, [*page.context["defaults_form"].errors]) == (422, ["ticket_priority"])
    assert priority_offered(world) == "high"


def test_of_many_who_change_the_default_each_change_is_told_as_it_was(world: World) -> None:
    alice = world.context("alice", "acme")

    def change(to: str) -> None:
        with suppress(Conflict):
            desk_settings.change_defaults(alice, values={"ticket_priority": to}, by=Actor(alice.user_id))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, ["low", "high", "urgent", "normal"] * 3))
    told = rows(world, "tenant.defaults_changed")
    steps = [(row.before["ticket_priority"], row.after["ticket_priority"]) for row in told]
    assert steps
    # Each change began with what another one had made; which of two in the same moment stands first is not said.
    began, ended = [before for before, _ in steps], [after for _, after in steps]
    assert sorted([*began, priority_offered(world)]) == sorted(["normal", *ended])


# --- the navigation of the desk ---


@pytest.mark.parametrize("group", DESK_PAGES)
def test_each_page_of_the_desk_is_marked_in_its_group(world: World, group: str) -> None:
    alice = world.browser("alice", "acme")
    for one in DESK_PAGES[group]:
        if one.name == "close":  # a question, which leads back to the settings
            continue
        page = alice.get(reverse(one.route)).content.decode().partition('aria-label="Desk"')[2]
        assert re.search(rf'aria-current="true">{group}</a>', page), one.name
        assert re.findall(r'aria-current="page">([^<]*)</a>', page.partition("</nav>\n</main>")[0])[:1] == [one.label]


def test_the_navigation_shows_a_member_what_they_may_open(world: World) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    ada = world.browser("ada", "acme")
    page = ada.get(reverse("tenants:audit")).content.decode()
    assert "Signing in" not in page.partition('aria-label="Security"')[2].partition("</nav>")[0]
    groups = page.partition('aria-label="Desk"')[2].partition("</nav>")[0]
    assert [name for name in DESK_PAGES if f">{name}</a>" in groups] == list(DESK_PAGES)
    for address in re.findall(r'href="([^"]+)"', groups):
        assert ada.get(address).status_code == 200
