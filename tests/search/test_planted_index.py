"""What is planted in an index can at worst hide something: the stored text decides what is shown, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.tenancy.context import TenantContext
from tests.search.reading import looked_up
from tests.support import commands
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.search import index_rebuild, stored, suggesting, ticket_search, tokenizer
from tickets.search.index import postings, publishing
from tickets.search.index.index_store import IndexStore
from tickets.search.stored import SEARCH


@pytest.fixture
def alice(world: World) -> TenantContext:
    """Acme with a ticket of her own and a note in it; Globex has tickets too, under the same numbers."""
    alice, charlie = world.context("alice", "acme"), world.context("charlie", "globex")
    commenting.comment(alice, creating.create(alice, title="Printer offline"), body="A secret lantern", internal=True)
    for title in ("Zeppelin landing", "Zeppelin starting"):
        creating.create(charlie, title=title, description="Of Globex alone")
    for tenant in (alice, charlie):
        index_rebuild.rebuild(tenant.repository)
    return alice


def plant(alice: TenantContext, *terms: str, numbers: tuple[int, ...]) -> None:
    entry = postings.encode(dict.fromkeys(numbers, 0xF7))
    block = postings.pack_block((term.encode(), entry) for term in sorted(terms))
    put_raw(alice, stored.new("ff"), {"d": {"B": block}, "v": {"N": str(tokenizer.VERSION)}})


def put_raw(alice: TenantContext, sort_key: str, attributes: dict[str, Any]) -> None:
    """A row that no code of ours would write."""
    store = IndexStore(alice.tenant_id)
    keys = {"pk": {"S": store.key(stored.directory)}, "sk": {"S": sort_key}}
    store.send("PutItem", {"TableName": SEARCH.full_name, "Item": {**attributes, **keys}})


def shown(tenant: TenantContext, query: str) -> list[int]:
    found = ticket_search.find(tenant, query)
    return [int(hit.summary.number) for hit in (*found.hits, *found.nearly)]


def test_a_planted_posting_shows_nothing_that_a_text_does_not_have(alice: TenantContext) -> None:
    plant(alice, "zeppelin", "globex", "=tag:zeppelin", numbers=(1, 2, 77, 2**31))
    assert shown(alice, "zeppelin") == shown(alice, "globex zeppelin") == []
    assert not suggesting.suggest(alice, "zeppel").tickets or shown(alice, "zeppel") == []
    assert shown(alice, "printer") == [1]


def test_a_planted_posting_shows_no_viewer_what_stands_in_a_note(world: World, alice: TenantContext) -> None:
    plant(alice, "lantern", "secret", numbers=(1,))
    vera = world.context("vera", "acme")
    assert shown(alice, "lantern") == [1]
    assert shown(vera, "lantern") == shown(vera, '"secret lantern"') == []


def test_blocks_and_headers_of_another_tenant_show_nothing_of_its_tickets(alice: TenantContext) -> None:
    """All that Globex has in its index, written under Acme's own keys."""
    own = alice.tenant_id
    theirs = [item for item in commands.everything(SEARCH) if own not in item["pk"]["S"]]
    store = IndexStore(own)
    for item in theirs:
        name = item["pk"]["S"].split("|")[1]
        if name.startswith("SEGMENT"):
            store.put_blocks("9" * 10, {int(item["sk"]["S"]): bytes(item["d"]["B"])})
        elif item["sk"]["S"].startswith("S#"):
            attributes = {k: v for k, v in item.items() if k not in ("pk", "sk")}
            put_raw(alice, stored.header("9" * 10), attributes)
    assert looked_up(store, b"zeppelin"), "the foreign segment is read"
    assert shown(alice, "zeppelin") == []
    assert shown(alice, "printer") == [1]


def test_a_frequent_planted_word_hides_no_ticket_that_has_it(alice: TenantContext) -> None:
    """Hundreds of numbers that no ticket has stand before the one that has the word."""
    store = IndexStore(alice.tenant_id)
    entry = postings.encode(dict.fromkeys(range(2, 40), 0xF1))
    publishing.write(store, [(b"offline", [entry])], tokenizer.VERSION)
    numbers: list[int] = []
    further = ""
    while True:
        found = ticket_search.find(alice, "offline", further=further)
        numbers += [int(hit.summary.number) for hit in found.hits]
        if not (further := found.further):
            break
    assert numbers == [1]


NEW, HEADER = stored.new("ff"), stored.header("9" * 10)


@pytest.mark.parametrize(
    ("sort_key", "row", "is_seen"),
    [
        (NEW, {"d": {"B": b"no block"}, "v": {"N": "1"}}, False),
        (NEW, {"d": {"S": "a text"}, "v": {"N": "1"}}, True),
        (NEW, {"v": {"S": "?"}}, True),
        (NEW, {"d": {"B": postings.pack_block([(b"printer", postings.encode({1: 1}))])}, "v": {"N": "99"}}, False),
        (NEW, {}, True),
        (HEADER, {}, True),
        (HEADER, {"b": {"N": "1"}, "f": {"B": b"no fences"}, "v": {"NS": ["1"]}, "z": {"N": "1"}}, True),
    ],
)
def test_rubbish_in_the_index_hides_no_other_ticket(
    alice: TenantContext, sort_key: str, row: dict[str, Any], *, is_seen: bool
) -> None:
    put_raw(alice, sort_key, row)
    assert shown(alice, "printer") == [1]
    if is_seen:
        checked = commands.run("verify_search", "--tenant", "acme", "--settle", 0.1)
        assert (checked.status, f"The row {sort_key} cannot be read." in checked.out) == (1, True)
