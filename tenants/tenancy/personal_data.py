"""Collect how packages find a person in what they store beside the tickets, and put another name there.

A package that stores names, addresses or texts of people says so beside the holding, by `declare_people`.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from django.utils.translation import gettext as _

from portal.schema import holdings, keys
from tenants.tenancy.context import TenantContext

_T = TypeVar("_T")


# Not part of a local part here, though it may be in the standard: characters that stand around addresses far more often
# than in them, such as "=", "/", "'" and "*".
_WORD: Final = r"[^\W_]"  # a letter or a digit: an address begins with one, and so does each name of its domain
_LOCAL: Final = rf"(?<!{_WORD}){_WORD}(?:[\w+-]|\.(?!\.)){{0,63}}+"
_NEXT_NAME: Final = rf"(?:-(?:{_WORD}|-){{0,62}}(?<!-))?\."  # what leads to one more name of the domain
# The last name has letters alone, two of them at least. What an "@" follows is rather part of the next address.
_NAMES: Final = rf"{_WORD}++(?:{_NEXT_NAME}{_WORD}++)*{_NEXT_NAME}[^\W\d_]{{2,}}(?!{_WORD})"
_DOMAIN: Final = rf"(?:{_NAMES}(?!@{_WORD})|{_NAMES})"
_ADDRESS: Final = rf"{_LOCAL}@{_DOMAIN}"

_AT: Final = re.compile("@|\uff20|%40|&#|&commat;", re.IGNORECASE)  # without one of them there is no address
_SPELLED: Final = re.compile(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,31});|%[2-7][0-9a-f]|\\[!-/:-@\[-`{-~]|[\uff01-\uff5e]", re.IGNORECASE
)
_FULL_WIDTH: Final = 0xFEE0  # from an ASCII character to the one of full width


@dataclass(frozen=True)
class MailAddress:
    """An address that is looked for in texts, folded."""

    text: str

    def mentions(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the address stands in a text, in whatever case: begin and end."""
        if "@" in self.text and not _AT.search(text):
            return
        plain = _PlainText.of(text)
        for found in self._pattern.finditer(plain.text):
            if found[0].casefold() == self.text:
                yield plain.place(found.start(), found.end())

    def is_in(self, text: str) -> bool:
        return next(self.mentions(text), None) is not None

    def replaced(self, text: str, name: str) -> str:
        parts, reached = [], 0
        for begin, end in self.mentions(text):
            parts += [text[reached:begin], name]
            reached = end
        return "".join((*parts, text[reached:]))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Return what finds all addresses. One of another form, such as `a@b`, is looked for by its letters first."""
        if re.fullmatch(_ADDRESS, self.text):
            return re.compile(_ADDRESS)
        before, behind = rf"(?<!{_WORD})(?<!{_WORD}[.+_-])", rf"(?!{_WORD})(?!{_NEXT_NAME}{_WORD})"
        return re.compile(rf"(?:{before}(?i:{re.escape(self.text)}){behind})|(?:{_ADDRESS})")


@dataclass(frozen=True)
class _PlainText:
    """A text in which each character is written as itself. Of each stretch, one character that was written otherwise or
    many that were not: where it begins here and in the text as it was, and where it ends there."""

    text: str
    begins: list[int]
    stretches: list[tuple[int, int, bool]]

    @classmethod
    def of(cls, text: str) -> _PlainText:
        parts: list[str] = []
        begins: list[int] = []
        stretches: list[tuple[int, int, bool]] = []
        length = reached = 0

        def add(part: str, begin: int, end: int, *, is_whole: bool) -> None:
            nonlocal length, reached
            begins.append(length)
            stretches.append((begin, end, is_whole))
            parts.append(part)
            length, reached = length + len(part), end

        for found in _SPELLED.finditer(text):
            if found.start() > reached:
                add(text[reached : found.start()], reached, found.start(), is_whole=False)
            add(_plain(found[0]), found.start(), found.end(), is_whole=True)
        add(text[reached:], reached, len(text), is_whole=False)
        return cls("".join(parts), begins, stretches)

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """Return where in the text as it was a part of this one stands, which is not empty."""
        return self._there(begin)[0], self._there(end - 1)[1]

    def _there(self, position: int) -> tuple[int, int]:
        index = bisect_right(self.begins, position) - 1
        begin, end, is_whole = self.stretches[index]
        if is_whole:
            return begin, end
        at = begin + position - self.begins[index]
        return at, at + 1


def _plain(spelled: str) -> str:
    if spelled[0] == "&":
        return html.unescape(spelled)
    if spelled[0] == "%":
        return chr(int(spelled[1:], 16))
    return spelled[1] if spelled[0] == "\\" else chr(ord(spelled) - _FULL_WIDTH)


@dataclass(frozen=True)
class DeskPerson:
    """Somebody as a desk knows them: by address, by the `user_ids` that it has had, and by the name of the account or
    of the requester. The ids are those of accounts and of requesters outside the desk.

    `trail_rows` is how many rows of the audit trail name them, and `trail_shown` in how many of those the address is
    read: since an erasure, or in all where there was none. `erased_as` is the pseudonym's name where an erasure
    has begun, and `erased_at` the stamp of when the last one was recorded; "" and none stand for what is not known.
    """

    address: str
    user_ids: tuple[str, ...] = ()
    name: str = ""
    trail_rows: int = 0
    trail_shown: int = 0
    erased_as: str = ""
    erased_at: str = ""

    @classmethod
    def load(cls, told: dict[str, Any]) -> DeskPerson:
        """Return what `asdict` made, also where it was JSON meanwhile. Raises ValueError for what another version has
        made."""
        return cls(**{**of_this_form(cls, told), "user_ids": tuple(told["user_ids"])})

    @cached_property
    def mail(self) -> MailAddress:
        return MailAddress(self.address)

    @property
    def accounts(self) -> tuple[str, ...]:
        """The ids of accounts, each of which may be a member's."""
        return tuple(one for one in self.user_ids if keys.USER_ID.match(one))

    @property
    def requesters(self) -> tuple[str, ...]:
        """The ids of the requester, and of those who were merged into them."""
        return tuple(one for one in self.user_ids if not keys.USER_ID.match(one))

    def is_who(self, user_id: str) -> bool:
        """Tell whether an id, "" for nobody, is one of this person's."""
        return user_id in self.user_ids


