"""Charts as inline SVG, made of attributes and classes only: the pages allow no inline style.

Widths are percentages of the drawing, so that a chart fills its place and its text keeps its size. Every chart stands
beside a table with the same numbers, and is hidden from screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from tickets.dashboards.presenters import Line, Number

register = template.Library()

PLOT = 176  # pixels from the top of the daily chart to its base line
BELOW = 24  # and below it, for the dates
TOP = 8  # above the highest line, for half of its number


@register.filter
def grouped(count: int) -> str:
    """Write 1234567 as 1,234,567."""
    return f"{count:,}"


@register.filter
def shortened(count: int) -> str:
    """Write a number for a scale: 600, 1.2k, 40k, 2M. Exact for the ends of a scale, of which there is half and all."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (1000, "k")):
        if count >= size:
            return f"{count / size:g}{unit}"
    return str(count)


@register.simple_tag
def number(of: Number) -> SafeString:
    """Return a count as a link to what was counted. Zero stands there quietly."""
    if of.url:
        return format_html('<a class="number" href="{}">{}</a>', of.url, grouped(of.count))
    return format_html('<span class="number{}">{}</span>', "" if of.count else " number-zero", grouped(of.count))


@register.filter
def duration(seconds: float | None) -> str:
    """Write seconds as a person says them, with two digits that matter: 45 s, 12 min, 3.5 h, 2.1 days."""
    if seconds is None:
        return "\N{EN DASH}"
    if math.isinf(seconds):
        return "over 90 days"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size * (2 if unit == "days" else 1):
            amount = seconds / size
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "min" else f"{amount:.1f} {unit}"
    return f"{seconds:.0f} s"


@register.simple_tag
def span(lower: float, upper: float) -> str:
    """Return the bounds of a bucket."""
    if math.isinf(upper):
        return f"over {' '.join(_bound(lower))}"
    (low, small), (high, large) = _bound(lower), _bound(upper)
    if not lower:
        return f"up to {high} {large}"
    return f"{low} to {high} {large}" if small == large else f"{low} {small} to {high} {large}"


def _bound(seconds: float) -> tuple[str, str]:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds / size:.0f}", unit
    return f"{seconds:.0f}", "s"


