"""Say how new tickets are counted: in which epoch of aggregates, and whether in months too.

Workers of a version that knew no months would miss changes of tickets that count in some. So the tickets of a desk of
before count in none until a rebuild, which is run when no such worker is left, says so beside the desk's counter.
"""

from __future__ import annotations

from typing import NamedTuple

from tenants.tenancy.context import TenantContext
from tickets.ticket.stored import COUNT_FORM, CounterItem


class Counting(NamedTuple):
    """The attributes `epoch` and `count_form` of a new ticket."""

    epoch: int = 0
    form: int | None = None


def of(tenant: TenantContext, counter: CounterItem | None) -> Counting:
    """Return how a ticket is counted that has got its number from this counter, None for one that was never asked."""
    form = COUNT_FORM if tenant.counts_months or (counter and counter.count_form) else None
    return Counting(int(counter.epoch) if counter else 0, form)
