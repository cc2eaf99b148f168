"""Every page of the admin: what it reads, what it makes of hostile addresses, and what else is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib.admin.utils import quote
from django.urls import reverse

from portal import clock
from portal.dynamo import client, provisioning
from portal.isolation import guard
from portal.nosql import stored as session_keys
from portal.nosql.admin import site
from portal.nosql.planner.planning import READ_LIMIT
from portal.schema import registry
from portal.streams import watermark
from portal.streams.stored import LEASES
from portal.version_number import VERSION
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditAction
from tenants.membership import invitations
from tenants.tenancy.context import Role
from tenants.tenancy.stored import DirectoryItem
from tenants.tenancy.tenant_directory import TENANTS
from tests.isolation.test_outsider import OPERATOR_ROUTES, filled
from tests.support.folding import Follower, put_aside
from tests.support.operators import (
    IDENTITY,
    READS,
    Operator,
    calls,
    membership_url,
    tenant_url,
    user_url,
)
from tests.support.stored import put_all
from tests.support.world import World, captured
from tickets.admin import status_pages
from tickets.counting import dead_letters
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS

LISTS = (
    "tenants/tenant",
    "tenants/account",
    "tenants/membership",
    "tenants/session",
    "tenants/invitation",
    "tenants/auditrow",
    "tickets/ticket",
)
PAGE = 25


@pytest.fixture(autouse=True)
def tickets(world: World) -> None:
    world.tickets("acme", 3)


# --- what pages read ---


def paths(world: World) -> list[str]:
    """Every route of the admin for objects that exist, and lists with what they can be asked."""
    acme, bob = world.tenants["acme"].tenant_id, world.users["bob"].id
    session = session_keys.session(world.browser("bob", "acme").session_key)
    objects = {
        "tenant": acme,
        "account": bob,
        "session": session,
        "membership": f"{acme}_2F{bob}",
        "ticket": f"{acme}_2F2",
    }
    found = []
    for route in OPERATOR_ROUTES:
        kind = route.split("/")[2] if route.count("/") > 3 else ""
        found.append(filled(route).replace("a" * 32, objects.get(kind, "a" * 32)))
    asked = [
        "tenants/tenant/?q=ac",
        "tenants/tenant/?o=-0",
        "tenants/tenant/?status__exact=suspended",
        "tenants/account/?q=bob@example.com",
        f"tenants/account/?q={bob}",
        f"tenants/membership/?tenant_id={acme}",
        "tenants/membership/?tenant_id=acme&role__exact=agent",
        "tenants/membership/?user_id=bob@example.com",
        "tenants/auditrow/?tenant_id=platform",
        f"tenants/session/?user_id={bob}",
        "tenants/session/?user_id=bob@example.com",
        f"tenants/auditrow/?tenant_id={acme}&actor_id=system",
        f"tickets/ticket/?tenant_id={acme}&status__exact=open",
        f"tickets/ticket/?tenant_id={acme}&number=2",
        "tickets/deadletter/",
        "search/?tenant=acme&q=ticket",
    ]
    return [*found, *(f"/admin/{path}" for path in asked)]


def test_the_admin_is_in_english_whatever_the_browser_asks_for(root: Operator) -> None:
    answers = [root.get(path, headers={"Accept-Language": "de"}) for path in (reverse("admin:index"), "/account/")]
    found = [re.search(r'<html lang="([a-z]+)', answer.content.decode()) for answer in answers]
    assert [match and match[1] for match in found] == ["en", "de"]


def test_no_page_scans_and_no_look_at_one_writes(world: World, root: Operator) -> None:
    put_aside(world.tenants["acme"].tenant_id, 1)
    walked = paths(world)
    for url in (tenant_url(world, "acme"), user_url(world, "bob"), membership_url(world, "bob", "acme")):
        assert url in walked, "objects of each kind are met"
        assert root.get(url).status_code == 200
    for path in walked:
        with calls() as made:
            response = root.get(path, follow=True)
        assert response.status_code in (200, 403, 404), path
        assert {call.operation for call in made} <= READS, path
    cost = f"This page took 2 round trips, 2 calls, 4 items, 1.5 read and 0 write units. Pooldesk {VERSION}."
    assert cost in root.says("/admin/tenants/tenant/")
    status = root.says("/admin/status/")
    assert all(table.full_name in status for table in registry.tables())
    assert "estimated" in status


@pytest.mark.parametrize(
    "path",
    [
        "tenants/tenant/",
        "tenants/tenant/?q=a",
        "tenants/tenant/?status__exact=active",
        "tenants/session/?user_id={bob}",
        "tenants/invitation/?tenant_id={acme}",
        "tenants/auditrow/?tenant_id={acme}",
        "tickets/deadletter/",
    ],
)
def test_a_list_costs_one_query_beside_identity(world: World, root: Operator, path: str) -> None:
    ids = {"acme": world.tenants["acme"].tenant_id, "bob": world.users["bob"].id}
    with calls() as made:
        response = root.get("/admin/" + path.format(**ids))
    assert response.status_code == 200
    assert [call.operation for call in made] == [IDENTITY, "Query"]
    assert made[1].items <= (READ_LIMIT if "__exact" in path else PAGE + 1)


def test_the_front_page_makes_one_fan_out_and_none_inside_of_it(
    root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    fan_out = site.fan_out

    def noted(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        sizes.append(len(calls))
        return list(fan_out(calls))

    monkeypatch.setattr(site, "fan_out", noted)
    monkeypatch.setattr(status_pages, "fan_out", noted)
    assert root.get("/admin/").status_code == 200
    assert len(sizes) == 1


@pytest.mark.parametrize("owner", ["tenant_id={acme}", "user_id={bob}"])
def test_names_beside_ids_cost_one_read_for_the_whole_list(world: World, root: Operator, owner: str) -> None:
    acme, bob = world.tenants["acme"].tenant_id, world.users["bob"].id
    with calls() as made:
        says = root.says("/admin/tenants/membership/?" + owner.format(acme=acme, bob=bob))
    assert [call.operation for call in made] == [IDENTITY, "Query", "BatchGetItem"]
    assert f"Bob Example, bob@example.com {bob}" in says
    assert f"Acme {acme}" in says


def test_a_tenants_data_are_read_as_the_tenant(world: World, root: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    refuse = guard.refuse_foreign
    monkeypatch.setattr(guard, "refuse_foreign", lambda *args: (seen.append(guard.current_tenant()), refuse(*args))[1])
    client.reset()
    acme = world.tenants["acme"].tenant_id
    for path in (f"tenants/membership/?tenant_id={acme}", f"tickets/ticket/{acme}_2F2/change/"):
        assert root.get(f"/admin/{path}").status_code == 200
    client.reset()
    assert seen == [acme, acme]


def test_a_list_leads_on_and_keeps_its_filters_on_the_way(world: World, root: Operator) -> None:
    put_all(
        DirectoryItem(TENANTS, f"z-{n:02}", tenant_id=f"{n:032}", title="Z", created_at="2026-11-20T00:00:00.000000Z")
        for n in range(30)
    )
    first = root.get("/admin/tenants/tenant/?q=z-").context["cl"]
    second = root.get("/admin/tenants/tenant/" + first.next_url).context["cl"]
    assert [len(first.result_list), len(second.result_list), second.next_url] == [25, 5, ""]
    assert "q=z-" in first.next_url
    again = root.get("/admin/tenants/tenant/" + second.previous_url).context["cl"]
    assert [t.slug for t in again.result_list] == [t.slug for t in first.result_list]
    page = root.get("/admin/tenants/tenant/" + first.next_url).content.decode()
    assert re.search(rf"{second.result_list[0].pk}/change/\?_changelist_filters=_after%3D[^\"]+%26q%3Dz-\"", page)


# --- hostile addresses ---

HOSTILE = [
    "?nosuch=1", "?tenant_id__icontains=a", "?pk__in=a,b", "?role__exact=agent", "?id__gt=0", "?_after=x", "?_after=",
    "?o=9", "?o=-9.8.x", "?o=1.2.3", "?p=99999", "?all=1", "?q=%00", "?q=" + "x" * 3000, "?q=%F0%9F%92%A9", "?e=1",
    "?status__exact=active&status__exact=suspended", "?status__isnull=True", "?status__in=a,b", "?status__exact=%00",
    "?tenant_id=%00", "?tenant_id=' OR 1=1", "?tenant_id[]=a", "?user_id=" + "9" * 5000, "?actor_id=%23", "?number=-1",
    "?number=9999999999999999999999", "?number__gte=0", "?_popup=1", "?_to_field=id", "?_to_field=password",
    "?password__startswith=a", "?tenant__name=x", "?created_at__year=2026", "?_facets=True",
    "?_changelist_filters=%3Cb", "?tenant_id=0&user_id=0&role__exact=owner&q=x&o=1", "?is_operator__exact=1",
    "?session_epoch__lt=9", "?pk=%2F%2F",
]  # fmt: skip


# What each list can be asked in an address; to all others one of these is an unknown word, as "nosuch" is.
ASKED_BY_SOME = re.compile(r"\?(role|status|tenant_id|user_id|actor_id|number|is_operator|session_epoch|created_at)\b")


def concerns(query: str, model: Any) -> bool:
    """Whether a list of this model can tell the query from one about nothing."""
    asked = ASKED_BY_SOME.match(query.replace("__", " ").replace("[", " "))
    return asked is None or asked[1] in {field.name for field in model._meta.get_fields()}


def test_each_hostile_address_concerns_a_list() -> None:
    models = [apps.get_model(*listed.split("/")) for listed in (*LISTS, "tickets/deadletter")]
    assert [query for query in HOSTILE if not any(concerns(query, model) for model in models)] == []


@pytest.mark.parametrize("listed", [*LISTS, "tickets/deadletter"])
def test_no_address_breaks_a_list_or_reads_more_than_a_page(world: World, root: Operator, listed: str) -> None:
    model = apps.get_model(*listed.split("/"))
    for query in (one for one in HOSTILE if concerns(one, model)):
        with calls() as made:
            response = root.get(f"/admin/{listed}/{query}")
        assert response.status_code < 500, query
        assert {call.operation for call in made} <= READS, query
        assert sum(call.items for call in made[1:]) <= READ_LIMIT, query
        assert len(made) <= 4, query


def test_what_no_pattern_serves_is_said_in_one_sentence_and_costs_nothing(world: World, root: Operator) -> None:
    with calls() as made:
        page = root.get("/admin/tenants/membership/?role__exact=agent")
    assert "Memberships can be listed by user or by tenant. Choose one." in page.content.decode()
    assert [call.operation for call in made] == [IDENTITY]
    assert root.get("/admin/tenants/tenant/?plan=gold").status_code == 400


@pytest.mark.parametrize("listed", LISTS)
def test_an_object_that_is_not_there_is_not_found(world: World, root: Operator, listed: str) -> None:
    for object_id in ("a" * 32, "x", "_00", "..", "a_2Fb", "a_2Fb_2Fc", "_23", "9" * 5000, "%F0%9F%92%A9"):
        assert root.get(f"/admin/{listed}/{object_id}/change/").status_code in (403, 404), object_id
    for object_id in ("a" * 32, "a_2Fb"):  # the other pages of an object find it as the first does
        for rest in ("change/", "history/", "delete/"):
            assert root.get(f"/admin/{listed}/{object_id}/{rest}").status_code in (403, 404), object_id
            assert root.post(f"/admin/{listed}/{object_id}/{rest}", {"post": "yes"}).status_code in (403, 404, 405)


def test_a_trail_can_be_narrowed_to_each_action_that_any_package_records(world: World, root: Operator) -> None:
    page = root.get("/admin/tenants/auditrow/?tenant_id=platform").content.decode()
    assert set(re.findall(r'<option value="([a-z_.]+)"', page)) == set(AuditAction)
    assert "undid the closing of" in page
    assert "undid the closing of" not in root.says("/admin/tenants/auditrow/"), "no list is of an action alone"
    where = f"/admin/tenants/auditrow/?tenant_id={world.tenants['acme'].tenant_id}&action="
    assert "created" in root.says(f"{where}tenant.created").split("Filter")[0]
    assert "tenant.created" not in root.says(f"{where}tenant.closed").split("Filter")[0]
    assert "There is no action “nonsense”." in root.says(f"{where}nonsense")


def test_the_audit_trail_leads_from_a_row_to_all_about_the_same_object(world: World, root: Operator) -> None:
    acme = world.tenants["acme"].tenant_id
    root.act(tenant_url(world, "acme"), "_close")
    page = root.get(f"/admin/tenants/auditrow/?tenant_id={acme}").content.decode()
    link = captured(r'href="([^"]*entity_type=tenant[^"]*)"', page)
    found = root.says(unescape(link))
    assert re.search(r"may be deleted from: \d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC", found)


@pytest.mark.parametrize("listed", ["tenants/auditrow", "tickets/ticket", "tenants/tenant", "tenants/account"])
def test_what_may_not_be_deleted_or_changed_cannot(world: World, root: Operator, listed: str) -> None:
    acme, bob = world.tenants["acme"].tenant_id, world.users["bob"].id
    ids = {"tenants/tenant": acme, "tenants/account": bob, "tickets/ticket": f"{acme}_2F2"}
    row = f"{acme}_2F" + "x"
    assert root.post(f"/admin/{listed}/{ids.get(listed, row)}/delete/", {"post": "yes"}).status_code == 403
    if listed in ("tenants/auditrow", "tickets/ticket"):
        assert root.get(f"/admin/{listed}/add/").status_code == 403
        assert root.post(f"/admin/{listed}/{ids.get(listed, row)}/change/", {"title": "x"}).status_code in (403, 404)


def test_pending_invitations_are_listed_by_tenant(world: World, root: Operator) -> None:
    alice, acme = world.context("alice", "acme"), world.tenants["acme"].tenant_id
    by = recording.Actor(alice.user_id, "alice@example.com")
    (sent,) = invitations.invite_all(alice, addresses=["new@example.com"], role=Role.AGENT, by=by)
    assert sent.sent is not None
    says = root.says(f"/admin/tenants/invitation/?tenant_id={acme}")
    assert "new@example.com Agent Alice Example" in says
    page = root.get(f"/admin/tenants/invitation/{acme}_2F{sent.sent.invite.invite_id}/change/")
    assert sent.sent.secret not in page.content.decode()
    assert "new@example.com" in page.content.decode()


# --- dead letters ---


def test_dead_letters_need_attention_until_they_are_dropped(world: World, root: Operator) -> None:
    acme = world.tenants["acme"].tenant_id
    dead_letter = put_aside(acme, 1)
    put_aside("", 2)
    assert "2 dead letters" in root.says("/admin/")
    page = root.post(f"/admin/tickets/deadletter/{quote(dead_letter)}/change/", {"_replay": "1"}, follow=True)
    assert "It still cannot be counted" in page.content.decode()
    chosen = {"action": "drop", "_selected_action": [dead_letter], "confirmed": "1"}
    all_pages = {"index": "0", "select_across": "1"}
    assert root.post("/admin/tickets/deadletter/", chosen | all_pages).status_code == 400
    assert len([*dead_letters.all_letters()]) == 2
    page = root.post("/admin/tickets/deadletter/", chosen, follow=True)
    assert "1 dropped." in page.content.decode()
    assert [one.tenant_id for one in dead_letters.all_letters()] == [""]
    assert "dead_letter.dropped" in root.says(f"/admin/tenants/auditrow/?tenant_id={acme}")


def test_a_dead_letter_is_counted_after_all(world: World, root: Operator) -> None:
    follower = Follower()
    record = next(r for r in follower.new() if r.keys["sk"] == ticket_keys.SUMMARY)
    tenant_id = world.tenants["acme"].tenant_id
    dead_letter = put_aside(tenant_id, 1, json.loads(json.dumps(record.raw, default=str)))
    page = root.post(f"/admin/tickets/deadletter/{quote(dead_letter)}/change/", {"_replay": "1"}, follow=True)
    assert "It is counted." in page.content.decode()
    assert page.redirect_chain[-1][0] == "/admin/tickets/deadletter/"
    assert [*dead_letters.all_letters()] == []


# --- tables and streams, and what needs attention ---


def test_a_worker_that_has_stopped_stands_before_all_else_but_missing_tables(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now - timedelta(minutes=5))
    watermark.write(TICKETS, clock.stamp())
    monkeypatch.setattr(clock, "now", lambda: now)
    put_aside("", 1)
    root.act(tenant_url(world, "acme"), "_suspend")
    describe = provisioning.describe
    monkeypatch.setattr(provisioning, "describe", lambda t: None if t is LEASES else describe(t))
    root.get("/admin/")  # which says what was done; the next one does not
    says = root.says("/admin/")
    order = ["Streams.Leases is missing", "worker has stopped", "1 dead letter", "Acme is suspended"]
    found: list[Any] = [says.find(text) for text in order]
    assert -1 not in found
    assert found == sorted(found)


# --- narrowing a list step by step ---


def test_a_tenant_that_was_chosen_stays_chosen_until_the_status_completes_the_list(root: Operator) -> None:
    half = root.get("/admin/tickets/ticket/?tenant_id=acme")
    assert (half.status_code, "Now choose the status." in half.content.decode()) == (200, True)
    (link,) = (text for text in re.findall(r'href="([^"]+)"', half.content.decode()) if "status__exact=open" in text)
    assert "Ticket 1" in root.says(f"/admin/tickets/ticket/{unescape(link)}")


def test_a_status_that_was_chosen_stays_chosen_until_the_tenant_completes_the_list(root: Operator) -> None:
    half = root.get("/admin/tickets/ticket/?status__exact=open")
    assert (half.status_code, "Now choose the tenant." in half.content.decode()) == (200, True)
    (form,) = (text for text in half.content.decode().split("<form") if 'type="text" name="tenant_id"' in text)
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form))
    assert "Ticket 1" in root.says(f"/admin/tickets/ticket/?{urlencode(fields | {'tenant_id': 'acme'})}")


def test_an_address_that_cannot_be_is_forgotten_so_that_the_next_step_is_not_refused_too(root: Operator) -> None:
    page = root.get("/admin/tenants/tenant/?nosuch=1")
    assert page.status_code == 400
    search, filters = (page.content.decode().split(f'id="changelist-{part}"')[1] for part in ("search", "filter"))
    assert "nosuch" not in search.split("</form>")[0] + filters.split("</nav>")[0]


def test_dead_letters_of_all_tenants_are_listed_page_by_page_with_signed_links(world: World, root: Operator) -> None:
    acme, globex = (world.tenants[name].tenant_id for name in ("acme", "globex"))
    for number in range(20):
        put_aside(acme, number + 1)
        put_aside(globex, number + 1)
    first = root.get("/admin/tickets/deadletter/").context["cl"]
    second = root.get("/admin/tickets/deadletter/" + first.next_url).context["cl"]
    listed = [*first.result_list, *second.result_list]
    assert [len(first.result_list), len(second.result_list), second.next_url] == [25, 15, ""]
    assert len({dead_letter.pk for dead_letter in listed}) == 40
    for forged in (acme, f"{acme}/1", "x"):
        assert root.get("/admin/tickets/deadletter/", {"_after": forged}).status_code == 400
