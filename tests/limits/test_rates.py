"""A rate is the tenant's own, or its plan's; what cannot be read stops the portal, and no tenant."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured

from portal.load import tenant_limiter


def test_a_rate_of_its_own_counts_before_the_plans(settings: LazySettings) -> None:
    settings.TENANT_RATES = "standard=50 large=250.5"
    assert [tenant_limiter.of("large", None), tenant_limiter.of("large", 3), tenant_limiter.of("standard", None)] == [
        250.5,
        3,
        50,
    ]


def test_a_plan_without_a_rate_has_the_standard_one_and_without_that_no_limit(settings: LazySettings) -> None:
    settings.TENANT_RATES = "standard=50"
    assert tenant_limiter.of("gold", None) == 50
    settings.TENANT_RATES = "large=250"
    assert tenant_limiter.of("gold", None) == tenant_limiter.UNLIMITED


def test_off_limits_nobody_whatever_operators_have_set(settings: LazySettings) -> None:
    settings.TENANT_RATES = "off"
    assert (tenant_limiter.of("standard", 3), dict(tenant_limiter.by_plan())) == (tenant_limiter.UNLIMITED, {})


@pytest.mark.parametrize(
    "text", ["standard", "standard=0", "standard=-1", "standard=many", "a b=1", "standard=1000000"]
)
def test_rates_that_cannot_be_read_are_refused(settings: LazySettings, text: str) -> None:
    settings.TENANT_RATES = text
    with pytest.raises(ImproperlyConfigured, match="TENANT_RATES"):
        tenant_limiter.of("standard", None)
