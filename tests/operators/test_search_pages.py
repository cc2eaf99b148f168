"""The operators' page of the search: how a tenant's index stands, and what a text finds in its tickets."""

from __future__ import annotations

import pytest

from tests.support.operators import IDENTITY, Operator, calls, make_operator
from tests.support.searching import index_all
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.search import stored, tokenizer
from tickets.search.index.index_store import IndexStore
from tickets.search.stored import DamageItem


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    creating.create(world.context("alice", "acme"), title="Printer <b>offline</b>", description="It beeps.")
    commenting.comment(world.context("bob", "acme"), 1, body="The toner is counterfeit.", internal=True)
    creating.create(world.context("charlie", "globex"), title="Printer of Globex", description="")
    index_all()
    return Operator.signed_in().open("acme")


def test_the_state_of_an_index_is_told(root: Operator) -> None:
    says = root.says("/admin/search/?tenant=acme")
    assert "Items not in a segment yet 1," in says
    assert f"Versions of the tokenizer {tokenizer.VERSION}; now it is {tokenizer.VERSION}" in says
    assert "There is no index" not in says


def test_damage_is_told(root: Operator, world: World) -> None:
    assert "Damaged" not in root.says("/admin/search/?tenant=acme")
    store = IndexStore(world.tenants["acme"].tenant_id)
    store.put(store.row(DamageItem, stored.new("ff")))
    assert "Damaged: N#ff. What they held is not found." in root.says("/admin/search/?tenant=acme")


def test_a_tenant_that_was_never_indexed_is_named_as_such(world: World) -> None:
    make_operator()
    says = Operator.signed_in().says("/admin/search/?tenant=acme")
    assert "There is no index." in says
    assert "Complete until unknown" in says


def test_an_operator_searches_within_one_tenant_and_its_notes(root: Operator) -> None:
    page = root.get("/admin/search/?tenant=acme&q=printer").content.decode()
    assert "<mark>Printer</mark> &lt;b&gt;offline" in page
    assert "Globex" not in page.replace('value="globex"', "")
    assert "Internal note: The toner is counterfeit." in root.says("/admin/search/?tenant=acme&q=toner")
    assert "Found Nothing." in root.open("globex").says("/admin/search/?tenant=globex&q=toner")


def test_a_hit_leads_to_the_ticket_in_the_admin(root: Operator, world: World) -> None:
    url = f"/admin/tickets/ticket/{world.tenants['acme'].tenant_id}_2F1/change/"
    assert f'href="{url}"' in root.get("/admin/search/?tenant=acme&q=beeps").content.decode()
    assert root.get(url).status_code == 200


def test_what_cannot_be_searched_for_and_who_is_unknown_is_said(root: Operator) -> None:
    assert "only words to leave out" in root.says("/admin/search/?tenant=acme&q=-printer")
    assert "There is no tenant with the slug “initech”." in root.says("/admin/search/?tenant=initech&q=x")


def test_a_look_at_an_index_reads_the_tenant_and_asks_one_query(root: Operator) -> None:
    with calls() as made:
        root.get("/admin/search/?tenant=acme")
    assert [call.operation for call in made][:1] == [IDENTITY]
    assert [call.operation for call in made if call.table.endswith("Support.Search")] == ["Query"]
    assert len(made) <= 5
