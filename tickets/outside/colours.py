"""Make a desk's colour readable: on light and on dark pages, as text, as a border and behind text.

Source: WCAG 2.2, 1.4.3 (4.5:1 for text) and the definitions of relative luminance and contrast ratio.
"""

from __future__ import annotations

import base64
import colorsys
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

LEAST: Final = 4.6  # a little more than 4.5, which rounding may lose
_STEP: Final = 0.01
# The backgrounds of a page that are hardest to read on; see static/css/variables.css.
_LIGHT: Final = "#ecf1f1"
_DARK: Final = "#1a2427"
_INKS: Final = ("#ffffff", "#0e1416")


@dataclass(frozen=True)
class PageStyle:
    """A style sheet that sets a page's colour, and its source for a Content-Security-Policy."""

    css: str
    source: str


@lru_cache(maxsize=1024)
def style(colour: str) -> PageStyle:
    """Return the style sheet for a colour, such as #0a6a7b. One that cannot be read is moved, and keeps its hue."""
    light, dark = readable(colour, on=_LIGHT), readable(colour, on=_DARK)
    css = f":root{{{_variables(light)}}}@media screen and (prefers-color-scheme:dark){{:root{{{_variables(dark)}}}}}"
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return PageStyle(css, f"'sha256-{digest}'")


def readable(colour: str, *, on: str) -> str:
    """Return the nearest lightness of a colour that can be read on a background."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_rgb(colour))
    step = -_STEP if _luminance(on) > 0.5 else _STEP
    while contrast(colour, on) < LEAST and 0 < lightness + step < 1:
        lightness += step
        colour = _hex(colorsys.hls_to_rgb(hue, lightness, saturation))
    return colour


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _variables(colour: str) -> str:
    ink = max(_INKS, key=lambda one: contrast(one, colour))
    # Where the pointer is, the colour moves away from its ink, so that its text stays readable.
    hue, lightness, saturation = colorsys.rgb_to_hls(*_rgb(colour))
    away = max(0.0, lightness - 0.06) if ink == _INKS[0] else min(1.0, lightness + 0.06)
    hover = _hex(colorsys.hls_to_rgb(hue, away, saturation))
    values = {"accent": colour, "accent-hover": hover, "on-accent": ink, "focus": colour, "accent-line": colour}
    return ";".join(f"--{name}:{value}" for name, value in values.items()) + ";--accent-soft:var(--sunken)"


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red / 255, green / 255, blue / 255


def _hex(rgb: tuple[float, float, float]) -> str:
    return "#" + bytes(round(part * 255) for part in rgb).hex()


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(colour)]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))
