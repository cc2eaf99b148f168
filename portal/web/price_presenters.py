"""Say on a page what it has cost: its round trips, capacity units and price, and the calls behind them.

A template leaves the place; the figure is filled in when the whole request has been answered, so that what is read or
written after the page was made is in it.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from markupsafe import Markup

from portal.dynamo.meter import Call, Meter, declared_name
from portal.hosting.prices import NOTED, READ_UNIT, WRITE_UNIT
from portal.web import locales
from portal.web.locales import Locale

_PLACE: Final = (
    f"<!-- price {secrets.token_hex(8)} "  # nobody can write it into a ticket; the language stands behind it
)
IN_PAGE: Final = _PLACE.encode()


_LEAST_DECIMALS, _MOST_DECIMALS, _EXACT = 2, 9, 12


def half_up(amount: float, decimals: int) -> Decimal:
    """Round as bills do: 0.9375 is 0.938, and so is the sum of floats that is 0.93749999999999."""
    return Decimal(f"{amount:.{_EXACT}f}").quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def decimals_of(amount: float) -> int:
    """Return with how many decimals an amount and its parts are written: it has three digits then, cents at least."""
    digits = 2 - Decimal(f"{amount:.{_EXACT}f}").adjusted() if amount else 0
    return min(_MOST_DECIMALS, max(_LEAST_DECIMALS, digits))


def dollars(amount: float, *, decimals: int) -> str:
    """Write an amount, such as $0.0123, with the marks of the locale; one too small for these decimals as under the
    least of them, since it is not free."""
    rounded = half_up(amount, decimals)
    shown = rounded or (Decimal(1).scaleb(-decimals) if amount else rounded)
    price = _("$%(amount)s") % {"amount": locales.current().with_marks(f"{shown:,f}")}
    return price if shown == rounded else _("under %(amount)s") % {"amount": price}


def place(costs_url: str = "") -> Markup:
    """Return the place that a page leaves for its price, which leads to a page of costs where that is given."""
    return Markup(f"{_PLACE}{locales.current().language} {quote(costs_url)} -->")  # noqa: S704  # as above


class PriceLine(NamedTuple):
    """All calls of a request that read or write one table, one index of it, or the same tables, in the same way.
    `parts` are several tables, each with its units."""

    operation: str
    place: str
    parts: tuple[tuple[str, float], ...]
    calls: int
    items: int
    read_units: float
    write_units: float

    @property
    def price(self) -> str:
        return per_million(self.read_units, self.write_units)


def lines_of(bill: Meter) -> list[PriceLine]:
    """Return the lines of a bill, in the order of their names, since calls of one trip come in any. Their units add up
    to those of the bill."""
    found: dict[tuple[str, str], list[Call]] = {}
    for call in bill.calls:
        place = ", ".join(map(declared_name, call.table.split(",")))
        found.setdefault((call.operation, f"{place} / {call.index}" if call.index else place), []).append(call)
    return [
        PriceLine(
            operation,
            place,
            _parts(calls) if ", " in place else (),
            len(calls),
            sum(call.items for call in calls),
            sum(call.read_units for call in calls),
            sum(call.write_units for call in calls),
        )
        for (operation, place), calls in sorted(found.items())
    ]


def _parts(calls: list[Call]) -> tuple[tuple[str, float], ...]:
    units = defaultdict[str, float](float)
    for call in calls:
        for part in call.parts:
            units[part.table] += part.units
    return tuple(sorted(units.items()))


def per_million(read_units: float, write_units: float) -> str:
    """Return the price of a million such requests, with three digits: right within half a percent."""
    amount = (read_units * READ_UNIT + write_units * WRITE_UNIT) * 1e6
    return dollars(amount, decimals=decimals_of(amount) if amount < 100 else 0)


def fill_in(response: HttpResponse, bill: Meter) -> None:
    """Put the price where the page has left a place for it."""
    lines = tuple(lines_of(bill))
    before, _, rest = response.content.rpartition(IN_PAGE)  # it is near the end
    said, after = rest.split(b" -->", 1)
    language, costs_url = said.decode().split(" ", 1)
    figure = _said(language, unquote(costs_url), bill.trips, bill.read_units, bill.write_units, lines)
    response.content = before + figure + after
    if "Content-Length" in response:
        response["Content-Length"] = str(len(response.content))


@lru_cache(maxsize=256)
def _said(
    language: str, costs_url: str, trips: int, read_units: float, write_units: float, lines: tuple[PriceLine, ...]
) -> bytes:
    """Return the figure in a language. The same page costs the same again and again."""
    with locales.shown_in(Locale(language=language)):
        context: dict[str, Any] = {
            "costs_url": costs_url,
            "trips": trips,
            "read_units": read_units,
            "write_units": write_units,
            "price": per_million(read_units, write_units),
            "lines": lines,
            "noted": NOTED,
        }
        return render_to_string("portal/_price.html", context).encode()
