"""Turn the HTML of a letter into text, and into HTML that is safe to show.

Browsers' parsers grow a tree of 2 GB from 80 KB of unclosed tags, and so do nh3 and selectolax, which follow the
standard. So the tags are read here, in one pass, and written again with every one closed, at most 200 levels deep. From
that nh3 makes what is shown. Images wait behind `data-src` until somebody asks for them: loading one tells its sender
that the letter was read.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import nh3

from portal.mailing import charsets
from portal.mailing.html_text import TextWriter, names

INPUT_LIMIT: Final = 2_000_000  # characters, without embedded images
_OUTPUT_LIMIT: Final = 1_000_000
_TAGS_LIMIT: Final = 50_000
_DEPTH_LIMIT: Final = 200
_ATTRIBUTES_LIMIT: Final = 30

_NAME: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]{0,20})(?=[\s/>:])")
_QUOTE_OR_END: Final = re.compile(r"[>\"']")
_ATTRIBUTE: Final = re.compile(r"([^\s=/>\"']{1,60})\s{0,20}(?:=\s{0,20}(\"[^\"]*\"|'[^']*'|[^\s>]+))?")
_HUGE_NUMBER: Final = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9a-fA-F]{9,});?")
_EMBEDDED: Final = re.compile(r"(?i)data:[a-z]{1,20}/[^\"'\s)>]{100,}")
_IMAGE: Final = re.compile(r'<img((?:\s[a-z-]+="[^"]*")*)>')
_DATA_SRC: Final = re.compile(r'\s([a-z-]+)="([^"]*)"')

_VOID: Final = frozenset({"br", "hr", "img"})
_INLINE: Final = names(
    "a abbr b big cite code del em font i ins kbd q s samp small span strike strong sub sup tt u var"
)
_BLOCKS: Final = names(
    "address article aside blockquote caption center dd div dl dt fieldset figcaption figure footer h1 h2 h3 h4 h5 h6 "
    "header li main nav ol p pre section table tbody td tfoot th thead tr ul"
)
_KEPT: Final = _INLINE | _BLOCKS | _VOID
# Their content is no text of the letter.
_SKIPPED: Final = frozenset({"script", "style", "title", "textarea", "xmp", "noembed", "noframes", "iframe"})
# An open element that ends where another of these begins.
_ENDS: Final = {
    **dict.fromkeys(("li",), frozenset({"li", "p"})),
    **dict.fromkeys(("td", "th"), frozenset({"td", "th", "p"})),
    **dict.fromkeys(("tr",), frozenset({"tr", "td", "th", "p"})),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd", "p"})),
}
_P: Final = frozenset({"p"})
_TABLE: Final = frozenset({"table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"})

_ATTRIBUTES: Final = {
    "*": {"dir", "lang", "title", "align", "valign", "style"},
    "a": {"href"},
    "img": {"alt", "width", "height", "data-src"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "ol": {"start"},
    "font": {"color"},
}
_ALL_ATTRIBUTES: Final = frozenset().union(*_ATTRIBUTES.values()) | {"src", "class"}
_STYLES: Final = {"color", "background-color", "font-weight", "font-style", "text-decoration", "text-align"}
_SCHEMES: Final = {"http", "https", "mailto", "tel"}


class Shown(NamedTuple):
    """The HTML of a letter, as text and as HTML to show."""

    text: str
    html: str
    has_remote_images: bool
    is_cut: bool


class Tag(NamedTuple):
    """A tag: its name in lower case, whether it closes its element, and its attributes."""

    name: str
    closes: bool
    attributes: dict[str, str]


def read_html(source: str) -> Shown:
    """Return the text of a letter's HTML, and HTML that is safe to show, with images blocked."""
    source = _EMBEDDED.sub("data:,", source)
    writer, safe = TextWriter(), _Balanced()
    for one in _tokens(source[:INPUT_LIMIT]):
        if isinstance(one, str):
            writer.words(one)
            safe.words(one)
        else:
            writer.tag(one.name, one.closes, one.attributes)
            safe.tag(one)
    shown = charsets.clean(_cleaned(safe.finish()))
    return Shown(writer.finish(), shown, safe.has_remote_images, safe.is_full or len(source) > INPUT_LIMIT)


def images_allowed(source: str) -> str:
    """Return HTML of `read_html` in which images are loaded."""

    def image(match: re.Match[str]) -> str:
        return f"<img{_DATA_SRC.sub(attribute, match[1])}>"

    def attribute(match: re.Match[str]) -> str:
        return f' {"src" if match[1] == "data-src" else match[1]}="{match[2]}"'

    return _IMAGE.sub(image, source)


def as_html(text: str) -> str:
    return "<p>" + html.escape(text).replace("\n", "<br>") + "</p>"


