"""Write the text of an HTML letter: paragraphs, lists, quotes and links as one writes them in plain mail."""

from __future__ import annotations

import re
from typing import Final


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPACE: Final = re.compile(r"\s+")
_BREAKS: Final = names(
    "address article aside caption center dd div dt fieldset figcaption figure footer form header li main nav section "
    "tbody tfoot thead tr"
)
_GAPS: Final = names("p h1 h2 h3 h4 h5 h6 blockquote table ul ol dl pre hr")
_TIGHT: Final = re.compile(r"(?i)margin(?:-bottom)?\s{0,3}:\s{0,3}0")
_SCHEME: Final = re.compile(r"(?i)^(?:https?://|mailto:|tel:)(?:www\.)?")
_LINK_LIMIT: Final = 300  # characters; longer ones are made for machines
_DEPTH_LIMIT: Final = 8  # levels of quotes and lists that are written


class TextWriter:
    """Takes the texts and tags of a letter in order, and makes its text."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []  # the depth of quotes, and the line
        self._line: list[str] = []
        self._gap = False
        self._quotes = 0
        self._pre = 0
        self._lists: list[int] = []  # for each open list the number of its next entry, 0 where it has no numbers
        self._link: tuple[str, int, int] | None = None

    def words(self, text: str) -> None:
        if self._pre:
            first, *more = text.replace("\r\n", "\n").split("\n")
            self._add(first)
            for line in more:
                self._break(explicit=True)
                self._add(line)
            return
        text = _SPACE.sub(" ", text)
        if not self._line or self._line[-1].endswith(" "):
            text = text.lstrip()
        self._add(text)

    def tag(self, name: str, closes: bool, attributes: dict[str, str]) -> None:
        if name == "br" and not closes:
            self._break(explicit=True)
        elif name in _GAPS:
            self._block(name, closes, attributes)
        elif name in _BREAKS:
            self._break()
            if name == "li" and not closes:
                self._add(self._bullet())
        elif name in ("td", "th") and not closes and self._line:
            self._add("  ")
        elif name == "a":
            self._anchor(closes, attributes.get("href", "").strip())
        elif name == "img" and not closes:
            self._image(attributes)

    def finish(self) -> str:
        self._break()
        lines = [("> " * min(quotes, _DEPTH_LIMIT) + line).rstrip() for quotes, line in self._lines]
        return "\n".join(lines).strip()

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._gap and text.strip():
            if self._lines and self._lines[-1][1]:
                self._lines.append((min(self._quotes, self._lines[-1][0]), ""))
            self._gap = False
        self._line.append(text)

    def _break(self, *, explicit: bool = False) -> None:
        line = "".join(self._line)
        self._line = []
        if line.strip() or explicit:
            self._lines.append((self._quotes, line.rstrip()))

    def _block(self, name: str, closes: bool, attributes: dict[str, str]) -> None:
        self._break()
        is_tight = name == "p" and (
            attributes.get("class", "").startswith("Mso") or _TIGHT.search(attributes.get("style", "")[:500])
        )
        is_inner_list = name in ("ul", "ol") and len(self._lists) > (0 if not closes else 1)
        # The end of a paragraph brings no gap, so that a tight one stands close to it.
        if not (is_tight or is_inner_list) and not (name == "p" and closes and not self._gap):
            self._gap = True
        step = -1 if closes else 1
        if name == "hr":
            self._add("---")
            self._break()
            self._gap = True
        elif name == "blockquote":
            self._quotes = max(0, self._quotes + step)
        elif name == "pre":
            self._pre = max(0, self._pre + step)
        elif name in ("ul", "ol") and closes:
            self._lists[-1:] = []
        elif name in ("ul", "ol"):
            self._lists.append(1 if name == "ol" else 0)

    def _bullet(self) -> str:
        indent = "  " * (min(len(self._lists), _DEPTH_LIMIT) - 1)
        if not self._lists or not self._lists[-1]:
            return f"{indent}- "
        self._lists[-1] += 1
        return f"{indent}{self._lists[-1] - 1}. "

    def _anchor(self, closes: bool, address: str) -> None:
        """Write the address of a link behind its text, where the text does not say it."""
        if self._link and self._link[1] == len(self._lines):
            target, _, begun = self._link
            text = "".join(self._line[begun:]).strip()
            if text and _bare(text) != _bare(target):
                self._add(f" ({target})" if not self._line[-1].endswith(" ") else f"({target}) ")
        self._link = None
        if not closes and len(address) <= _LINK_LIMIT and _SCHEME.match(address):
            self._link = (address, len(self._lines), len(self._line))

    def _image(self, attributes: dict[str, str]) -> None:
        told = _SPACE.sub(" ", attributes.get("alt", "")).strip()
        if told:
            self._add(f"[{told[:200]}]")
        elif attributes.get("src", "").startswith("cid:"):
            self._add("[image]")


def _bare(address: str) -> str:
    return _SCHEME.sub("", address).rstrip("/").casefold()
