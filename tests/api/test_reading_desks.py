"""Reading by the API what a desk has beside tickets: members, tags, numbers, and its audit trail."""

from __future__ import annotations

from typing import Any

import pytest

from portal import clock
from tenants.api_keys.scopes import Scope
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tests.desk.test_cost import _watching
from tests.support import folding
from tests.support.api_client import api_client
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.ticket.fields import Priority, Status


def data(response: Any) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.content
    return response.json()["data"]  # type: ignore[no-any-return]


# --- members ---


def test_members_are_listed_by_name_with_their_roles(world: World) -> None:
    client = api_client(world, Scope.MEMBERS_READ)
    assert [(m["name"], m["email"], m["role"]) for m in data(client.ask("/members"))] == [
        ("Alice Example", "alice@example.com", "owner"),
        ("Bob Example", "bob@example.com", "agent"),
        ("Vera Example", "vera@example.com", "viewer"),
    ]
    assert [m["name"] for m in data(client.ask("/members?role=agent"))] == ["Bob Example"]
    assert client.ask("/members?role=boss").status_code == 422


def test_one_member_is_read_by_id_and_a_foreign_one_is_not_found(world: World) -> None:
    client, bob = api_client(world, Scope.MEMBERS_READ), world.users["bob"].id
    assert client.ask(f"/members/{bob}").json() == {
        "id": bob,
        "name": "Bob Example",
        "email": "bob@example.com",
        "role": "agent",
        "time_zone": None,
        "language": None,
    }
    assert client.ask(f"/members/{world.users['charlie'].id}").json()["code"] == "not_found"
    assert client.ask("/members/bob").json()["code"] == "not_found"


def test_what_the_caller_has_already_is_not_sent_again(world: World) -> None:
    client = api_client(world, Scope.MEMBERS_READ)
    first = client.ask("/members")
    again = client.ask("/members", If_None_Match=first["ETag"])
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])


# --- numbers ---


@pytest.fixture
def counted(world: World) -> World:
    """Acme's tickets have been counted: 1 is Bob's and urgent, 2 is resolved; both are tagged."""
    follower = folding.Follower()
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    creating.create(alice, title="One", priority=Priority.URGENT, tags=["printer", "floor-3"])
    creating.create(alice, title="Two", tags=["printer"])
    changing.assign(alice, 1, to=bob.user_id, version=1)
    commenting.comment(bob, 2, body="Done.", then=Status.RESOLVED)
    follower.fold()
    return world


def test_the_numbers_say_what_the_dashboard_says_and_up_to_when(counted: World) -> None:
    read = api_client(counted, Scope.AGGREGATES_READ).ask("/aggregates").json()

    assert read["tickets"]["open"] == {"urgent": 1, "high": 0, "normal": 0, "low": 0}
    assert read["tickets"]["resolved"]["normal"] == 1
    assert [(r["name"], r["tickets"]["open"]) for r in read["resolvers"]] == [("Bob Example", 1), ("Unassigned", 0)]
    assert read["tags"][0] == {"tag": "printer", "tickets": {"open": 1, "pending": 0, "resolved": 1, "closed": 0}}
    today = f"{clock.now().date()}"
    assert read["days"][-1] == {"date": today, "created": 2, "resolved": 1, "reopened": 0, "commented": 1}
    assert (len(read["days"]), read["last"]) == (30, today)
    assert (read["first_answers"]["count"], read["resolutions"]["count"]) == (1, 1)
    assert read["counted"]["as_of"] is not None


def test_the_period_is_one_of_those_that_the_dashboard_has(counted: World) -> None:
    client = api_client(counted, Scope.AGGREGATES_READ)
    assert len(client.ask("/aggregates?days=90").json()["days"]) == 90
    assert client.ask("/aggregates?days=31").status_code == 422


def test_tags_come_with_how_many_tickets_have_them(counted: World) -> None:
    client = api_client(counted, Scope.AGGREGATES_READ)
    assert [(t["tag"], t["tickets"]["open"]) for t in data(client.ask("/tags"))] == [("printer", 1), ("floor-3", 1)]


# --- the audit trail ---


def renamed(world: World, count: int) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    for n in range(count):
        by = Actor("b" * 32, "robert@example.com", "192.0.2.9")
        values = {"name": f"number {n}"}
        entry = AuditEntry(tenant_id, AuditAction.TENANT_RENAMED, by, "tenant", tenant_id, f"number {n}", after=values)
        recording.record(entry)


def test_the_audit_trail_is_read_newest_first_page_by_page(world: World) -> None:
    renamed(world, 3)
    client = api_client(world, Scope.AUDIT_READ)

    first = client.ask(f"/audit-events?actor={'b' * 32}&limit=2")
    rest = client.ask(first.json()["next"].removeprefix("/api/v1"))

    assert [e["entity"]["name"] for e in data(first) + data(rest)] == ["number 2", "number 1", "number 0"]
    assert first["Link"] == f'<{first.json()["next"]}>; rel="next"'
    assert rest.json()["next"] is None
    event = data(first)[0]
    assert event["actor"] == {"id": "b" * 32, "name": "robert@example.com", "origin": "192.0.2.9"}
    assert (event["action"], event["after"]) == ("tenant.renamed", {"name": "number 2"})
    assert len({e["id"] for e in data(first) + data(rest)}) == 3


def test_the_audit_trail_can_be_read_about_one_thing_and_for_some_days(world: World) -> None:
    renamed(world, 1)
    client, acme = api_client(world, Scope.AUDIT_READ), world.tenants["acme"].tenant_id
    assert {e["entity"]["id"] for e in data(client.ask(f"/audit-events?entity=tenant:{acme}"))} == {acme}
    assert data(client.ask("/audit-events?last=2001-01-01")) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (f"actor={'b' * 32}&entity=user:{'c' * 32}", "entity"),
        ("first=2002-01-01&last=2001-01-01", "first"),
        ("first=yesterday", "first"),
        ("last=2026-02-30", "last"),
        ("after=garbage", "after"),
    ],
)
def test_a_filter_of_the_trail_that_means_nothing_names_its_parameter(world: World, query: str, field: str) -> None:
    response = api_client(world, Scope.AUDIT_READ).ask(f"/audit-events?{query}")
    assert (response.status_code, response.json().get("field")) == (422, field)


def test_a_key_stands_in_the_trail_that_it_reads_but_its_text_does_not(world: World) -> None:
    client = api_client(world, Scope.AUDIT_READ, name="Nightly copy")
    response = client.ask("/audit-events")
    assert "Nightly copy" in response.content.decode()
    assert client.key[40:] not in response.content.decode()


# --- for all of them ---


READS = [
    ("/members", Scope.MEMBERS_READ),
    ("/members/" + "a" * 32, Scope.MEMBERS_READ),
    ("/aggregates", Scope.AGGREGATES_READ),
    ("/tags", Scope.AGGREGATES_READ),
    ("/audit-events", Scope.AUDIT_READ),
]


@pytest.mark.parametrize(("path", "scope"), READS)
def test_a_read_costs_two_round_trips_and_needs_its_scope(world: World, path: str, scope: Scope) -> None:
    client, other = api_client(world, scope), api_client(world, *(s for s in Scope if s is not scope))
    with _watching() as bills:
        assert client.ask(path).status_code in (200, 404)
        assert other.ask(path).json()["code"] == "scope_missing"
    assert [bill.trips for bill in bills] == [2, 1]
