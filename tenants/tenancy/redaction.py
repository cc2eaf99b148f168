"""Take words out of texts, and collect how packages do so in what they store of a ticket beside it.

A package that stores texts of tickets says so beside the holding, by `declare_texts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from string import punctuation
from typing import Any, Final
from unicodedata import normalize

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.errors import Invalid
from portal.schema import holdings
from tenants.tenancy.context import TenantContext

MARK: Final = "[redacted]"  # stands where the words stood
LEAST: Final = 2  # characters of each
MOST: Final = 20
LONGEST: Final = 2_000  # characters of each
_SPACE: Final = r"[*_~`]*\s[\s*_~`>]*"


@dataclass(frozen=True)
class SecretWords:
    """Words, phrases or whole paragraphs that are taken out wherever they stand, whatever their case and line breaks.

    They are written as a page shows them: in what is stored, letters may be composed otherwise, a backslash may stand
    before punctuation, and marks of Markdown or of a quote at the spaces.

    They are in no representation of this, so that no log has them.
    """

    phrases: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> SecretWords:
        """Read one phrase from each line. Raises Invalid."""
        lines = tuple(dict.fromkeys(" ".join(line.split()) for line in text.splitlines() if line.strip()))
        if not lines:
            raise Invalid(_("Enter the words that are to be taken out."), field="words")
        if len(lines) > MOST:
            raise Invalid(
                ngettext("Enter at most %(num)s line.", "Enter at most %(num)s lines.", MOST) % {"num": MOST},
                field="words",
            )
        if any(len(line) < LEAST for line in lines):
            raise Invalid(_("Each line needs %(num)s characters or more.") % {"num": LEAST}, field="words")
        if any(len(line) > LONGEST for line in lines):
            raise Invalid(_("A line can have at most %(num)s characters.") % {"num": f"{LONGEST:,}"}, field="words")
        if any(line.casefold() in MARK for line in lines):
            raise Invalid(
                _("“%(mark)s” is the mark that stays, so no part of it can be taken out.") % {"mark": MARK},
                field="words",
            )
        return cls(lines)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self.phrases, key=len, reverse=True)
        return re.compile("|".join(_SPACE.join(map(_spelt, one.split())) for one in longest), re.IGNORECASE)

    def are_in(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def without(self, text: str) -> str:
        return self._pattern.sub(MARK, text)

    def without_json(self, text: str) -> str:
        """Return a JSON text with the mark in their place in its texts; the same text where it has none of them."""
        value = json.loads(text)
        after = self._replaced(value)
        return text if after == value else json.dumps(after, ensure_ascii=False, separators=(",", ":"))

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.without(value)
        if isinstance(value, list):
            return [self._replaced(one) for one in value]
        if isinstance(value, dict):
            return {name: self._replaced(one) for name, one in value.items()}
        return value


@dataclass(frozen=True)
class RedactedTicket:
    """The ticket that words are taken out of: its `number`, and the `moments` at which something was written in it,
    stamps in order, by which rows that tell of it are found."""

    number: int
    words: SecretWords
    moments: tuple[str, ...]

    @property
    def subject(self) -> str:
        return f"ticket/{self.number}"


def _spelt(word: str) -> str:
    """Return a pattern of a word in each way in which its letters may be composed, escaped in Markdown or not."""
    spellings = dict.fromkeys((word, normalize("NFC", word), normalize("NFD", word)))
    return f"(?:{'|'.join(''.join(map(_character, one)) for one in spellings)})"


def _character(char: str) -> str:
    return (r"\\?" if char in punctuation else "") + re.escape(char)


Redact = Callable[[TenantContext, RedactedTicket], int]


def elsewhere() -> Iterator[tuple[str, Redact]]:
    """Yield, by the name of each holding beside the tickets that has texts of them, the function that takes words out
    of it and returns out of how many items."""
    for holding, module in holdings.texts().items():
        redact: Redact = import_module(module).redact
        yield holding, redact
