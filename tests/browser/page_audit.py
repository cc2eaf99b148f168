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
# Most of axe's time goes into contrasts, and most texts of a page look as texts of the page before did. What decides
# about a text's contrast is how it looks itself, what its ancestors paint, what lies over it and what is painted below
# in the window; about all other rules, the elements with their attributes and which of them can be seen or scrolled.
# Of both a number is made, by which `grave` knows what it has asked before.
MARKS = """(within) => {
  const number = (text) => {  // cyrb53
    let a = 0xdeadbeef, b = 0x41c6ce57;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      a = Math.imul(a ^ code, 2654435761);
      b = Math.imul(b ^ code, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    return 4294967296 * (2097151 & b) + (a >>> 0);
  };
  const styles = new Map(), looks = new Map(), paints = new Map(), shape = [], texts = [];
  const PLAIN = [undefined, "rgba(0, 0, 0, 0)", "none", 1, "none", "normal", "auto", "auto", "none", false].join();
  const BARE = ["rgba(0, 0, 0, 0)", "none", 1, ""].join();
  const style = (e) => styles.get(e) ?? styles.set(e, getComputedStyle(e)).get(e);
  const look = (e) => {
    if (!e) return 0;
    if (!looks.has(e)) {
      const s = style(e), off = e.matches(":disabled, [aria-disabled=true], [inert]") || e.control?.disabled;
      const own = [off, s.backgroundColor, s.backgroundImage, s.opacity, s.filter, s.mixBlendMode, s.zIndex, s.clip,
        s.clipPath, s.position === "fixed"].join();
      looks.set(e, own === PLAIN ? look(e.parentElement) : number(look(e.parentElement) + own));
    }
    return looks.get(e);
  };
  const paint = (e) => paints.get(e) ?? paints.set(e, [style(e).backgroundColor, style(e).backgroundImage,
    style(e).opacity, e.matches("img, svg, video") ? 1 : ""].join()).get(e);
  for (const e of document.querySelectorAll(`:is(${within}), :is(${within}) *`)) {
    const rect = e.getBoundingClientRect(), s = style(e);
    const visible = e.checkVisibility({ visibilityProperty: true });
    const size = s.display === "contents" || (rect.width > 1 && rect.height > 1);
    const scrolls = visible && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
      && (s.overflowX + s.overflowY).match("auto|scroll");
    const own = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(" ").trim();
    shape.push(e.localName, ...[...e.attributes].map((a) => `${a.name}=${a.value}`), own, visible, size, !!scrolls);
    if (!visible || !size || !(own || e.matches("input, select, textarea"))) continue;
    const over = document.elementsFromPoint(rect.x + rect.width / 2, rect.y + rect.height / 2);
    const upon = over.indexOf(e), painted = over.map(paint);
    texts.push([e, number([look(e), s.color, s.fontSize, s.fontWeight, s.textShadow, s.textDecorationLine,
      s.borderBottomStyle, own.length > 1, e.type, e.parentElement && style(e.parentElement).color, upon < 0,
      over.slice(0, upon).filter((o) => !e.contains(o)).length, ...painted.filter((p) => p !== BARE)].join())]);
  }
  for (let e of document.querySelectorAll(within)) for (; e; e = e.parentElement) shape.push(e.cloneNode().outerHTML);
  window.__texts = texts.map(([e]) => e);
  return [texts.map(([, mark]) => mark), number(shape.join("\\n"))];
}"""
# Rules none of whose checks can be grave are not asked: they take as long as the others. Nothing is fetched for axe:
# what it would look for in media files is not grave, and there are none.
RUN = """([within, grave, fresh, colours]) => {
  const impact = (check) => (axe._audit.data.checks[check.id ?? check] ?? {}).impact;
  const rules = axe._audit.rules.filter((rule) => rule.enabled && (rule.impact
    ? grave.includes(rule.impact)
    : [...rule.any, ...rule.all, ...rule.none].some((check) => grave.includes(impact(check)))))
    .map((rule) => rule.id).filter((id) => !colours || colours.includes(id));
  const contrast = axe._audit.rules.find((rule) => rule.id === "color-contrast");
  const asked = new Set(fresh.map((place) => window.__texts[place]));
  const matches = contrast.__matches ??= contrast.matches;
  contrast.matches = function (node, ...rest) { return asked.has(node) && matches.call(this, node, ...rest); };
  const options = { resultTypes: ["violations"], preload: false, runOnly: rules };
  return axe.run(within, options).then((result) => result.violations);
}"""
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules that ask for colours
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.right > innerWidth + 1 || box.left < -1;
  })
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))"""

# People's own code and tables may scroll in their boxes; what we lay out fits.
SIDEWAYS = """() => [...document.querySelectorAll("body *")].filter((e) => e.scrollWidth > e.clientWidth + 1
    && e.clientWidth && ["auto", "scroll"].includes(getComputedStyle(e).overflowX)
    && !e.matches("pre, input, textarea, select, .prose *")).map((e) => e.outerHTML.slice(0, 120))"""


_clean: set[int] = set()  # marks of the texts and pages in which axe found nothing


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


def audit(page: Page, name: str, within: str = "html") -> list[str]:
    """What is wrong with the page as it stands now, as lines that say where. Nothing is clicked or reloaded.

    `within` is where axe looks, for a state that changes a part of a page that was audited before.
    """
    found = audit_all(page, name, within)
    turn(page, *WAYS[0])
    return found


def audit_all(page: Page, name: str, within: str = "html") -> list[str]:
    """The same for a page that others only follow: it begins as the page is, and leaves it another way."""
    found = []
    for scheme, size in ways_of(page):
        show(page, scheme, size)
        way = f"{name}, {scheme}, {size['width']}"
        found += grave(page, way, within)
        found += layout(page, way)
    return found


def ways_of(page: Page) -> tuple[tuple[str, dict[str, int]], ...]:
    """All ways to look at a page, the one that it has first: to lay it out anew takes as long as to load it."""
    return WAYS if page.viewport_size == WIDE else WAYS[::-1]


def layout(page: Page, way: str) -> list[str]:
    """What does not fit into the window that the page has: the other half of an `audit`."""
    wide = [f"{way}: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
    return wide + [f"{way}: scrolls sideways: {element}" for element in page.evaluate(SIDEWAYS)]


def show(page: Page, scheme: str, size: dict[str, int]) -> None:
    """The page in these colours and in a window of this size, without moving there."""
    turn(page, scheme, size)
    # The page's own observers of sizes are told between the first frame and the second.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def turn(page: Page, scheme: str, size: dict[str, int]) -> None:
    if page.viewport_size != size:
        page.set_viewport_size(size)  # type: ignore[arg-type]
    if page.evaluate("scheme => !matchMedia(`(prefers-color-scheme: ${scheme})`).matches", scheme):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]


def grave(page: Page, name: str, within: str = "html") -> list[str]:
    """What axe finds that is grave, in the window and the colours that the page has: half of an `audit`.

    It is asked of what no page before had; what had a fault is asked again.
    """
    texts, shape = page.evaluate(MARKS, within)
    fresh = {text: place for place, text in enumerate(texts) if text not in _clean}
    if not fresh and shape in _clean:
        return []
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    asked = [within, GRAVE, list(fresh.values()), COLOURS if shape in _clean else None]
    found = [
        f"{name}: {violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')}"
        for violation in page.evaluate(RUN, asked)
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
    if not found:
        _clean.update(texts, [shape])
    return found
