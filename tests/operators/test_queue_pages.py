"""Operators see who has which queues, give a tenant another set, and see how far one tenant's trouble reaches."""

from __future__ import annotations

import pytest

from delivery.queues import allocation, depths, queue_sets
from delivery.queues.allocation import said
from delivery.queues.queue_transport import Depth
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tests.support.operators import IDENTITY, Operator, calls, tenant_url
from tests.support.world import World


def queues_of(world: World, slug: str) -> frozenset[int]:
    return allocation.allocated()[world.tenants[slug].tenant_id]


def test_it_shows_each_tenants_queues_and_how_full_they_were_when_a_worker_looked(root: Operator) -> None:
    with calls() as made:
        says = root.says("/admin/queues/")
    assert sorted(call.operation for call in made if call.operation != IDENTITY) == ["GetItem", "Query", "Query"]
    assert f"acme {said(queue_sets.nth(0, 8))} nobody" in says
    assert f"globex {said(queue_sets.nth(1, 8))} nobody" in says
    assert "No two tenants share a queue." in says
    assert "No worker has told yet how full the queues are." in says
    depths.write([Depth(number, 10 + number, 0) for number in range(8)])
    says = root.says("/admin/queues/")
    assert "As a worker saw it on" in says
    assert "7 1 7 17 0" in says


def test_it_names_the_worst_pair_and_who_shares_with_a_tenant(root: Operator) -> None:
    tenant_lifecycle.create(name="Initech", by=SYSTEM)
    shared = said(queue_sets.nth(0, 8) & queue_sets.nth(2, 8))
    assert "acme and initech share 2 queues; no two share more." in root.says("/admin/queues/")
    assert f"initech {shared}" in root.says("/admin/queues/?tenant=acme")


def test_a_tenant_is_given_the_set_that_is_typed_with_a_row_in_its_history_and_else_the_next(
    world: World, root: Operator
) -> None:
    root.post("/admin/queues/?tenant=acme", {"queues": "", "seen": said(queues_of(world, "acme"))})
    assert queues_of(world, "acme") == queue_sets.nth(2, 8)
    wanted = queue_sets.nth(9, 8)
    shown = {"queues": said(wanted), "seen": said(queues_of(world, "acme"))}
    page = root.post("/admin/queues/?tenant=acme", shown, follow=True)
    assert f"acme has the queues {said(wanted)}." in page.content.decode()
    assert queues_of(world, "acme") == wanted
    assert "changed the queues of" in root.says(tenant_url(world, "acme", "history/"))


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("0 1 2 4", "0 1 2 4 is no set of 8 queues: any three of its numbers give the fourth."),
        ("1 2", "1 2 is no set of 8 queues"),
        ("four of them", "Write numbers with spaces between them, such as 0 5 10 15."),
        ("99 98 97 96", "96 97 98 99 is no set of 8 queues"),
    ],
)
def test_what_is_no_set_is_refused_and_what_was_typed_stays(
    world: World, root: Operator, typed: str, sentence: str
) -> None:
    before = queues_of(world, "acme")
    page = root.post("/admin/queues/?tenant=acme", {"queues": typed, "seen": said(before)})
    assert sentence in page.content.decode()
    assert f'value="{typed}"' in page.content.decode()
    assert queues_of(world, "acme") == before


def test_who_was_shown_another_set_is_told(world: World, root: Operator) -> None:
    page = root.post("/admin/queues/?tenant=acme", {"queues": said(queue_sets.nth(9, 8)), "seen": "0 1 6 7"})
    assert "Somebody else has just changed" in page.content.decode()
    assert queues_of(world, "acme") == queue_sets.nth(0, 8)


def test_a_slug_that_nobody_has_is_said_and_a_beginning_lists_those_that_have_it(root: Operator) -> None:
    assert "There is no tenant with the slug “nobody”." in root.says("/admin/queues/?tenant=nobody")
    assert "No tenant's slug begins with “zz”." in root.says("/admin/queues/?q=zz")
    listed = root.get("/admin/queues/?q=Glo").context["tenants"]
    assert [row["slug"] for row in listed] == ["globex"]


def test_ours_shares_at_most_two_of_four_and_chance_more(root: Operator) -> None:
    says = root.says("/admin/blast-radius/?queues=32&size=4&tenants=1240")
    assert "Ours: 4 of 32 1,240 1,240" in says
    assert "Drawn by chance, on average: 4 of 32 1,240 35,960" in says
    ours, chance, published, here = root.get("/admin/blast-radius/?queues=32&size=4&tenants=1240").context["rows"]
    assert ours["worst"] == 2
    assert "share 4" in chance["pairs"]
    assert published["worst"] == 3
    assert here["tenants"] == "2"


def test_other_numbers_than_ours_are_computed_by_chance_alone(root: Operator) -> None:
    page = root.get("/admin/blast-radius/?queues=8&size=3&tenants=20")
    names = ["Drawn by chance, on average", "The published table", "This installation"]
    assert [row["name"] for row in page.context["rows"]] == names


def test_the_published_table_and_this_installation_stand_beside_for_two_queries(root: Operator) -> None:
    with calls() as made:
        says = root.says("/admin/blast-radius/")
    assert sorted(call.operation for call in made if call.operation != IDENTITY) == ["Query", "Query"]
    assert "There the noisy tenant 20 reaches 13 of 19: 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16." in says
    assert "Tenants 6 and 10 have the same three, and so have 7 and 13." in says
    assert "No two of 2 tenants share a queue." in says


@pytest.mark.parametrize(
    "query", ["queues=0", "queues=513", "size=0", "queues=3&size=4", "tenants=10000001", "tenants=many", "dollars=-1"]
)
def test_numbers_that_cannot_be_are_refused_by_their_field(root: Operator, query: str) -> None:
    page = root.get(f"/admin/blast-radius/?{query}")
    assert page.status_code == 200
    assert page.context["form"].errors
    assert len(page.context["rows"]) == 2


def test_the_designs_of_the_slides_stand_beside_each_other(root: Operator) -> None:
    page = root.get("/admin/blast-radius/?queues=8&size=4&tenants=20&dollars=10")
    assert [(row["processors"], row["lost"], row["share"], row["dollars"]) for row in page.context["designs"]] == [
        ("1", "19", "100%", "10.00"),
        ("20", "0", "5%", "200.00"),
        ("20", "0", "5%", "200.00"),
        ("8", "2", "15%", "80.00"),
        ("8", "0.3", "6.36%", "80.00"),
        ("8", "0.6", "8%", "80.00"),
    ]


@pytest.mark.parametrize("numbers", ["queues=512&size=16&tenants=10000000", "queues=64&size=4&tenants=10000000"])
def test_the_largest_installation_is_computed_in_closed_form(root: Operator, numbers: str) -> None:
    page = root.get(f"/admin/blast-radius/?{numbers}")
    assert page.context["form"].errors == {}
    assert "10,000,000" in {row["tenants"] for row in page.context["rows"]}
