"""The template of a tenant's own tables: those of the installation's template, under other names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from portal.deployment import placed_template, template
from portal.schema import placed_names
from tests.support.commands import run

TENANT = "a" * 32


def named_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        if isinstance(value.get("Fn::GetAtt"), list):
            yield value["Fn::GetAtt"][0]
        for member in value.values():
            yield from named_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from named_in(member)


def test_own_tables_are_declared_like_those_of_all_but_for_name_and_key() -> None:
    whole, own = template.template()["Resources"], placed_template.placed_template(TENANT)["Resources"]
    for table in placed_names.placed_tables():
        name = template.logical_id(table)
        theirs, mine = whole[name]["Properties"], own[name]["Properties"]
        assert mine["TableName"] == {"Fn::Sub": f"${{TablePrefix}}.{TENANT}.{table.name}"}
        assert {**mine, "TableName": 0, "SSESpecification": 0} == {**theirs, "TableName": 0, "SSESpecification": 0}
        assert mine["SSESpecification"]["KMSMasterKeyId"]["Fn::If"][1] == {"Ref": "TableKeyArn"}


def test_functions_of_the_installation_follow_the_streams_of_own_tables() -> None:
    own = placed_template.placed_template(TENANT)["Resources"]
    sources = {r["Properties"]["EventSourceArn"]["Fn::GetAtt"][0] for r in own.values() if "Mapping" in r["Type"]}
    assert sources == {template.logical_id(table) for table in placed_names.placed_tables() if table.stream}


def test_whatever_the_template_names_is_in_it() -> None:
    made = placed_template.placed_template(TENANT)
    known = {*made["Parameters"], *made["Resources"], "AWS::NoValue"}
    assert {*named_in(made["Resources"]), *named_in(made["Conditions"])} <= known


def test_the_command_prints_it_for_an_id_alone() -> None:
    assert f"${{TablePrefix}}.{TENANT}.Support.Tickets" in run("infra_template", "--placed", TENANT).out
    with pytest.raises(ValueError, match="32 lower-case hex digits"):
        placed_template.placed_template("acme")
    assert run("infra_template", "--placed", "acme").status == 1
