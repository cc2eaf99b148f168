"""Where the contents of desks lie, as operators choose and see it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portal.dynamo.placement import Placement
from portal.errors import Conflict, Invalid
from portal.schema import registry
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.operators import facades
from tenants.tenancy import placements, tenant_directory
from tests.support.commands import run
from tests.support.operators import Operator, make_operator, tenant_url
from tests.support.placed import BRIDGE, SILO, desk
from tests.support.world import World

LIST = "/admin/tenants/tenant/"


@pytest.fixture
def operator(world: World) -> Operator:
    make_operator()
    return Operator.signed_in()


@pytest.mark.parametrize("where", ["pool", "bridge", "silo/there"])
def test_a_command_makes_a_desk_where_it_is_told_and_its_page_says_so(
    world: World, operator: Operator, where: str
) -> None:
    for none in ("moon", "silo/nowhere"):
        assert run("create_tenant", "Initech", "--on", none).status == 1
        assert tenant_directory.id_of("initech") is None
    ended = run("create_tenant", "Initech", "--on", where)
    assert ended.status == 0, ended.err
    tenant = tenant_directory.find("initech")
    assert Placement.parse(tenant.placement) == Placement.parse(where)
    assert [str(p.placement) for p in placements.listed()] == [where] * (where != "pool")
    world.tenants["initech"] = tenant
    assert f"placement: {where}" in operator.says(tenant_url(world, "initech")).casefold()


def test_a_plan_may_ask_for_a_place_that_there_is(world: World, settings: Any) -> None:
    settings.PLAN_PLACEMENTS = {"large": "bridge", "larger": "silo/nowhere"}
    large, standard = (
        tenant_lifecycle.create(name=plan, plan=plan, by=SYSTEM) for plan in ("large", tenant_lifecycle.STANDARD)
    )
    assert (large.placement, standard.placement) == ("bridge", None)
    with pytest.raises(Invalid, match="no site nowhere"):
        tenant_lifecycle.create(name="Larger", plan="larger", by=SYSTEM)


def test_a_slug_that_is_taken_leaves_no_tables_behind(world: World) -> None:
    with pytest.raises(Conflict, match="taken"):
        tenant_lifecycle.create(name="Acme", placement=BRIDGE, by=SYSTEM)
    assert placements.listed() == []


def test_operators_filter_the_desks_by_where_they_lie(world: World, operator: Operator) -> None:
    desk(world, BRIDGE)
    desk(world, SILO, slug="hooli")
    for where, there in (("bridge", "initech"), ("silo/there", "hooli")):
        page = operator.get(LIST, {"placement__exact": where})
        assert [tenant.slug for tenant in page.context["cl"].result_list] == [there]


def test_a_page_of_desks_of_a_place_goes_on_where_the_last_one_ended(world: World, operator: Operator) -> None:
    slugs = sorted(desk(world, BRIDGE, slug=f"desk-{n}").slug for n in range(3))
    found, after = [], ""
    while True:
        page = facades._placed_at({"placement": "bridge"}, after=after or None, size=2)
        found += [tenant.slug for tenant in page.objects]
        if not page.next:
            break
        after = page.next
    assert found == slugs


def test_the_policy_of_a_site_names_own_tables_in_its_region_and_account_alone(settings: Any) -> None:
    role = "arn:aws:iam::123456789012:role/pooldesk-tenant"
    settings.SILOS = {"there": {"region": "eu-west-3", "prefix": "There", "tenant_role_arn": role}}
    ended = run("iam_policy", "tenant", "--site", "there")
    named = {arn for statement in json.loads(ended.out)["Statement"] for arn in statement["Resource"]}
    own = "arn:aws:dynamodb:eu-west-3:123456789012:table/There.${aws:PrincipalTag/TenantId}."
    assert {arn.partition("/index/")[0].removeprefix(own) for arn in named} == {
        table.name for table in registry.placed_tables()
    }
