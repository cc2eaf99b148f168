"""The product is used in each of its ways, and then each stored item in which a tenant occurs is one that a package has
declared. It fails when a room forgets one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portal.dynamo.tenant_reader import TenantReader
from portal.schema import holdings, registry
from portal.schema.holdings import StoredItem
from tenants.tenancy.stored import TenantItem
from tests.support import used_desk
from tests.support.commands import everything
from tests.support.world import World

Found = dict[tuple[str, str], list[str]]  # by table and key, the names of the holdings that have it


@pytest.fixture(autouse=True)
def few_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is looked for minute by minute; the desk was used in the last few."""
    used_desk.keep_to_its_minutes(monkeypatch)


@pytest.fixture
def used(tmp_path: Path) -> World:
    return used_desk.prepared(tmp_path)


def key(stored: StoredItem) -> tuple[str, str]:
    return stored.table.name, json.dumps(stored.key, sort_keys=True)


def found(tenant_id: str) -> Found:
    known: Found = {}
    for holding in holdings.holdings():
        for stored in holding.find(TenantReader(tenant_id)):
            known.setdefault(key(stored), []).append(holding.name)
    return known


def mentions(raw: dict[str, Any], *texts: str) -> bool:
    whole = json.dumps(raw, default=repr)
    return any(text in whole for text in texts)


def traces(tenant: TenantItem, *names: str) -> list[tuple[str, str]]:
    """What a scan of each table finds of a tenant."""
    return [
        key(StoredItem(table, raw))
        for table in registry.tables()
        for raw in everything(table)
        if mentions(raw, tenant.tenant_id, *names)
    ]


def test_each_item_in_which_a_tenant_occurs_is_found_by_one_declaration(used: World) -> None:
    acme, globex = (used.tenants[slug] for slug in ("acme", "globex"))
    known = found(acme.tenant_id)
    assert [one for one, names in known.items() if len(names) > 1] == []
    assert sorted(set(traces(acme, used_desk.SLUG)) - known.keys()) == []
    assert {name for names in known.values() for name in names} == {
        holding.name for holding in holdings.holdings() if holding.tables
    }

    shared = {holding.name for holding in holdings.holdings() if holding.without}
    own = {one for one, names in known.items() if not shared & {*names}}
    assert not own & found(globex.tenant_id).keys()


def test_of_a_row_of_several_tenants_the_others_part_is_left(used: World) -> None:
    acme, globex = (used.tenants[slug].tenant_id for slug in ("acme", "globex"))
    reader = TenantReader(acme)
    shared = [
        (holding, holding.without(acme, stored.item))
        for holding in holdings.holdings()
        if holding.without
        for stored in holding.find(reader)
    ]
    of_several = [left for holding, left in shared if holding.name != "sessions"]
    assert len(of_several) == 3
    assert [mentions(left or {}, globex) for left in of_several] == [True] * 3
    assert not any(mentions(left, acme) for _, left in shared if left is not None)
