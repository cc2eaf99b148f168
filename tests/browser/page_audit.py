"""What every page must be in light and dark, wide and narrow: free of axe's grave findings, never wider than the
window, and without tables or tabs that have to be scrolled sideways."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

GRAVE = ("serious", "critical")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
# Colours follow from the scheme and all else from the width, so two of the four ways show both of both. Nothing is
# fetched for axe: what it would look for in media files is not grave, and there are none.
QUICK: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
WAYS: tuple[tuple[str, dict[str, int]], ...] = (("light", WIDE), ("dark", NARROW))
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))"""

# People's own code and tables may scroll in their boxes; what we lay out fits.
SIDEWAYS = """() => [...document.querySelectorAll("body *")].filter((e) => e.scrollWidth > e.clientWidth + 1
    && e.clientWidth && ["auto", "scroll"].includes(getComputedStyle(e).overflowX)
    && !e.matches("pre, input, textarea, select, .prose *")).map((e) => e.outerHTML.slice(0, 120))"""


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


def audit(page: Page, name: str, within: str = "html") -> list[str]:
    """What is wrong with the page as it stands now, as lines that say where. Nothing is clicked or reloaded.

    `within` is where axe looks, for a state that changes a part of a page that was audited before.
    """
    found = []
    for scheme, size in WAYS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        way = f"{name}, {scheme}, {size['width']}"
        found += grave(page, way, within)
        found += [f"{way}: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
        found += [f"{way}: scrolls sideways: {element}" for element in page.evaluate(SIDEWAYS)]
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="light")
    return found


def grave(page: Page, name: str, within: str = "html") -> list[str]:
    """What axe finds that is grave, in the window and the colours that the page has: half of an `audit`."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    arguments = json.dumps([within, QUICK])
    return [
        f"{name}: {violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')}"
        for violation in page.evaluate(f"axe.run(...{arguments}).then((r) => r.violations)")
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