@register.filter
def lag(seconds: int) -> str:
    """Say how long ago, exactly enough to see it grow: 12 s, 4 minutes, 3 hours, 2 days."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            amount = seconds // size
            return f"{amount} {unit}{'s' if amount > 1 else ''}"
    return f"{seconds} s"


@register.simple_tag
def stamp(moment: datetime, seconds: int) -> SafeString:
    """Return a moment that was so long ago, with the exact time for who asks."""
    moment = moment.astimezone(UTC)
    exact = f"{moment.day} {moment:%b %Y, %H:%M:%S} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        exact,
        f"{lag(seconds)} ago" if seconds > 1 else "a moment ago",
    )


@register.simple_tag
def bar(largest: int, *counts: int) -> SafeString:
    """Return a bar as long as its counts are of the largest sum; several counts stand one behind the other.

    The second is hatched: which is which does not hang on colours.
    """
    parts = []
    start = 0.0
    for kind, count in zip(("solid", "hatched"), counts, strict=False):
        # What is not zero can be seen.
        width = max(100 * count / largest, 0.6) if largest and count > 0 else 0.0
        width = min(width, 100 - start)
        if width > 0:
            parts.append((f"{start:.2f}%", f"{width:.2f}%", kind, _FILLS[kind]))
        start += width
    rects = format_html_join("", '<rect x="{}" width="{}" height="100%" class="bar-{}"{}/>', parts)
    return format_html('<svg class="bar" aria-hidden="true" focusable="false">{}</svg>', rects)


_FILLS = {"solid": "", "hatched": SafeString(' fill="url(#hatch)"')}


@register.simple_tag
def daily_chart(days: Sequence[Line]) -> SafeString:
    """Draw what was opened and resolved per day: bars and a line. Each day leads to the tickets opened on it."""
    top = nice_top(max((max(day.numbers[0].count, day.numbers[1].count) for day in days), default=0))
    slot = 100 / len(days)
    height = PLOT - TOP
    return format_html(
        '<svg class="daily" height="{}" aria-hidden="true" focusable="false">{}{}{}{}{}</svg>',
        PLOT + BELOW,
        _grid(top),
        format_html_join(
            "",
            '<rect class="daily-created" x="{}%" y="{}" width="{}%" height="{}"/>',
            (
                (f"{i * slot + slot * 0.14:.3f}", f"{PLOT - h:.1f}", f"{slot * 0.72:.3f}", f"{h:.1f}")
                for i, day in enumerate(days)
                if (h := height * day.numbers[0].count / top) > 0
            ),
        ),
        _line([PLOT - height * day.numbers[1].count / top for day in days]),
        format_html_join(
            "",
            '<text class="daily-date{}" x="{}%" y="{}" text-anchor="{}">{}</text>',
            _dates(days, slot),
        ),
        format_html_join("", "{}", ((_target(day, i * slot, slot),) for i, day in enumerate(days))),
    )


def _target(day: Line, x: float, width: float) -> SafeString:
    """Return the strip of a day: it says its numbers to a mouse, and leads to its tickets. The keyboard has the
    table."""
    created, resolved = day.numbers[:2]
    words = f"{day.name}: {grouped(created.count)} opened, {grouped(resolved.count)} resolved"
    strip = format_html(
        '<rect x="{}%" width="{}%" height="{}"/><title>{}</title>', f"{x:.3f}", f"{width:.3f}", PLOT, words
    )
    if url := created.url or resolved.url:
        return format_html('<a class="daily-day" href="{}" tabindex="-1">{}</a>', url, strip)
    return format_html('<g class="daily-day">{}</g>', strip)


def nice_top(largest: int) -> int:
    """Return the end of a scale: 2, 4, 6, 8, 10, 12, 16, 20, 40 ..., so that its middle is a whole number too."""
    size = 1
    while True:
        for step in (2, 4, 6, 8, 10, 12, 16):
            if step * size >= largest:
                return step * size
        size *= 10


def _grid(top: int) -> SafeString:
    """Return lines at half and all of the scale, with their numbers, and the base line."""
    lines = [((PLOT + TOP) / 2, top // 2), (TOP, top)]
    return format_html_join(
        "",
        '<line class="daily-grid" x1="0" x2="100%" y1="{}" y2="{}"/>'
        '<text class="daily-scale" x="-8" y="{}" text-anchor="end">{}</text>',
        ((y, y, y + 4, shortened(count)) for y, count in lines),
    ) + format_html('<line class="daily-base" x1="0" x2="100%" y1="{}" y2="{}"/>', PLOT, PLOT)


def _line(heights: Sequence[float]) -> SafeString:
    """Return a drawing inside of the drawing, stretched to its width: a path knows no percentages."""
    points = " ".join(f"{i + 0.5:g},{y:.1f}" for i, y in enumerate(heights))
    return format_html(
        '<svg viewBox="0 0 {} {}" width="100%" height="{}" preserveAspectRatio="none">'
        '<polyline class="daily-halo" points="{}" vector-effect="non-scaling-stroke"/>'
        '<polyline class="daily-resolved" points="{}" vector-effect="non-scaling-stroke"/></svg>',
        len(heights),
        PLOT,
        PLOT,
        points,
        points,
    )


def _dates(days: Sequence[Line], slot: float) -> list[tuple[str, str, int, str, str]]:
    """Return six dates along the base line, the last one today; a narrow window shows every other one."""
    step = max(1, round(len(days) / 6))
    found = []
    for back, i in enumerate(range(len(days) - 1, -1, -step)):
        first, last = i < step / 2, i == len(days) - 1
        at = 0 if first else 100 if last else (i + 0.5) * slot
        anchor = "start" if first else "end" if last else "middle"
        found.append((" if-wide" if back % 2 else "", f"{at:.2f}", PLOT + 17, anchor, days[i].name))
    return found
