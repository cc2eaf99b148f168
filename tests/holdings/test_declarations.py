"""What the packages say that they store for tenants: no table is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.schema import holdings, registry
from portal.schema.holdings import Stage
from tenants.tenancy import personal_data


def test_each_table_is_held_or_said_to_have_nothing_of_a_tenant() -> None:
    held = {table.name for holding in holdings.holdings() for table in holding.tables}
    silent = holdings._nothing
    assert {table.name for table in registry.tables()} == held | silent.keys()
    assert not held & silent.keys()
    assert all(silent.values())


def test_only_what_is_exported_has_secrets() -> None:
    assert [holding.name for holding in holdings.holdings() if holding.secret] == ["API keys", "webhook secrets"]
    assert not [holding.name for holding in holdings.holdings() if holding.secret and holding.left_out]


def test_holdings_come_in_the_order_in_which_they_can_be_deleted() -> None:
    stages = [holding.stage for holding in holdings.holdings()]
    assert stages == sorted(stages)
    of = {holding.name: holding.stage for holding in holdings.holdings()}
    assert of["requests"] < of["tickets"] < of["ticket counter"]
    assert of["search blocks"] < of["search directory"]
    assert of["memberships"] < of["members"] < of["audit trail"]


def test_a_name_is_declared_once() -> None:
    first = holdings.holdings()[0]
    with pytest.raises(ValueError, match="declared twice"):
        holdings.declare_holding(replace(first, stage=Stage.OWN))


def test_what_is_exported_says_what_its_rows_are() -> None:
    exported = next(holding for holding in holdings.holdings() if not holding.left_out and holding.forms)
    with pytest.raises(ValueError, match="declares no forms"):
        holdings.declare_holding(replace(exported, name="something new", forms=None))
    for holding in holdings.holdings():
        assert holding.left_out or holding.exported or (holding.forms and holding.forms()), holding.name


def test_what_is_exported_says_how_a_person_is_found_in_it() -> None:
    without = {
        "due",
        "help centre",
        "imported archives",
        "imported rows",
        "logo",
        "looks",
        "public form",
        "setup",
        "tenant",
    }
    looked_through = {"audit trail", "contents of files", "files", "letters as they came", "tickets"}  # by tickets.data
    without |= looked_through | {"due", "ticket counter", "uses of ready answers", "webhook secrets"}
    assert {one.name for one in holdings.holdings() if not one.left_out} - holdings.people().keys() == without
    assert len([*personal_data.personal_data()]) == len(holdings.people())
