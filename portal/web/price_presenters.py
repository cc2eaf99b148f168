"""Say on a page what it has cost: its round trips, capacity units and price, and the calls behind them.

A template leaves the place; the figure is filled in when the whole request has been answered, so that what is read or
written after the page was made is in it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

from django.http import HttpResponse
from django.template.loader import render_to_string
from markupsafe import Markup

from portal.dynamo.meter import Call, Meter
from portal.hosting.prices import NOTED, READ_UNIT, WRITE_UNIT
from portal.web import locales
from portal.web.locales import Locale

_PLACE: Final = (
    f"<!-- price {secrets.token_hex(8)} "  # nobody can write it into a ticket; the language stands behind it
)
IN_PAGE: Final = _PLACE.encode()


def place(costs_url: str = "") -> Markup:
    """Return the place that a page leaves for its price, which leads to a page of costs where that is given."""
    return Markup(f"{_PLACE}{locales.current().language} {quote(costs_url)} -->")  # noqa: S704  # as above


@dataclass(frozen=True)
class PriceLine:
    """All calls of a request that read or write one table, or one index of it, in the same way."""

    operation: str
    place: str
    calls: int
    items: int
    read_units: float
    write_units: float

    @property
    def dollars(self) -> str:
        return _per_million(self.read_units, self.write_units)


def lines_of(bill: Meter) -> list[PriceLine]:
    """Return the lines of a bill, in the order of their names, since calls of one trip come in any. Their units add up
    to those of the bill."""
    found: dict[tuple[str, str], list[Call]] = {}
    for call in bill.calls:
        # A table of a desk's own is called as the one of all, with an id before the last two words.
        place = ", ".join(".".join(name.rsplit(".", 2)[1:]) for name in call.table.split(","))
        found.setdefault((call.operation, f"{place} / {call.index}" if call.index else place), []).append(call)
    return [
        PriceLine(
            operation,
            place,
            len(calls),
            sum(call.items for call in calls),
            sum(call.read_units for call in calls),
            sum(call.write_units for call in calls),
        )
        for (operation, place), calls in sorted(found.items())
    ]


def _per_million(read_units: float, write_units: float) -> str:
    """Return the price of a million such requests in dollars, with three digits: right within half a percent."""
    dollars = (read_units * READ_UNIT + write_units * WRITE_UNIT) * 1e6
    return f"{dollars:.3g}" if dollars < 100 else f"{dollars:,.0f}"


def fill_in(response: HttpResponse, bill: Meter) -> None:
    """Put the price where the page has left a place for it."""
    lines = tuple(lines_of(bill))
    before, _, rest = response.content.partition(IN_PAGE)
    said, _, after = rest.partition(b" -->")
    language, _, costs_url = said.decode().partition(" ")
    with locales.in_language(language):
        figure = _said(locales.current(), unquote(costs_url), bill.trips, bill.read_units, bill.write_units, lines)
        response.content = before + figure + after
    if "Content-Length" in response:
        response["Content-Length"] = str(len(response.content))


@lru_cache(maxsize=256)
def _said(
    locale: Locale, costs_url: str, trips: int, read_units: float, write_units: float, lines: tuple[PriceLine, ...]
) -> bytes:
    """Return the figure in the locale in use. The same page costs the same again and again."""
    context: dict[str, Any] = {
        "costs_url": costs_url,
        "trips": trips,
        "read_units": read_units,
        "write_units": write_units,
        "dollars": _per_million(read_units, write_units),
        "lines": lines,
        "noted": NOTED,
    }
    return render_to_string("portal/_price.html", context).encode()
