"""Draw lines on a logarithmic or a plain scale, as an SVG that stands in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

LINE_WIDTH: Final = 620
LINE_HEIGHT: Final = 220
_LEFT: Final = 46
_BOTTOM: Final = 24
_TOP: Final = 10

Line = Sequence[tuple[float, float]]


def lines(series: Mapping[str, Line], *, label: str, ticks: Sequence[float], log: bool = False) -> SafeString:
    """Return the plot: a line for each name, of points in the order of x. The ticks are the axis of y."""
    longest = max((x for line in series.values() for x, _ in line), default=1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        scale = math.log if log else float
        low, high = scale(ticks[0]), scale(ticks[-1])
        share = (scale(min(max(y, ticks[0]), ticks[-1])) - low) / (high - low)
        across = _LEFT + x / longest * (LINE_WIDTH - _LEFT - 8)
        return round(across, 1), round(LINE_HEIGHT - _BOTTOM - share * (LINE_HEIGHT - _TOP - _BOTTOM), 1)

    grid = format_html_join(
        "",
        '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="tick" x="{}" y="{}">{}</text>',
        ((_LEFT, LINE_WIDTH - 8, y, y, _LEFT - 5, y + 3, f"{tick:g}") for tick in ticks for y in [place(0, tick)[1]]),
    )
    ends = format_html_join(
        "",
        '<text class="name" x="{}" y="{}">{}</text>',
        ((place(x, ticks[0])[0], LINE_HEIGHT - 6, f"{x:g}") for x in (0.0, round(longest / 2), longest)),
    )
    drawn = format_html_join(
        "",
        '<polyline class="line line{}" points="{}"><title>{}</title></polyline>',
        (
            (number, " ".join(f"{x},{y}" for x, y in (place(*point) for point in line)), name)
            for number, (name, line) in enumerate(series.items())
        ),
    )
    whole = format_html("{}{}{}", grid, ends, drawn)
    return format_html(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>', LINE_WIDTH, LINE_HEIGHT, label, whole
    )
