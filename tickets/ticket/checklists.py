"""Checklists in texts: lines such as "- [ ] Call Bob", which are ticked by their place and their words."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from portal.errors import Conflict, Invalid

_ITEM: Final = re.compile(r"^(\s*(?:[-*+]|[0-9]{1,9}[.)])\s+)\[([ xX])\](?=\s+(\S.*)$)", re.MULTILINE)
_TICK: Final = re.compile(r"([0-9]{1,5})\.([0-9a-f]{8})\.([01])(?:\.(\S{1,120}))?\Z")
_OPEN, _CLOSE = "\ue000", "\ue001"  # around the place of an item while its text is rendered
MARKED: Final = re.compile(rf"(<li>\s*(?:<p>)?)?{_OPEN}([0-9]{{1,5}}){_CLOSE}")


@dataclass(frozen=True)
class ChecklistItem:
    """An item as it stands in a text: its place among the items, its words, and whether it is ticked."""

    place: int
    words: str
    is_ticked: bool

    @property
    def value(self) -> str:
        """Return what ticks it, or takes the tick away; `Tick.parse` reads it."""
        return f"{self.place}.{_digest(self.words)}.{int(not self.is_ticked)}"


@dataclass(frozen=True)
class Tick:
    """The wish that an item be ticked, or not: of the description, or of the comment that `entry` names."""

    place: int
    digest: str
    to: bool
    entry: str = ""

    @classmethod
    def parse(cls, value: str) -> Tick:
        """Read what the button of an item sends. Raises Invalid."""
        match = _TICK.match(value)
        if not match:
            raise Invalid(gettext("This change is incomplete. Reload the ticket and try again."))
        return cls(int(match[1]), match[2], match[3] == "1", match[4] or "")

    def item_of(self, text: str) -> ChecklistItem:
        """Return the item that is meant: at its place, or the only one with its words elsewhere. Raises Conflict."""
        found = items(text)
        alike = [one for one in found if _digest(one.words) == self.digest]
        here = [one for one in alike if one.place == self.place] or alike
        if len(here) != 1:
            sentence = gettext(
                "This item of the checklist was changed or removed meanwhile. The ticket shows it as it is."
            )
            raise Conflict(sentence)
        return here[0]

    def applied(self, text: str) -> str:
        """Return the text with the item as it is wished. Raises Conflict."""
        place = self.item_of(text).place
        match = list(_ITEM.finditer(text))[place]
        return f"{text[: match.end(1)]}[{'x' if self.to else ' '}]{text[match.end() :]}"


def items(text: str) -> list[ChecklistItem]:
    return [ChecklistItem(place, match[3].strip(), match[2] != " ") for place, match in enumerate(_ITEM.finditer(text))]


def has_items(text: str) -> bool:
    """Tell whether a text may have a checklist: cheap, for the many that have none."""
    return "[ ]" in text or "[x]" in text or "[X]" in text


def marked(text: str) -> str:
    """Return a text in which the place of each item stands for its box, which survives rendering."""
    places = iter(range(len(text)))
    return _ITEM.sub(lambda match: f"{match[1]}{_OPEN}{next(places)}{_CLOSE}", text)


def boxed(text: str) -> str:
    """Return a text for people who cannot tick, such as requesters, with a box of Unicode for each item."""
    boxes = {" ": "\N{BALLOT BOX}"}
    return _ITEM.sub(lambda match: match[1] + boxes.get(match[2], "\N{BALLOT BOX WITH CHECK}"), text)


def _digest(words: str) -> str:
    return hashlib.blake2b(words.encode(), digest_size=4).hexdigest()
