"""Numbers, durations and the geometry of charts; templates/tickets/charts.html draws them.

Widths are percentages of the drawing, so that a chart fills its place and its text keeps its size. Every chart stands
beside a table with the same numbers, and is hidden from screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext, gettext_noop, ngettext
from markupsafe import Markup

from portal.web import locales
from portal.web.jinja import escaped, grouped
from tickets.dashboards.presenters import Line, Number

PLOT = 176  # pixels from the top of the daily chart to its base line
BELOW = 24  # and below it, for the dates
TOP = 8  # above the highest line, for half of its number


def number(of: Number) -> Markup:
    """Return a count as a link to what was counted. Zero stands there quietly."""
    # A dashboard has hundreds, most of them zero, and digits and their marks need no escaping.
    if not (of.count or of.url):
        return _ZERO
    if of.url:
        return Markup(f'<a class="number" href="{escaped(of.url)}">{grouped(of.count)}</a>')  # noqa: S704
    return Markup(f'<span class="number">{grouped(of.count)}</span>')  # noqa: S704


_ZERO: Final = Markup('<span class="number number-zero">0</span>')


def shortened(count: int) -> str:
    """Write a number for a scale: 600, 1.2k, 40k, 2M. Exact for the ends of a scale, of which there is half and all."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (1000, "k")):
        if count >= size:
            return f"{locales.current().with_marks(f'{count / size:g}')}{unit}"
    return str(count)


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS: Final = ((_DAY, gettext_noop("days")), (_HOUR, "h"), (_MINUTE, "min"))


def duration(seconds: float | None) -> str:
    """Write seconds as a person says them, with two digits that matter: 45 s, 12 min, 3.5 h, 2.1 days."""
    if seconds is None:
        return "\N{EN DASH}"
    if math.isinf(seconds):
        return gettext("over 90 days")
    for size, unit in _UNITS:
        if seconds >= size * (2 if size == _DAY else 1):
            amount = seconds / size
            whole = amount >= 10 or size == _MINUTE
            said = f"{amount:.0f}" if whole else locales.current().number(amount, decimals=1)
            return f"{said} {gettext(unit)}"
    return f"{seconds:.0f} s"


def span(lower: float, upper: float) -> str:
    if math.isinf(upper):
        return gettext("over %(time)s") % {"time": " ".join(_bound(lower))}
    (low, small), (high, large) = _bound(lower), _bound(upper)
    if not lower:
        return gettext("up to %(time)s") % {"time": f"{high} {large}"}
    low = low if small == large else f"{low} {small}"
    return gettext("%(first)s to %(last)s") % {"first": low, "last": f"{high} {large}"}


def _bound(seconds: float) -> tuple[str, str]:
    for size, unit in _UNITS:
        if seconds >= size * (2 if size == _DAY else 1):
            return f"{seconds / size:.0f}", gettext(unit)
    return f"{seconds:.0f}", "s"


def lag(seconds: int) -> str:
    """Say how long ago, exactly enough to see it grow: 12 s, 4 minutes, 3 hours, 2 days."""
    if seconds >= _DAY:
        return ngettext("%(num)s day", "%(num)s days", days := seconds // _DAY) % {"num": days}
    if seconds >= _HOUR:
        return ngettext("%(num)s hour", "%(num)s hours", hours := seconds // _HOUR) % {"num": hours}
    if seconds >= _MINUTE:
        return ngettext("%(num)s minute", "%(num)s minutes", minutes := seconds // _MINUTE) % {"num": minutes}
    return f"{seconds} s"


def bar_parts(largest: int, counts: Sequence[int]) -> list[tuple[str, str, str]]:
    """Return start, width and kind of each part of a bar, whose counts stand one behind the other."""
    parts = []
    start = 0.0
    for kind, count in zip(("solid", "hatched"), counts, strict=False):
        # What is not zero can be seen.
        width = max(100 * count / largest, 0.6) if largest and count > 0 else 0.0
        width = min(width, 100 - start)
        if width > 0:
            parts.append((f"{start:.2f}", f"{width:.2f}", kind))
        start += width
    return parts


@dataclass(frozen=True)
class DailyDrawing:
    """Hold where the pieces of the daily chart stand."""

    grid: list[tuple[float, str]]  # height and words of each line of the scale
    bars: list[tuple[str, str, str, str]]  # x, y, width and height
    line: str
    dates: list[tuple[bool, str, str, str]]  # shown in wide windows only, x, anchor, words
    strips: list[tuple[str | None, str, str, str]]  # address, x, width, words
    plot: int = PLOT
    height: int = PLOT + BELOW


def daily_drawing(days: Sequence[Line]) -> DailyDrawing:
    """Draw what was opened and resolved per day."""
    top = nice_top(max((max(day.numbers[0].count, day.numbers[1].count) for day in days), default=0))
    slot, height = 100 / len(days), PLOT - TOP
    resolved = (PLOT - height * day.numbers[1].count / top for day in days)
    return DailyDrawing(
        grid=[((PLOT + TOP) / 2, shortened(top // 2)), (TOP, shortened(top))],
        bars=[
            (f"{i * slot + slot * 0.14:.3f}", f"{PLOT - h:.1f}", f"{slot * 0.72:.3f}", f"{h:.1f}")
            for i, day in enumerate(days)
            if (h := height * day.numbers[0].count / top) > 0
        ],
        line=" ".join(f"{i + 0.5:g},{y:.1f}" for i, y in enumerate(resolved)),
        dates=_dates(days, slot),
        strips=[_strip(day, i * slot, slot) for i, day in enumerate(days)],
    )


_OF_DAY: Final = gettext_noop("%(day)s: %(opened)s opened, %(resolved)s resolved")


def _strip(day: Line, x: float, width: float) -> tuple[str | None, str, str, str]:
    created, resolved = day.numbers[:2]
    told = {"day": day.name, "opened": grouped(created.count), "resolved": grouped(resolved.count)}
    words = locales.said(_OF_DAY) % told
    return created.url or resolved.url, f"{x:.3f}", f"{width:.3f}", words


def nice_top(largest: int) -> int:
    """Return the end of a scale: 2, 4, 6, 8, 10, 12, 16, 20, 40 ..., so that its middle is a whole number too."""
    size = 1
    while True:
        for step in (2, 4, 6, 8, 10, 12, 16):
            if step * size >= largest:
                return step * size
        size *= 10


def _dates(days: Sequence[Line], slot: float) -> list[tuple[bool, str, str, str]]:
    """Return six dates along the base line, the last one today; a narrow window shows every other one."""
    step = max(1, round(len(days) / 6))
    found = []
    for back, i in enumerate(range(len(days) - 1, -1, -step)):
        first, last = i < step / 2, i == len(days) - 1
        at = 0 if first else 100 if last else (i + 0.5) * slot
        anchor = "start" if first else "end" if last else "middle"
        found.append((back % 2 == 1, f"{at:.2f}", anchor, days[i].name))
    return found


GLOBALS: Final = {"bar_parts": bar_parts, "daily_drawing": daily_drawing, "span": span}
FILTERS: Final = {"duration": duration, "lag": lag, "number": number}
PIECES: Final[dict[str, dict[str, int]]] = {}
