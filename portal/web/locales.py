"""Write texts, moments, days and numbers as the person at the page reads them: language, zone, forms, first weekday.

The middleware sets the locale of each request, and with it the language of all texts. Nothing is read for it: a
person's own comes with the account, and that of the desk with the desk. Stored moments, and those in files and in the
API, stay in UTC; the API, the commands and the operators' admin speak English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache, cached_property, lru_cache
from typing import Final

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext, gettext_noop

from portal import clock, plain_text
from portal.errors import Invalid

LANGUAGES: Final = tuple(code for code, _ in settings.LANGUAGES)
ENGLISH: Final = LANGUAGES[0]  # of all texts in the source
_NOUNS_HAVE_CAPITALS: Final = frozenset({"de"})
_RIGHT_TO_LEFT: Final = frozenset({"ar", "fa", "he", "ur"})
MONTHS: Final = (
    "",
    gettext_noop("Jan"),
    gettext_noop("Feb"),
    gettext_noop("Mar"),
    gettext_noop("Apr"),
    gettext_noop("May"),
    gettext_noop("Jun"),
    gettext_noop("Jul"),
    gettext_noop("Aug"),
    gettext_noop("Sep"),
    gettext_noop("Oct"),
    gettext_noop("Nov"),
    gettext_noop("Dec"),
)


@dataclass(frozen=True)
class DateForm:
    """Patterns of a day, of one of this year, and of a time to the minute and to the second."""

    day: str
    short: str
    time: str = "{hour:02}:{minute:02}"
    precise: str = "{hour:02}:{minute:02}:{second:02}"


DATE_FORMS: Final = {
    "words": DateForm(gettext_noop("{day} {month_name} {year}"), gettext_noop("{day} {month_name}")),
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
_JUST_NOW: Final = gettext_noop("just now")
_MINUTES_AGO: Final = gettext_noop("%(num)s min ago")
_HOURS_AGO: Final = gettext_noop("%(num)s h ago")
_YESTERDAY: Final = gettext_noop("yesterday")
_DAYS_AGO: Final = gettext_noop("%(num)s days ago")
_NUMBERS_IN: Final = {"de": "dot"}  # the form by language, where that is not the one of English


@dataclass(frozen=True)
class Locale:
    """Hold the language and the forms in which one person reads texts, times and numbers.

    `number_form` is "" for that of the language; `first_weekday` is 0 for Monday; `names_zone` says that texts name the
    zone, because neither the person nor the desk has chosen one.
    """

    zone: str = "UTC"
    date_form: str = "words"
    number_form: str = ""
    first_weekday: int = 0
    names_zone: bool = True
    language: str = ENGLISH

    def __hash__(self) -> int:
        return self._hash  # each moment on a page is looked up by its locale

    @cached_property
    def _hash(self) -> int:
        return hash((self.zone, self.date_form, self.number_form, self.first_weekday, self.names_zone, self.language))

    @property
    def direction(self) -> str:
        """Return "rtl" where the language is written from right to left, else "ltr"."""
        return "rtl" if self.language in _RIGHT_TO_LEFT else "ltr"

    def local(self, moment: datetime) -> datetime:
        return moment.astimezone(clock.zone_of(self.zone))

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

    def ago(self, moment: datetime) -> str:
        """Write how long ago a moment was, or its day where that is a week or more."""
        now = clock.now()
        seconds = (now - moment).total_seconds()
        if seconds < 45:
            return said(_JUST_NOW)
        if seconds < 3600:
            return said(_MINUTES_AGO) % {"num": max(1, round(seconds / 60))}
        if seconds < 86400:
            return said(_HOURS_AGO) % {"num": round(seconds / 3600)}
        if seconds < 7 * 86400:
            days = round(seconds / 86400)
            if days == 1:
                return said(_YESTERDAY)
            return said(_DAYS_AGO) % {"num": days}
        is_near_new_year = (now.month, now.day) in ((12, 31), (1, 1))  # else, all zones are in the same year
        return _day_seen_in(self, moment, self.local(now).year if is_near_new_year else now.year)

    def number(self, number: int | float, *, decimals: int = 0) -> str:
        """Write a number with the marks of this form."""
        if type(number) is int and -1000 < number < 1000 and not decimals:
            return str(number)  # as most are, and every form writes them
        return self.with_marks(f"{number:,.{decimals}f}" if decimals else f"{number:,}")

    def with_marks(self, text: str) -> str:
        """Write a number that is written as in English with the marks of this form."""
        form = self.number_form or _NUMBERS_IN.get(self.language, "comma")
        if form == "comma":
            return text
        thousands, point = NUMBER_FORMS[form]
        return text.translate({ord(","): thousands, ord("."): point})

    @property
    def delimiter(self) -> str:
        """Return the mark between the cells of a CSV file, as a spreadsheet with this form of numbers expects it."""
        return "," if self.with_marks(".") == "." else ";"

    def _day_of(self, day: date) -> date:
        return self.local(day).date() if isinstance(day, datetime) else day


@lru_cache(maxsize=8192)
def _exact(locale: Locale, moment: datetime, seconds: bool) -> str:
    """Write a moment as `Locale.exact` does: a list has one in each row, and is looked at again."""
    said = locale.moment(moment, seconds=seconds)
    return said if locale.names_zone else f"{said} {clock.named(locale.zone, moment)}"


@lru_cache(maxsize=8192)
def _day_seen_in(locale: Locale, moment: datetime, year: int) -> str:
    day = locale.local(moment).date()
    return locale.short_day(day) if day.year == year else locale.day(day)


def _written(pattern: str, day: date) -> str:
    month_name = said(MONTHS[day.month])
    return said(pattern).format(day=day.day, month=day.month, year=day.year, month_name=month_name)


def in_sentence(label: object) -> str:
    """Write a label as it stands within a sentence: in lower case, but for languages whose nouns have capitals."""
    return str(label) if current().language in _NOUNS_HAVE_CAPITALS else str(label).lower()


# --- the locale of a request ---


UTC_LOCALE: Final = Locale()
_in_use: ContextVar[Locale] = ContextVar("locale in use", default=UTC_LOCALE)
_language: ContextVar[str] = ContextVar("language in use", default=ENGLISH)
# Returns the language of `current()`. A page asks some hundred times, and this is no call of Python.
language: Final = _language.get


def current() -> Locale:
    """Return the locale of the person who gets this page."""
    return _in_use.get()


def use(locale: Locale) -> None:
    """Let what is written from here on be in this locale, until the surrounding `shown_in` ends."""
    _in_use.set(locale)
    _language.set(locale.language)
    translation.activate(locale.language)


@contextmanager
def shown_in(locale: Locale) -> Iterator[None]:
    before = _in_use.get()
    use(locale)
    try:
        yield
    finally:
        use(before)


@contextmanager
def in_language(language: str) -> Iterator[None]:
    """Write in this language inside, and in the forms of the locale in use."""
    with shown_in(replace(_in_use.get(), language=language)):
        yield


def said(message: str) -> str:
    """Return a text that rows of lists repeat, as `gettext` does, which takes several times as long."""
    return _said(language(), message)


@lru_cache(maxsize=1024)
def _said(language: str, message: str) -> str:
    with translation.override(language):
        return gettext(message)


def file_size(count: int) -> str:
    """Write a number of bytes: "25 MB", with the marks of the locale in use."""
    return plain_text.file_size(count, lambda size, decimals: _in_use.get().number(size, decimals=decimals))


# --- sentences that are stored in English, such as the reason why a letter waits ---

_SENTENCES: Final = re.compile(r"(?<=[.!?:]) ")
_messages: list[str] = []


def within(text: str, limit: int, field: str) -> str:
    """Return a text of at most `limit` characters. Raises Invalid with the field for a longer one."""
    if len(text) > limit:
        number = current().number
        told = {"count": number(len(text)), "limit": number(limit), "over": number(len(text) - limit)}
        sentence = gettext("This text has %(count)s characters; %(limit)s are allowed. Shorten it by %(over)s.")
        raise Invalid(sentence % told, field=field)
    return text


def typed_lines(text: str, *, limit: int, field: str, unshown: str) -> str:
    """Return what somebody typed over several lines, as it is stored. Raises Invalid for more than `limit` characters
    and, with the sentence `unshown`, for one that cannot be shown."""
    text = within(text.replace("\r\n", "\n").strip(), limit, field)
    if plain_text.has_controls(text.replace("\n", " ").replace("\t", " ")):
        raise Invalid(unshown, field=field)
    return text


def declare_stored(message: str) -> str:
    """Return a message that is stored with values in it, so that `stored_text` knows it.

    Mark it with `gettext_noop`. One without values need not be declared.
    """
    _messages.append(message)
    return message


def stored_text(text: str) -> str:
    """Return a stored text of ours in the language of the page, sentence by sentence; unknown ones as they are."""
    if not text or current().language == ENGLISH:
        return text
    if (said := gettext(text)) != text:
        return said
    for message in _messages:
        if match := _stored_as(message).fullmatch(text):
            values = match.groupdict()
            if "note" in values:  # a stored text, too
                values["note"] = stored_text(values["note"])
            return gettext(message) % values
    sentences = _SENTENCES.split(text)
    return " ".join(map(stored_text, sentences)) if len(sentences) > 1 else text


@cache
def _stored_as(message: str) -> re.Pattern[str]:
    pieces = re.split(r"%\((\w+)\)s", message)
    return re.compile(
        "".join(f"(?P<{one}>.+?)" if n % 2 else re.escape(one) for n, one in enumerate(pieces)), re.DOTALL
    )


# --- which language ---


_MOST_ASKED: Final = 20  # languages of a header; no browser sends as many, and anybody may send 64 KB of commas


def asked_language(accepted: str) -> str:
    """Return the first of the languages in an Accept-Language header that these pages have, "" for none."""
    for name in accepted.split(",", _MOST_ASKED)[:_MOST_ASKED]:
        language = name.partition(";")[0].strip().lower().partition("-")[0]
        if language in LANGUAGES:
            return language
    return ""


def known_language(*wanted: str) -> str:
    """Return the first of these languages that the pages have, English where they have none. `de-AT` is German."""
    short = (one.lower().replace("_", "-").partition("-")[0] for one in wanted)
    return next((one for one in short if one in LANGUAGES), ENGLISH)