def of_this_form(kind: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return what was told of a dataclass, which has been to a browser and back. Raises ValueError where that is not
    exactly what it has: between the pages another version of the portal may have come."""
    if not isinstance(told, dict) or told.keys() != {field.name for field in fields(kind)}:
        raise ValueError(f"this is no {kind.__name__} of this version")
    return told


@dataclass(frozen=True)
class PersonalPlace:
    """One place.

    `number` is a ticket's, 0 outside of tickets; `sort` the sort key of the item. `is_text` says that it is a text that
    people wrote, of which `excerpt` shows what is around the address. Places marked `stays` are shown, and neither
    replaced by an erasure nor counted."""

    kind: str
    number: int = 0
    sort: str = ""
    is_text: bool = False
    excerpt: str = ""
    stays: bool = False

    def __str__(self) -> str:
        kind = _(self.kind)
        where = _("ticket %(number)s: %(what)s") % {"number": self.number, "what": kind} if self.number else kind
        return f"{where}: {self.excerpt}" if self.excerpt else where


@dataclass(frozen=True)
class NewName:
    """Say what stands in a person's place: the id and the name, and in place of which names, with `texts` also in
    place of the address in what people wrote."""

    person: DeskPerson
    pseudonym: str
    name: str
    names: Collection[str]
    texts: bool

    def replaces(self, places: Iterable[PersonalPlace]) -> list[PersonalPlace]:
        return [place for place in places if not place.stays and (self.texts or not place.is_text)]


@dataclass(frozen=True)
class PersonalData(Generic[_T]):
    """Say how a person is found in the items of a holding, and replaced.

    `read` returns the items that may name the person. `places` yields where one of them does: under an id, or one of
    the names by which the desk knows them. `replace` puts the new name into an item where there
    are places; it is None where all of them stay, or go when the erasure ends.
    """

    read: Callable[[TenantContext, DeskPerson], Iterable[_T]]
    places: Callable[[DeskPerson, Collection[str], _T], Iterable[PersonalPlace]]
    replace: Callable[[TenantContext, NewName, _T], object] | None = None


def personal_data() -> Iterator[PersonalData[Any]]:
    """Yield what is declared, by holding."""
    return (import_module(module).PEOPLE for module in holdings.people().values())
