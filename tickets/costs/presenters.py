"""A statement of costs as templates and the file show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Final

from django.urls import reverse
from django.utils.dates import MONTHS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from portal.hosting import prices
from portal.load import spending
from portal.web import locales
from portal.web.price_presenters import decimals_of, dollars, half_up
from tickets.costs import statement as statements
from tickets.costs.statement import CountedCost, Feature, Statement, Units

# What is counted beside units: its title, and a sentence that says what is paid for.
_COUNTED: Final = {
    "mails": (gettext_lazy("Mail sent"), gettext_lazy("Amazon SES, for each recipient.")),
    "deliveries": (
        gettext_lazy("Webhook deliveries"),
        gettext_lazy("Each attempt. What it costs is in the messages, and in the capacity of deliveries."),
    ),
    "messages": (
        gettext_lazy("Messages in queues"), gettext_lazy("Amazon SQS: each is sent, received and deleted."),
    ),
    "files": (gettext_lazy("Files stored"), gettext_lazy("Amazon S3, for the time of this month up to now.")),
    "downloads": (gettext_lazy("Files downloaded"), gettext_lazy("Amazon S3, and the transfer to the browser.")),
    "stored": (
        gettext_lazy("Tickets stored, estimated"),
        gettext_lazy("Tickets with their history and index rows in DynamoDB, for the time of this month up to now."),
    ),
}  # fmt: skip
_IN_FILES: Final = 10  # decimals
_ORDER: Final = ("stored", "files", "mails", "messages", "deliveries", "downloads")


def total_of(found: Statement) -> str:
    """Write what a month cost up to now."""
    return dollars(found.total, decimals=decimals_of(found.total))


def page(found: Statement) -> dict[str, Any]:
    """Return the template's context."""
    decimals = decimals_of(found.total)
    units = found.units
    return {
        "month": found.month,
        "title": month_title(found.month),
        "is_over": found.is_over,
        "is_empty": not found.by_feature,
        "total": total_of(found),
        "forecast": None if found.forecast is None else dollars(found.forecast, decimals=decimals),
        "has_requests": bool(found.requests),
        "said_requests": _said_requests(found.requests),
        "per_million": _per_million(found),
        "features": [_feature_row(feature, of, found, decimals) for feature, of in found.by_feature.items()],
        "capacity": _units_row(units) | {"dollars": dollars(units.dollars, decimals=decimals)},
        "counted": [_counted_row(found.counted[name], decimals) for name in _ORDER if name in found.counted],
        "days": _days(found, decimals),
        "measured_on": date.fromisoformat(found.measured_on) if found.measured_on else None,
        "sample": statements.SAMPLE,
        "mean_days": statements.MEAN_DAYS,
        "worth": spending.WORTH,
        "lost": dollars(spending.WORTH * Units(writes=1).dollars, decimals=4),
        "noted": prices.NOTED,
        "prices": _prices(),
        "previous": _address(shifted(found.month, -1)),
        "next": _address(shifted(found.month, 1)) if found.is_over else "",
        "latest": statements.this_month(),
        "csv_url": f"{reverse('tickets:costs_file')}?month={found.month}",
    }


def title_of(counted: str) -> Any:
    return _COUNTED[counted][0]


def month_title(month: str) -> str:
    """Write a month as "November 2026"."""
    return f"{MONTHS[int(month[5:])]} {month[:4]}"


def shifted(month: str, by: int) -> str:
    """Return the month so many months later."""
    number = int(month[:4]) * 12 + int(month[5:]) - 1 + by
    return f"{number // 12:04}-{number % 12 + 1:02}"


def columns() -> list[str]:
    units = [_("Read units"), _("Write units"), _("Index writes")]
    return [_("Day (UTC)"), _("What"), *units, _("Number, or bytes"), "USD"]