def _cleaned(source: str) -> str:
    return nh3.clean(
        source,
        tags=set(_KEPT),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        filter_style_properties=_STYLES,
        url_schemes=_SCHEMES,
        url_relative="deny",  # it would lead to a page of the portal
        link_rel="nofollow noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    ).strip()


# --- reading ---


def _tokens(source: str) -> Iterator[str | Tag]:
    """Yield texts and tags in order. Comments, declarations and the content of scripts and styles are left out."""
    at, end_of_tag = 0, _TagEnds(source)
    gone: set[str] = set()  # elements whose end was looked for and is missing
    while at < len(source):
        open_ = source.find("<", at)
        if open_ < 0:
            open_ = len(source)
        if open_ > at:
            yield _unescaped(source[at:open_])
        at = open_
        if source.startswith(("<!", "<?"), at):
            at = _after_declaration(source, at)
        elif match := _NAME.match(source, at):
            end = end_of_tag(match.end())
            name = match[1].lower()
            tag = Tag(name, source[at + 1] == "/", _attributes(source[match.end() : end - 1]))
            at = end
            if name in _SKIPPED and not tag.closes:
                found = None if name in gone else re.compile(f"</{name}", re.IGNORECASE).search(source, at)
                if found is None:
                    gone.add(name)
                else:
                    at = found.start()
            else:
                yield tag
        elif source.startswith("</", at) or _is_foreign(source, at):
            at = end_of_tag(at + 1)
        elif at < len(source):
            yield "<"
            at += 1


def _is_foreign(source: str, at: int) -> bool:
    """Tell whether a tag of another language begins here, such as <o:p> of Office."""
    return source[at + 1 : at + 2].isalpha() and source.find(">", at, at + 200) > 0


def _after_declaration(source: str, at: int) -> int:
    if source.startswith("<!--", at):
        if source.startswith((">", "->"), at + 4):
            return source.index(">", at) + 1
        end = source.find("-->", at + 4)
        return len(source) if end < 0 else end + 3
    end = source.find(">", at)
    return len(source) if end < 0 else end + 1


class _TagEnds:
    """Finds the ends of tags. A sign in quotes ends none, unless a quote is never closed."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._heeds_quotes = True

    def __call__(self, at: int) -> int:
        source = self._source
        begun = at
        while self._heeds_quotes and (found := _QUOTE_OR_END.search(source, at)):
            if found[0] == ">":
                return found.end()
            before = source[max(begun, found.start() - 20) : found.start()].rstrip()
            if not before.endswith("="):
                at = found.end()  # a stray quote, as in <p it's>
                continue
            close = source.find(found[0], found.end())
            if close < 0:
                break
            at = close + 1
        self._heeds_quotes = False
        end = source.find(">", begun)
        return len(source) + 1 if end < 0 else end + 1


def _attributes(source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if not source or source == "/":
        return found
    for match in _ATTRIBUTE.finditer(source):
        name, value = match[1].lower(), match[2] or ""
        if name in _ALL_ATTRIBUTES and name not in found:
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name] = _unescaped(value[1:-1] if quoted else value)
            if len(found) >= _ATTRIBUTES_LIMIT:
                break
    return found


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    return html.unescape(_HUGE_NUMBER.sub("\N{REPLACEMENT CHARACTER}", text))


# --- writing ---


class _Balanced:
    """Writes tags again so that each element is closed where its parent is."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._size = 0
        self._tags = 0
        self._open: list[str] = []
        self.has_remote_images = False
        self.is_full = False

    def words(self, text: str) -> None:
        if not self.is_full:
            self._write(html.escape(text))

    def tag(self, tag: Tag) -> None:
        if tag.name not in _KEPT or self.is_full:
            return
        self._tags += 1
        if self._tags > _TAGS_LIMIT:
            self.is_full = True
        elif tag.closes:
            self._close(tag.name)
        elif tag.name in _VOID:
            self._void(tag)
        else:
            self._begin(tag)

    def finish(self) -> str:
        while self._open:
            self._pop()
        return "".join(self._out)

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > _OUTPUT_LIMIT:
            self.is_full = True
        else:
            self._out.append(text)

    def _void(self, tag: Tag) -> None:
        attributes = dict(tag.attributes)
        source = attributes.pop("src", "").strip()
        if tag.name == "img":
            attributes.pop("data-src", None)
            if source.lower().startswith(("http://", "https://", "//")):
                attributes["data-src"] = f"https:{source}" if source.startswith("//") else source
                self.has_remote_images = True
            elif not attributes.get("alt", "").strip():
                attributes["alt"] = "image"
        self._write(_written(tag.name, attributes))

    def _begin(self, tag: Tag) -> None:
        name = tag.name
        if name in _BLOCKS:
            self._end_before(_ENDS.get(name, _P))
        if len(self._open) >= _DEPTH_LIMIT:
            return
        if name == "a" and "a" in self._open:
            self._close("a")
        self._open.append(name)
        self._write(_written(name, tag.attributes))

    def _end_before(self, ended: frozenset[str]) -> None:
        """Close the innermost element that ends where a new one begins, and the formats in it."""
        while True:
            depth = len(self._open)
            while depth and self._open[depth - 1] in _INLINE:
                depth -= 1
            if not depth or self._open[depth - 1] not in ended:
                return
            while len(self._open) >= depth:
                self._pop()

    def _close(self, name: str) -> None:
        for depth in range(len(self._open), 0, -1):
            if self._open[depth - 1] == name:
                while len(self._open) >= depth:
                    self._pop()
                return
            if self._open[depth - 1] in ("td", "th", "table") and name not in _TABLE:
                return  # an end in a cell does not close what stands around the table

    def _pop(self) -> None:
        name = self._open.pop()
        self._out.append(f"</{name}>")


def _written(name: str, attributes: dict[str, str]) -> str:
    kept = _ATTRIBUTES.get(name, frozenset()) | _ATTRIBUTES["*"]
    told = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items() if key in kept)
    return f"<{name}{told}>"
