"""What every page must be in light and dark, wide and narrow: free of axe's grave findings, never wider than the
window, and without tables or tabs that have to be scrolled sideways."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

GRAVE = ["serious", "critical"]
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
# Colours follow from the scheme and all else from the width, so two of the four ways show both of both. The first of
# them is how `browse` opens a page, which then need not be laid out once more.
WAYS: tuple[tuple[str, dict[str, int]], ...] = (("light", WIDE), ("dark", NARROW))
# Rules none of whose checks can be grave are not asked: they take as long as the others. Nothing is fetched for axe:
# what it would look for in media files is not grave, and there are none.
RUN = """([within, grave]) => {
  const impact = (check) => (axe._audit.data.checks[check.id ?? check] ?? {}).impact;
  const rules = axe._audit.rules.filter((rule) => rule.enabled && (rule.impact
    ? grave.includes(rule.impact)
    : [...rule.any, ...rule.all, ...rule.none].some((check) => grave.includes(impact(check)))));
  const options = { resultTypes: ["violations"], preload: false, runOnly: rules.map((rule) => rule.id) };
  return axe.run(within, options).then((result) => result.violations);
}"""
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
        show(page, scheme, size)
        way = f"{name}, {scheme}, {size['width']}"
        found += grave(page, way, within)
        found += layout(page, way)
    show(page, *WAYS[0])
    return found


def layout(page: Page, way: str) -> list[str]:
    """What does not fit into the window that the page has: the other half of an `audit`."""
    wide = [f"{way}: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
    return wide + [f"{way}: scrolls sideways: {element}" for element in page.evaluate(SIDEWAYS)]


def show(page: Page, scheme: str, size: dict[str, int]) -> None:
    """The page in these colours and in a window of this size, without moving there."""
    if page.viewport_size != size:
        page.set_viewport_size(size)  # type: ignore[arg-type]
    if page.evaluate("scheme => !matchMedia(`(prefers-color-scheme: ${scheme})`).matches", scheme):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    # The page's own observers of sizes are told between the first frame and the second.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def grave(page: Page, name: str, within: str = "html") -> list[str]:
    """What axe finds that is grave, in the window and the colours that the page has: half of an `audit`."""
    if page.evaluate("typeof axe") == "undefined":
        page.context.add_init_script(_axe())  # for the pages to come
        page.evaluate(_axe())
    return [
        f"{name}: {violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')}"
        for violation in page.evaluate(RUN, [within, GRAVE])
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
