"""Write moments, days and numbers as the person at the page reads them: zone, forms, and first day of the week.

The middleware sets the locale of each request. Nothing is read for it: a person's own comes with the account, and the
zone of the desk with the desk. Stored moments, and those in files and in the API, stay in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Final

from portal import zones

MONTHS: Final = ("", *["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"])


@dataclass(frozen=True)
class DateForm:
    """Patterns of a day, of one of this year, and of a time to the minute and to the second."""

    day: str
    short: str
    time: str = "{hour:02}:{minute:02}"
    precise: str = "{hour:02}:{minute:02}:{second:02}"


DATE_FORMS: Final = {
    "words": DateForm("{day} {month_name} {year}", "{day} {month_name}"),
    "iso": DateForm("{year:04}-{month:02}-{day:02}", "{year:04}-{month:02}-{day:02}"),
    "dots": DateForm("{day:02}.{month:02}.{year}", "{day:02}.{month:02}."),
    "slashes": DateForm("{day:02}/{month:02}/{year}", "{day:02}/{month:02}"),
    "us": DateForm(
        "{month}/{day}/{year}",
        "{month}/{day}",
        "{hour12}:{minute:02} {half}",
        "{hour12}:{minute:02}:{second:02} {half}",
    ),
}
# Marks of thousands and decimals. The spaces are narrow and do not break.
NUMBER_FORMS: Final = {
    "comma": (",", "."),
    "dot": (".", ","),
    "space": ("\N{NARROW NO-BREAK SPACE}", ","),
    "apostrophe": ("\N{RIGHT SINGLE QUOTATION MARK}", "."),
}


@dataclass(frozen=True)
class Locale:
    """Hold the forms in which one person reads times and numbers.

    `first_weekday` is 0 for Monday; `names_zone` says that texts name the zone, because neither the person nor the desk
    has chosen one.
    """

    zone: str = "UTC"
    date_form: str = "words"
    number_form: str = "comma"
    first_weekday: int = 0
    names_zone: bool = True

    def local(self, moment: datetime) -> datetime:
        """Return a moment in the zone."""
        return moment.astimezone(zones.zone_of(self.zone))

    def day(self, day: date) -> str:
        """Write a day; that of a moment is the one in the zone."""
        return _written(DATE_FORMS[self.date_form].day, self._day_of(day))

    def short_day(self, day: date) -> str:
        """Write a day without its year."""
        return _written(DATE_FORMS[self.date_form].short, self._day_of(day))

    def day_seen_in(self, moment: datetime, year: int) -> str:
        """Write the day of a moment, with its year where that is another one."""
        return _day_seen_in(self, moment, year)

    def time(self, moment: datetime, *, seconds: bool = False) -> str:
        """Write the time of day of a moment."""
        form = DATE_FORMS[self.date_form]
        local = self.local(moment)
        half, hour12 = ("am", "pm")[local.hour >= 12], local.hour % 12 or 12
        said = form.precise if seconds else form.time
        said = said.format(hour=local.hour, minute=local.minute, second=local.second, hour12=hour12, half=half)
        return f"{said} UTC" if self.names_zone else said

    def moment(self, moment: datetime, *, seconds: bool = False) -> str:
        """Write a moment: "26 Nov 2026, 11:04"."""
        return f"{self.day(moment)}, {self.time(moment, seconds=seconds)}"

    def exact(self, moment: datetime, *, seconds: bool = False) -> str:
        """Write a moment with its zone, for a tooltip: "26 Nov 2026, 11:04 Europe/Berlin (UTC+1)"."""
        return _exact(self, moment, seconds)

    def number(self, number: int | float, *, decimals: int = 0) -> str:
        """Write a number with the marks of this form."""
        text = f"{number:,.{decimals}f}" if decimals else f"{number:,}"
        if self.number_form == "comma":
            return text
        thousands, point = NUMBER_FORMS[self.number_form]
        return text.translate({ord(","): thousands, ord("."): point})

    def _day_of(self, day: date) -> date:
        return self.local(day).date() if isinstance(day, datetime) else day


@lru_cache(maxsize=8192)
def _exact(locale: Locale, moment: datetime, seconds: bool) -> str:
    """Write a moment as `Locale.exact` does: a list has one in each row, and is looked at again."""
    said = locale.moment(moment, seconds=seconds)
    return said if locale.names_zone else f"{said} {zones.named(locale.zone, moment)}"


@lru_cache(maxsize=8192)
def _day_seen_in(locale: Locale, moment: datetime, year: int) -> str:
    day = locale.local(moment).date()
    return locale.short_day(day) if day.year == year else locale.day(day)


def _written(pattern: str, day: date) -> str:
    return pattern.format(day=day.day, month=day.month, year=day.year, month_name=MONTHS[day.month])


# --- the locale of a request ---


UTC_LOCALE: Final = Locale()
_in_use: ContextVar[Locale] = ContextVar("locale in use", default=UTC_LOCALE)


def current() -> Locale:
    """Return the locale of the person who gets this page."""
    return _in_use.get()


def use(locale: Locale) -> None:
    """Let what is written from here on be in this locale, until the surrounding `shown_in` ends."""
    _in_use.set(locale)


@contextmanager
def shown_in(locale: Locale) -> Iterator[None]:
    """Write in this locale inside."""
    token = _in_use.set(locale)
    try:
        yield
    finally:
        _in_use.reset(token)
