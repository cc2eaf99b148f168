"""Make what the page of a desk's use shows: each of the last minutes beside what the desk may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor
from typing import Any, Final

from portal.limits import concurrency, rates, usage
from portal.limits.usage import UsedMinute
from tenants.tenancy.context import TenantContext

MINUTES: Final = 15


@dataclass(frozen=True)
class MinuteLine:
    """One minute of the page. `share` is how much of its rate the desk used, in percent, None where it was little."""

    begins: datetime
    is_told: bool
    requests: int = 0
    units: int = 0
    refused: int = 0
    share: int | None = None

    @property
    def width(self) -> int:
        """Return the length of the bar in percent."""
        return min(100, max(1, self.share or 0))


def page(tenant: TenantContext, told: list[UsedMinute], *, members: int, invited: int, most: int | None,
         now: datetime) -> dict[str, Any]:  # fmt: skip
    """Return the template's context. `told` are the rows of the last MINUTES, `most` the limit of members if any."""
    rate = tenant.units_per_second
    rows = {one.begins: one for one in told}
    this = now.replace(second=0, microsecond=0)
    begins = [this - timedelta(minutes=back) for back in range(MINUTES)]
    lines = [_line(minute, rows.get(minute), rate) for minute in begins]
    return {
        "lines": lines,
        "minutes": MINUTES,
        "refused": sum(line.refused for line in lines),
        "rate": f"{rate:g}" if rate else "",
        "per_minute": f"{rate * usage.SECONDS:,.0f}",
        "burst": f"{rate * rates.BURST_SECONDS:,.0f}",
        "change_units": rates.CHANGE_UNITS,
        "little": f"{usage.TOLD_SHARE:.0%}",
        "members": members,
        "invited": invited,
        "most": most,
        "at_work": concurrency.requests.taken(tenant.tenant_id),
        "at_work_most": concurrency.requests.most,
        "heavy": concurrency.heavy.taken(tenant.tenant_id),
        "heavy_most": concurrency.heavy.most,
    }


def _line(begins: datetime, told: UsedMinute | None, rate: float) -> MinuteLine:
    if told is None:
        return MinuteLine(begins, False)
    share = usage.share(told.units, per_second=rate)
    percent = None if share is None else floor(share * 100 + 1e-9)
    return MinuteLine(begins, True, told.requests, told.units, told.refused, percent)
