"""What every page must be in light and dark, wide and narrow: free of axe's grave findings, and never wider than
the window."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

GRAVE = ("serious", "critical")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
# Colours follow from the scheme and the rest from the width, so not every rule is asked in each of the four.
COLOURS: dict[str, Any] = {"runOnly": ["color-contrast"]}
ALL_ELSE: dict[str, Any] = {"rules": {"color-contrast": {"enabled": False}}}
WAYS: tuple[tuple[str, dict[str, int], dict[str, Any]], ...] = (
    ("light", WIDE, {}),
    ("dark", WIDE, COLOURS),
    ("dark", NARROW, COLOURS),
    ("light", NARROW, ALL_ELSE),
)
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))"""


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


def audit(page: Page, name: str, within: str = "html") -> list[str]:
    """What is wrong with the page as it stands now, as lines that say where. Nothing is clicked or reloaded.

    `within` is where axe looks, for a state that changes a part of a page that was audited before.
    """
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    found = []
    for scheme, size, options in WAYS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        way = f"{name}, {scheme}, {size['width']}"
        arguments = json.dumps([within, {**options, "resultTypes": ["violations"]}])
        for violation in page.evaluate(f"axe.run(...{arguments}).then((r) => r.violations)"):
            if violation["impact"] in GRAVE:
                for node in violation["nodes"][:3]:
                    found.append(f"{way}: {violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')}")
        found += [f"{way}: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="light")
    return found
