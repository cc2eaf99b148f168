"""Say how much a tenant may ask for: so many units a second by its plan, or a rate of its own.

A request that only reads is one unit, one that changes something several: it costs DynamoDB and the processor about
that much more. After a rest BURST_SECONDS' worth may come at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

READ_UNITS: Final = 1
CHANGE_UNITS: Final = 5
BURST_SECONDS: Final = 10
LEAST_BURST: Final = 2 * CHANGE_UNITS  # so that a process with a small share of a rate still takes a form
MOST: Final = 100_000  # units a second that can be given
UNLIMITED: Final = 0.0
_ANY_OTHER: Final = "standard"  # the plan whose rate those have that are not named
_OFF: Final = "off"
_RATE: Final = re.compile(r"([a-z0-9-]{1,40})=([0-9]{1,6}(?:\.[0-9]{1,3})?)\Z")


def of(plan: str, own: float | None) -> float:
    """Return the units a second of a tenant of this plan, or its `own` where operators gave it one, or UNLIMITED.

    Raises ImproperlyConfigured where TENANT_RATES cannot be read.
    """
    if settings.TENANT_RATES == _OFF:
        return UNLIMITED
    return float(own) if own is not None else of_plan(plan)


def of_plan(plan: str) -> float:
    """Return the units a second of a plan; UNLIMITED where neither it nor `standard` has a rate."""
    rates = by_plan()
    return rates.get(plan, rates.get(_ANY_OTHER, UNLIMITED))


def by_plan() -> Mapping[str, float]:
    """Return the rates of the plans that have one, as TENANT_RATES gives them."""
    text: str = settings.TENANT_RATES
    return {} if text == _OFF else _read(text)


@lru_cache(maxsize=8)
def _read(text: str) -> Mapping[str, float]:
    found = {}
    for word in text.split():
        match = _RATE.match(word)
        if match is None or not 0 < float(match[2]) <= MOST:
            raise ImproperlyConfigured(f"TENANT_RATES has {word!r}, which is no plan with its rate, as standard=50 is.")
        found[match[1]] = float(match[2])
    return found
