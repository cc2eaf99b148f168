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
# Most of axe's time goes into what it was asked before: an element looks and stands as one of a page before did. What
# decides about a text's contrast is how it looks itself, what its ancestors paint, what lies over it and what is
# painted below in the window. What decides all else about an element are its attributes, the ancestors that give it a
# meaning, what it contains, what names it, and whether it can be seen or scrolled. Of both a mark is made, and `grave`
# has axe look at one element for each mark that it has not found free of faults before.
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
    return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
  };
  const styles = new Map(), looks = new Map(), paints = new Map(), ids = new Map();
  const texts = window.__texts = new Map(), parts = window.__parts = new Map();
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
  for (const { id } of document.querySelectorAll("[id]")) ids.set(id, (ids.get(id) ?? 0) + 1);
  const said = (text) => /[\\p{L}\\p{N}]/u.test(text) ? "a" : text.trim() ? "!" : "";
  const named = (e) => e ? e.localName + said(e.textContent) + e.checkVisibility({ visibilityProperty: true }) : "none";
  const IGNORED = /^(class|style|data-|hx-|nonce|action|src|srcset|datetime|method|name$|width|height|d$|viewBox)/;
  const SAID = /^(title|alt|aria-label|placeholder|content|aria-roledescription|aria-valuetext)$/;
  const REFERS = /^(for|list|aria-(labelledby|describedby|controls|owns|activedescendant|errormessage|details))$/;
  const attribute = (e) => ({ name, value }) => {
    if (IGNORED.test(name)) return "";
    if (name === "id") return ids.get(value) > 1 ? "id twice" : "";
    if (name === "href") return `href${value.startsWith("#") ? named(document.getElementById(value.slice(1))) : 1};`;
    if (name === "value") return e.matches("[type=submit], [type=button], [type=reset]") ? `value${said(value)};` : "";
    if (REFERS.test(name)) return name + value.split(" ").map((id) => named(document.getElementById(id))) + ";";
    return `${name}=${SAID.test(name) && !e.matches("meta") ? said(value) : value};`;
  };
  const attributes = (e) => e.localName + " " + [...e.attributes].map(attribute(e)).sort().join("");
  const NEUTRAL = /^(div|span|p|section|main|form|header|footer|nav|article|aside|body|html|h\\d|strong|em|small) $/;
  const above = (e) => {
    if (!e) return "";
    const own = attributes(e), outer = above(e.parentElement);
    return NEUTRAL.test(own) ? outer : outer + own;
  };
  const mark = (e, outer) => {
    const rect = e.getBoundingClientRect(), s = style(e);
    const visible = e.checkVisibility({ visibilityProperty: true });
    const size = s.display === "contents" || (rect.width > 1 && rect.height > 1);
    const scrolls = visible && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
      && (s.overflowX + s.overflowY).match("auto|scroll");
    const own = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(" ").trim();
    const around = e.parentElement && style(e.parentElement);
    if (visible && size && (own || e.matches("input, select, textarea"))) {
      const over = document.elementsFromPoint(rect.x + rect.width / 2, rect.y + rect.height / 2);
      const upon = over.indexOf(e), painted = over.map(paint);
      const link = e.matches("a, [role=link]") && [s.display, s.fontStyle, around.fontStyle, around.fontSize,
        around.fontWeight, said(e.parentElement.textContent.replace(own, ""))].join();
      const text = number([look(e), s.color, s.fontSize, s.fontWeight, s.textShadow, s.textDecorationLine,
        s.borderBottomStyle, own.length > 1, e.type, around?.color, link, upon < 0,
        over.slice(0, upon).filter((o) => !e.contains(o)).length, ...painted.filter((p) => p !== BARE)].join());
      if (!texts.has(text)) texts.set(text, e);
    }
    const plain = attributes(e), shape = [plain, said(own), visible, size, !!scrolls, e.labels?.length,
      ...[...e.labels ?? []].map(named)].join();
    const inner = NEUTRAL.test(plain) ? outer : outer + plain, below = [];
    for (const child of e.matches("svg, script, style") ? [] : e.children) {
      const part = mark(child, inner);
      if (part !== below.at(-1)) below.push(part);  // one row of a list stands for the rows that are as it is
    }
    const whole = number(shape + "(" + below.join() + ")"), part = number(outer + whole);
    if (!parts.has(part)) parts.set(part, e);
    return whole;
  };
  for (const e of document.querySelectorAll(within)) mark(e, above(e.parentElement));
  return [[...texts.keys()].join(" "), [...parts.keys()].join(" ")];
}"""
# Rules none of whose checks can be grave are not asked: they take as long as the others. Nothing is fetched for axe:
# what it would look for in media files is not grave, and there are none.
RUN = """([within, grave, colours, texts, parts]) => {
  const impact = (check) => (axe._audit.data.checks[check.id ?? check] ?? {}).impact;
  const rules = axe._audit.rules.filter((rule) => rule.enabled && (rule.impact
    ? grave.includes(rule.impact)
    : [...rule.any, ...rule.all, ...rule.none].some((check) => grave.includes(impact(check))))
    && (parts || colours.includes(rule.id)));
  const fresh = (elements, marks) => new Set(marks.split(" ").map((mark) => elements.get(mark)));
  const asked = { texts: fresh(window.__texts, texts), parts: fresh(window.__parts, parts) };
  for (const rule of rules) {
    const of = asked[colours.includes(rule.id) ? "texts" : "parts"];
    rule.gather = () => [...of].filter((e) => e?.matches(rule.selector)).map((e) => axe.utils.getNodeFromTree(e))
      .filter((node) => node && !(rule.excludeHidden && !axe.commons.dom.isVisibleToScreenReaders(node)));
  }
  const options = { resultTypes: ["violations"], preload: false, debug: true, runOnly: rules.map((rule) => rule.id) };
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
# The page's own observers of sizes are told between the first frame and the second.
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
FITS = f"() => [({TOO_WIDE})(), ({SIDEWAYS})()]"
AS_IT_IS = f"async (within) => {{ await ({FRAMES})(); return [({FITS})(), ({MARKS})(within)]; }}"

_clean: set[str] = set()  # marks of the texts and parts in which axe found nothing


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
        turn(page, scheme, size)
        way = f"{name}, {scheme}, {size['width']}"
        fits, marks = page.evaluate(AS_IT_IS, within)
        found += _faults(page, way, within, marks) + _unfit(way, *fits)
    return found


def ways_of(page: Page) -> tuple[tuple[str, dict[str, int]], ...]:
    """All ways to look at a page, the one that it has first: to lay it out anew takes as long as to load it."""
    return WAYS if page.viewport_size == WIDE else WAYS[::-1]


def layout(page: Page, way: str) -> list[str]:
    """What does not fit into the window that the page has: the other half of an `audit`."""
    return _unfit(way, *page.evaluate(FITS))


def _unfit(way: str, wide: list[str], sideways: list[str]) -> list[str]:
    return [f"{way}: wider than the window: {one}" for one in wide] + [
        f"{way}: scrolls sideways: {one}" for one in sideways
    ]


def show(page: Page, scheme: str, size: dict[str, int]) -> None:
    """The page in these colours and in a window of this size, without moving there."""
    turn(page, scheme, size)
    page.evaluate(FRAMES)


def turn(page: Page, scheme: str, size: dict[str, int]) -> None:
    if page.viewport_size != size:
        page.set_viewport_size(size)  # type: ignore[arg-type]
    if page.evaluate("scheme => !matchMedia(`(prefers-color-scheme: ${scheme})`).matches", scheme):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]


def grave(page: Page, name: str, within: str = "html") -> list[str]:
    """What axe finds that is grave, in the window and the colours that the page has: half of an `audit`.

    It is asked of what no page before had; what had a fault is asked again.
    """
    return _faults(page, name, within, page.evaluate(MARKS, within))


def _faults(page: Page, name: str, within: str, seen: list[str]) -> list[str]:
    marks = [set(one.split()) - _clean for one in seen]
    if not any(marks):
        return []
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    found = [
        f"{name}: {violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')}"
        for violation in page.evaluate(RUN, [within, GRAVE, COLOURS, *map(" ".join, marks)])
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
    if not found:
        _clean.update(*marks)
    return found