def file_rows(lines: Iterable[tuple[str, Feature | str, Units, CountedCost | None]]) -> Iterator[list[str]]:
    """Yield the cells of each line, with the decimal mark of the locale. Dollars have _IN_FILES decimals, which is
    exact for units."""
    marked = locales.current().with_marks
    for day, what, units, counted in lines:
        paid = counted.dollars if counted else units.dollars
        amounts = ["", "", ""] if counted else [_plain(n) for n in (units.reads, units.writes, units.index_writes)]
        title = str(_COUNTED[what][0] if isinstance(what, str) else what.title)
        number = f"{counted.amount:.0f}" if counted else ""
        yield [day, title, *map(marked, amounts), number, marked(f"{half_up(paid, _IN_FILES):f}")]


def _plain(units: float) -> str:
    return f"{units:.1f}".removesuffix(".0")


def _shown(units: float) -> str:
    """Write units exactly: reads have halves."""
    return locales.current().with_marks(f"{units:,.1f}".removesuffix(".0"))


def _prices() -> dict[str, str]:
    """Return the prices of a million units and things, and of a GB."""
    millions = {
        "read": prices.READ_UNIT,
        "write": prices.WRITE_UNIT,
        "mails": prices.MAIL,
        "messages": prices.QUEUE_REQUESTS * prices.QUEUE_REQUEST,
        "downloads": prices.FILE_READ,
    }
    amounts = {name: price * 1e6 for name, price in millions.items()}
    amounts |= {"stored": prices.STORED_GB, "files": prices.FILE_GB, "out": prices.OUT_GB}
    decimals = {name: 2 if half_up(amount, 2) == half_up(amount, 3) else 3 for name, amount in amounts.items()}
    return {name: dollars(amount, decimals=decimals[name]) for name, amount in amounts.items()}


def _address(month: str) -> str:
    return f"{reverse('tickets:costs')}?month={month}"


_ENOUGH: Final = 1000  # requests, of which the price of a million says something


def _said_requests(count: int) -> str:
    if not count:
        return _("No requests were counted.")
    words = ngettext("%(num)s request by people and API keys.", "%(num)s requests by people and API keys.", count)
    return words % {"num": locales.current().number(count)}


def _per_million(found: Statement) -> str:
    if found.requests < _ENOUGH:
        return ""
    return dollars(found.units.dollars / found.requests * 1e6, decimals=2)


def _feature_row(feature: Any, units: Units, found: Statement, decimals: int) -> dict[str, Any]:
    share = 100 * units.dollars / found.units.dollars if found.units.dollars else 0
    return {
        "title": feature.title,
        "sentence": feature.sentence,
        **_units_row(units),
        "dollars": dollars(units.dollars, decimals=decimals),
        "share": round(share, 1),
        "percent": _percent(share),
    }


def _percent(share: float) -> str:
    whole = half_up(share, 0)
    said = _("%(percent)s%%") % {"percent": max(1, whole)}
    return said if whole else _("under %(share)s") % {"share": said}


def _units_row(units: Units) -> dict[str, str]:
    return {
        "reads": _shown(units.reads),
        "writes": _shown(units.writes),
        "index_writes": _shown(units.index_writes),
    }


def _counted_row(counted: CountedCost, decimals: int) -> dict[str, Any]:
    title, sentence = _COUNTED[counted.name]
    is_size = counted.name in ("stored", "files")
    amount = locales.file_size(round(counted.amount)) if is_size else locales.current().number(round(counted.amount))
    return {
        "title": title,
        "sentence": sentence,
        "amount": amount,
        "dollars": dollars(counted.dollars, decimals=decimals),
    }


def _days(found: Statement, decimals: int) -> dict[str, Any]:
    """Return the bars of the days, from 0 to 100, and a sentence that says the same."""
    if not found.days:
        return {}
    most = max(found.days.values()) or 1
    bars = [{"x": int(day[8:]) - 1, "height": round(100 * cost / most)} for day, cost in found.days.items()]
    dearest = max(found.days, key=lambda day: found.days[day])
    sentence = ngettext(
        "%(num)s day with use. The dearest was %(day)s, with %(dollars)s.",
        "%(num)s days with use. The dearest was %(day)s, with %(dollars)s.",
        len(found.days),
    ) % {
        "num": len(found.days),
        "day": locales.current().day(date.fromisoformat(dearest)),
        "dollars": dollars(found.days[dearest], decimals=decimals),
    }
    return {"bars": bars, "sentence": sentence}
