"""Draw the 99th percentile of each tenant in each phase, as an SVG that stands in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from proofs.noise.workload import NOISY

WIDTH: Final = 340
HEIGHT: Final = 150
_LEFT: Final = 38
_RIGHT: Final = 6
_TOP: Final = 8
_BOTTOM: Final = 22
_TICKS: Final = (200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
_RADIUS: Final = {"quiet": 3.2, "noisy": 3.2, "cooldown": 1.8}

Points = Mapping[str, Mapping[int, float]]  # by phase and tenant, milliseconds


def top_of(every: Sequence[Points]) -> float:
    """Return the end of an axis on which all of these can be seen."""
    largest = max((value for points in every for phase in points.values() for value in phase.values()), default=0.0)
    return float(next((tick for tick in _TICKS if tick >= largest), _TICKS[-1]))


def p99_by_tenant(points: Points, *, top: float, label: str) -> SafeString:
    """Return the plot. Both axes are the same in all plots with the same `top`, which is in milliseconds."""
    tenants = sorted({tenant for phase in points.values() for tenant in phase})
    ticks = [tick for tick in _TICKS if tick <= top]
    grid = format_html_join(
        "",
        '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="tick" x="{}" y="{}">{}</text>',
        ((_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 4, y + 3, _seconds(tick)) for tick in ticks for y in [_y(tick, top)]),
    )
    names = format_html_join(
        "",
        '<text class="name{}" x="{}" y="{}">{}</text>',
        (
            (" noisy" if tenant == NOISY else "", _x(tenant), HEIGHT - 8, tenant)
            for tenant in tenants
            if tenant in (1, 5, 10, 15, NOISY)
        ),
    )
    lines = format_html_join(
        "",
        '<line class="rise" x1="{}" x2="{}" y1="{}" y2="{}"/>',
        (
            (_x(tenant), _x(tenant), _y(points["quiet"][tenant], top), _y(points["noisy"][tenant], top))
            for tenant in tenants
            if tenant in points.get("quiet", {}) and tenant in points.get("noisy", {})
        ),
    )
    dots = format_html_join(
        "",
        '<circle class="{}" cx="{}" cy="{}" r="{}"><title>tenant {}, {}: {} ms</title></circle>',
        (
            (phase, _x(tenant), _y(value, top), _RADIUS[phase], tenant, phase, round(value))
            for phase, values in points.items()
            for tenant, value in values.items()
        ),
    )
    whole = format_html("{}{}{}{}", grid, names, lines, dots)
    return format_html('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>', WIDTH, HEIGHT, label, whole)


def _x(tenant: int) -> float:
    return round(_LEFT + 8 + (tenant - 1) * (WIDTH - _LEFT - _RIGHT - 16) / (NOISY - 1), 1)


def _y(milliseconds: float, top: float) -> float:
    least = math.log(_TICKS[0])
    share = (math.log(max(milliseconds, _TICKS[0])) - least) / (math.log(top) - least)
    return round(HEIGHT - _BOTTOM - min(share, 1.0) * (HEIGHT - _TOP - _BOTTOM), 1)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s"
