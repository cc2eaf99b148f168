"""The template of a tenant's own tables: those of the installation's template, under other names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from portal.deployment import placed_template, template
from portal.schema import registry
from tests.support.commands import run
from tests.support.stacks import PRODUCTION, Stack

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
    for table in registry.placed_tables():
        name = template.logical_id(table)
        theirs, mine = whole[name]["Properties"], own[name]["Properties"]
        assert mine["TableName"] == {"Fn::Sub": f"${{TablePrefix}}.{TENANT}.{table.name}"}
        assert {**mine, "TableName": 0, "SSESpecification": 0} == {**theirs, "TableName": 0, "SSESpecification": 0}
        key = mine["SSESpecification"]["KMSMasterKeyId"]["Fn::If"][1]
        assert key == {"Fn::If": ["HasTenantKey", {"Fn::GetAtt": ["TenantKey", "Arn"]}, {"Ref": "TableKeyArn"}]}


def test_whatever_the_template_names_is_in_it() -> None:
    made = placed_template.placed_template(TENANT)
    known = {*made["Parameters"], *made["Resources"], "AWS::NoValue"}
    assert {*named_in([made[part] for part in ("Resources", "Conditions", "Rules", "Outputs")])} <= known


ROLE_ARNS = {f"{role}Arn": f"arn:aws:iam::1:role/{role}" for role in template.BY_NAME.values()}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, "TenantKey.Arn"),
        ({"TableKeyArn": "arn:of:all"}, "arn:of:all"),
        ({"Encryption": "aws-managed"}, None),
    ],
)
def test_own_tables_have_a_key_of_their_own_unless_the_pools_is_given(given: dict[str, str], key: str | None) -> None:
    stack = Stack(placed_template.placed_template(TENANT), **PRODUCTION | ROLE_ARNS | given)
    tables = [r["Properties"] for r in stack.resources.values() if r["Type"] == "AWS::DynamoDB::Table"]
    assert len(tables) == len(registry.placed_tables())
    assert {one["SSESpecification"].get("KMSMasterKeyId") for one in tables} == {key}
    keys = {name: r["Properties"] for name, r in stack.resources.items() if r["Type"] == "AWS::KMS::Key"}
    assert [*keys] == (["TenantKey"] if key == "TenantKey.Arn" else [])
    for own in keys.values():
        (callers,) = (s for s in own["KeyPolicy"]["Statement"] if s["Sid"] == "RolesUseItThroughDynamoDB")
        assert sorted(callers["Principal"]["AWS"]) == sorted(ROLE_ARNS.values())


def test_a_key_that_nobody_could_use_is_refused_before_it_is_made() -> None:
    rule = placed_template.placed_template(TENANT)["Rules"]["KeyHasCallers"]
    named = {assertion["Assert"]["Fn::Not"][0]["Fn::Equals"][0]["Ref"] for assertion in rule["Assertions"]}
    assert named == set(ROLE_ARNS)


def test_a_site_has_a_key_of_its_own_for_the_roles_that_work_there() -> None:
    made = placed_template.site_template()
    key = made["Resources"]["TableKey"]["Properties"]["KeyPolicy"]["Statement"][1]
    assert key["Principal"] == {"AWS": {"Ref": "RoleArns"}}
    assert made["Outputs"]["TableKeyArn"]["Value"] == {"Fn::GetAtt": ["TableKey", "Arn"]}
    assert "AWS::CloudTrail::Trail" in {resource["Type"] for resource in made["Resources"].values()}
    known = {*made["Parameters"], *made["Resources"], "AWS::NoValue"}
    assert {*named_in([made[part] for part in ("Resources", "Conditions", "Outputs")])} <= known
    assert "table_key_arn of the site in SILOS" in run("infra_template", "--site").out


def test_the_command_prints_it_for_an_id_alone() -> None:
    assert f"${{TablePrefix}}.{TENANT}.Support.Tickets" in run("infra_template", "--placed", TENANT).out
    with pytest.raises(ValueError, match="32 lower-case hex digits"):
        placed_template.placed_template("acme")
    assert run("infra_template", "--placed", "acme").status == 1
