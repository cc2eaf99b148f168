"""Moments in the reader's zone and form, compared with zoneinfo: clocks that change, days that are left out, 29 Feb."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from django.template import engines
from hypothesis import assume, example, given
from hypothesis import strategies as st

from portal import clock
from portal.web import locales
from portal.web.locales import DATE_FORMS, MONTHS, NUMBER_FORMS, Locale
from tenants.sign_in import accounts
from tenants.sign_in.accounts import Profile

ZONES = st.sampled_from(sorted(clock.zone_names()))
MOMENTS = st.datetimes(datetime(1975, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # bounds
# Beirut and Cairo have no midnight on these days, Havana has two, Samoa left out a day, Lord Howe moves half an hour.
SPECIAL = [
    ("Asia/Beirut", date(2022, 3, 27)),
    ("Africa/Cairo", date(2024, 4, 26)),
    ("America/Havana", date(2022, 11, 6)),
    ("Pacific/Apia", date(2011, 12, 30)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("Asia/Kathmandu", date(2028, 2, 29)),
    ("America/St_Johns", date(2006, 10, 29)),
]


def moment_of(text: str, form: str) -> datetime:
    """The local time that a text tells, read by patterns of its own."""
    patterns = {
        "words": "%d %b %Y, %H:%M:%S", "iso": "%Y-%m-%d, %H:%M:%S", "dots": "%d.%m.%Y, %H:%M:%S",
        "slashes": "%d/%m/%Y, %H:%M:%S", "us": "%m/%d/%Y, %I:%M:%S %p",
    }  # fmt: skip
    return datetime.strptime(text, patterns[form])  # noqa: DTZ007  # local time is what is told


@given(MOMENTS, ZONES, st.sampled_from(sorted(DATE_FORMS)))
@example(datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC), "Pacific/Kiritimati", "us")
@example(datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC), "Europe/Berlin", "dots")
def test_a_moment_is_written_as_the_clocks_of_the_zone_show_it(at: datetime, zone: str, form: str) -> None:
    text = Locale(zone, form, names_zone=False).moment(at, seconds=True)
    local = at.astimezone(ZoneInfo(zone))
    assert moment_of(text, form) == local.replace(tzinfo=None, microsecond=0)


@given(MOMENTS, ZONES)
@example(datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "Europe/Berlin")
@example(datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "Europe/Berlin")
def test_the_tooltip_tells_the_zone_and_its_offset_so_that_no_moment_is_written_like_another(
    at: datetime, zone: str
) -> None:
    assume(zone != "UTC")
    text = Locale(zone, "iso", names_zone=False).exact(at)
    written, _, offset = text.partition(f" {zone} (UTC")
    assert offset.endswith(")")
    hours, _, minutes = offset[1:-1].partition(":")
    told = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if offset[0] == "-" else 1)
    local = datetime.strptime(written, "%Y-%m-%d, %H:%M")  # noqa: DTZ007  # local time is what is told
    assert abs((local - told).replace(tzinfo=UTC) - at) < timedelta(minutes=1, seconds=31)  # old offsets have seconds


@given(st.dates(date(1975, 1, 1), date(2090, 1, 1)), ZONES)
def test_a_day_begins_with_its_first_moment(day: date, zone: str) -> None:
    begins_with_its_first_moment(zone, day)


@pytest.mark.parametrize(("zone", "day"), SPECIAL)
def test_a_day_whose_midnight_is_left_out_or_comes_twice_begins_with_its_first_moment(zone: str, day: date) -> None:
    begins_with_its_first_moment(zone, day)


def begins_with_its_first_moment(zone: str, day: date) -> None:
    begins, tick = clock.day_begins(day, zone), timedelta(microseconds=1)
    assert clock.day_of(clock.stamp(begins), zone) >= day.isoformat()
    assert clock.day_of(clock.stamp(begins - tick), zone) < day.isoformat()


@given(MOMENTS, ZONES)
def test_the_day_of_a_stamp_is_the_date_in_its_zone(at: datetime, zone: str) -> None:
    assert clock.day_of(clock.stamp(at), zone) == at.astimezone(ZoneInfo(zone)).date().isoformat()


@pytest.mark.parametrize(
    ("form", "number", "text"),
    [
        ("comma", 1234567, "1,234,567"),
        ("dot", 1234567, "1.234.567"),
        ("space", 1234, "1\N{NARROW NO-BREAK SPACE}234"),
        ("apostrophe", 1234, "1\u2019234"),
        ("dot", 999, "999"),
    ],
)
def test_numbers_have_the_marks_that_were_chosen(form: str, number: int, text: str) -> None:
    assert Locale(number_form=form).number(number) == text


def test_where_no_marks_were_chosen_they_are_those_of_the_language() -> None:
    assert [Locale(language=language).number(1234.5, decimals=1) for language in ("en", "de")] == ["1,234.5", "1.234,5"]


def test_months_and_days_are_written_as_the_language_does() -> None:
    day = date(2026, 3, 5)
    with locales.in_language("de"):
        german = locales.current().day(day), locales.current().short_day(day)
    assert (locales.current().day(day), *german) == ("5 Mar 2026", "5. März 2026", "5. März")


def test_a_piece_that_is_kept_is_kept_by_language() -> None:
    person = engines["jinja2"].env.filters["person"]
    with locales.in_language("de"):
        german = person("", False)
    assert ["Unassigned" in person("", False), "Nicht zugewiesen" in german] == [True, True]


def test_decimals_have_the_marks_that_were_chosen() -> None:
    assert [Locale(number_form=form).number(1234.5, decimals=1) for form in ("comma", "dot")] == ["1,234.5", "1.234,5"]


@pytest.mark.parametrize(
    "text", ['{"zone":"Mars/Olympus","date_form":"later"}', '{"zone":"Europe/Berlin","of_later":"x"}', "{}"]
)
def test_a_profile_of_a_later_version_is_read_as_far_as_it_is_known(text: str) -> None:
    profile = Profile.parse(text)
    profile.check()
    assert profile.zone in ("", "Europe/Berlin")


@given(
    st.builds(
        Profile,
        zone=st.sampled_from(["", "desk", "Asia/Kolkata"]),
        date_form=st.sampled_from([*accounts.DATE_FORMS]),
        number_form=st.sampled_from([*accounts.NUMBER_FORMS]),
        first_weekday=st.sampled_from([*accounts.WEEK_STARTS]),
        language=st.sampled_from([*accounts.LANGUAGES]),
    )
)
def test_a_profile_is_read_as_it_was_written(profile: Profile) -> None:
    assert Profile.parse(str(profile)) == profile
    assert (accounts.DATE_FORMS.keys(), accounts.NUMBER_FORMS.keys()) == (DATE_FORMS.keys(), {"", *NUMBER_FORMS})
    assert len(MONTHS) == 13


@given(st.integers(0, 96).map(lambda hours: datetime(2026, 12, 30, tzinfo=UTC) + timedelta(hours=hours)), ZONES)
@example(datetime(2026, 12, 31, 20, tzinfo=UTC), "Pacific/Auckland")
@example(datetime(2027, 1, 1, 3, tzinfo=UTC), "America/New_York")
def test_the_day_of_a_moment_long_ago_has_its_year_where_that_is_another_one_in_the_zone(
    now: datetime, zone: str
) -> None:
    at, locale = now - timedelta(days=20), Locale(zone=zone, date_form="dots")
    with mock.patch.object(clock, "now", return_value=now):
        said = locale.ago(at)
    days = (at.astimezone(ZoneInfo(zone)), now.astimezone(ZoneInfo(zone)))
    assert said.endswith(str(days[0].year)) == (days[0].year != days[1].year)
