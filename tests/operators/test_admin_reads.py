"""Lists of the admin are planned once and read once, and the front page makes all of its reads at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from portal.nosql.admin import site
from portal.nosql.planner import planning
from portal.nosql.planner.planning import QuerySpec
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tests.support.operators import Operator, make_operator
from tests.support.world import World
from tickets.admin import status_pages
from tickets.desk import lists


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    world.tickets("acme", 2)
    return Operator.signed_in()


@pytest.mark.parametrize("path", ["tenants/tenant/?q=ac", "tickets/ticket/?tenant_id={acme}&status__exact=open"])
def test_a_list_is_planned_once(world: World, root: Operator, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    specs: list[QuerySpec] = []
    plan = planning.plan
    monkeypatch.setattr(planning, "plan", lambda spec: (specs.append(spec), plan(spec))[1])
    page = root.get("/admin/" + path.format(acme=world.tenants["acme"].tenant_id))
    assert page.context["cl"].result_count > 0
    assert len(specs) == 1


def test_an_operator_reads_a_tenants_tickets_with_the_rights_of_a_viewer(
    world: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles: list[Role] = []
    page = lists.page

    def noted(tenant: TenantContext, **how: Any) -> Any:
        roles.append(tenant.role)
        return page(tenant, **how)

    monkeypatch.setattr(lists, "page", noted)
    assert root.get("/admin/tickets/ticket/?tenant_id=acme&status__exact=open").context["cl"].result_count == 2
    assert roles == [Role.VIEWER]


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
