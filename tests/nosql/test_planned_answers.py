"""A planned query answers completely, or says that it cannot: it never guesses from a part of the rows."""

from __future__ import annotations

from typing import Any

import pytest

from portal.nosql.planner.planning import ReadLimitReached, Unplannable
from tenants.operators.facades import Account, Tenant
from tenants.tenancy.stored import DirectoryItem, TenantStatus
from tenants.tenancy.tenant_directory import TENANTS
from tests.support.stored import put_all
from tests.support.world import World


def directory(*, active: int, suspended: int) -> None:
    """Tenants a-0000 ... that are active, and behind them z-0000 ... that are suspended."""
    names = [(f"a-{n:04}", TenantStatus.ACTIVE) for n in range(active)] + [
        (f"z-{n:04}", TenantStatus.SUSPENDED) for n in range(suspended)
    ]
    put_all(
        DirectoryItem(
            TENANTS, slug, tenant_id=f"{n:032}", title=f"Firm {slug}", created_at="2026-11-20T00:00:00Z", status=status
        )
        for n, (slug, status) in enumerate(names)
    )


def slugs(tenants: Any) -> list[str]:
    return [tenant.slug for tenant in tenants]


SUSPENDED_ONES = Tenant.objects.filter(status=TenantStatus.SUSPENDED)


def test_nothing_is_said_of_what_lies_behind_the_read_limit(engine: None) -> None:
    directory(active=600, suspended=1)
    only = Tenant.objects.filter(name__icontains="a-0001")
    for ask in (
        SUSPENDED_ONES.first,
        SUSPENDED_ONES.exists,
        lambda: list(SUSPENDED_ONES),
        SUSPENDED_ONES.get,
        only.get,
    ):
        with pytest.raises(ReadLimitReached, match="more than 500"):
            ask()
    assert Tenant.objects.filter(status=TenantStatus.ACTIVE).first().slug == "a-0000", "whatever lies behind it"


def test_nothing_is_missing_once_all_rows_were_read(engine: None) -> None:
    directory(active=400, suspended=0)
    assert SUSPENDED_ONES.first() is None
    assert not SUSPENDED_ONES.exists()


def test_a_second_condition_on_the_same_narrows_the_first(world: World) -> None:
    acme, globex = (world.tenants[name].tenant_id for name in ("acme", "globex"))
    objects = Tenant.objects
    assert slugs(objects.filter(pk__in=[acme, globex]).filter(pk__in=[globex, "f" * 32])) == ["globex"]
    assert slugs(objects.filter(pk__in=[acme]).filter(pk__in=[globex])) == []
    assert slugs(objects.filter(slug__startswith="ac").filter(slug__startswith="A")) == ["acme"]
    assert slugs(objects.filter(slug__startswith="ac").filter(slug__startswith="g")) == []
    assert slugs(objects.filter(name__icontains="LOBE")) == ["globex"], "a part of a name, in either case"


def test_ids_are_read_in_the_order_and_number_that_was_asked_for(world: World) -> None:
    ids = [world.tenants[name].tenant_id for name in ("acme", "globex")]
    assert slugs(Tenant.objects.filter(pk__in=ids).order_by("-slug")) == ["globex", "acme"]
    assert len(Tenant.objects.filter(pk__in=ids)[:1]) == 1


def test_ids_and_a_prefix_together_are_refused_because_one_would_be_ignored(world: World) -> None:
    with pytest.raises(Unplannable):
        list(Tenant.objects.filter(pk__in=[world.tenants["acme"].tenant_id], slug__startswith="g"))


def test_a_slice_of_a_slice_is_the_smaller_one_and_is_not_narrowed(engine: None) -> None:
    directory(active=5, suspended=0)
    assert len(Tenant.objects.all()[:2][:4]) == 2
    assert slugs(Tenant.objects.all()[:0]) == []
    with pytest.raises(TypeError, match="slice"):
        Tenant.objects.all()[:2].filter(status=TenantStatus.ACTIVE)


def test_an_address_is_found_in_either_case_however_often_it_is_asked_for(world: World) -> None:
    alice = Account.objects.filter(email="Alice@Example.COM")
    assert [account.name for account in alice] == ["Alice Example"]
    assert [account.name for account in alice.filter(email="alice@example.com")] == ["Alice Example"]
