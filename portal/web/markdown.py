"""Turn Markdown as people write it into HTML that cannot hurt.

markdown-it-py renders with raw HTML off; nh3 then keeps a short list of tags. Images become links: a page of
ours loads nothing from anywhere else.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup


class TextCache:
    """Forgets what was not asked for longest, so that keys and values together take at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._values: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> str | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: str, value: str) -> None:
        added = sys.getsizeof(key) + sys.getsizeof(value)
        if added > self.limit:
            return
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value
            self.size += added
            while self.size > self.limit:
                old_key, old_value = self._values.popitem(last=False)
                self.size -= sys.getsizeof(old_key) + sys.getsizeof(old_value)


_TAGS = {
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "dd",
    "del",
    "dl",
    "dt",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "kbd",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "pre": {"tabindex"}, "table": {"tabindex"}, "code": {"class"}}
_SCHEMES = {"http", "https", "mailto"}
_NOWHERE: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?(?://(?:/.*)?)?", re.IGNORECASE)  # an address without a host


def _image_as_link(self: Any, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    text = token.content or address
    escape = nh3.clean_text
    return f'<a href="{escape(address)}">{escape(text)}</a>'


class _MarkdownIt(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        # Nothing is left of a host name of more than 255 characters: a link would hide the text that it stands for.
        return super().validateLink(url) and _NOWHERE.fullmatch(url) is None


def _parser() -> MarkdownIt:
    parser = _MarkdownIt("gfm-like", {"html": False, "breaks": True})
    parser.add_render_rule("image", _image_as_link)
    return parser


_markdown = _parser()
# For each "://" one rule searches all of the paragraph before it, so many of them together would take it half a minute.
# Without the rule addresses still become links; underscores in them may be read as emphasis.
_ADDRESSES_LIMIT: Final = 100
_many_addresses = _parser()
_many_addresses.inline.ruler.disable("linkify")
# A page has one h1 and a few h2 of its own; what people write comes below them.
_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6"}


_CACHE_LIMIT: Final = 16 * 1024 * 1024  # bytes of texts and HTML in one process
_cache = TextCache(_CACHE_LIMIT)


def render(text: str) -> Markup:
    """Return safe HTML for a text. Cached, because the same comments are shown again and again."""
    html = _cache.get(text)
    if html is None:
        html = _rendered(text)
        _cache.put(text, html)
    return Markup(html)  # noqa: S704  # nh3 has made it safe


def _rendered(text: str) -> str:
    markdown = _markdown if text.count("://") <= _ADDRESSES_LIMIT else _many_addresses
    tokens = markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _HEADINGS.get(token.tag, token.tag)
        elif token.type == "table_open":  # as code, it may have to be scrolled
            token.attrSet("tabindex", "0")
    # A fence has its attributes on the code inside; nothing that people write can be a tag here.
    html = markdown.renderer.render(tokens, markdown.options, {}).replace("<pre>", '<pre tabindex="0">')
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="nofollow noopener noreferrer",
    )
