"""Values of custom fields: how ids say their types, in which text tickets store them, how filters compare them.

A field keeps its type for ever, and its id begins with it: `number_3`. So a value is checked, compared and sent without
the definitions of its desk (tickets/custom_fields), and stays readable whatever becomes of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.errors import Invalid
from portal.web import locales

TEXT_LIMIT: Final = 200  # characters of a text, and of a choice
DIGITS: Final = 15  # of a number, before the point and behind it together
YES: Final = "yes"  # a checkbox that is ticked; one that is not has no value
MOST_IDS: Final = 99  # ids of one type that a desk can give
_RANGE: Final = ".."


class FieldType(StrEnum):
    """The type of a custom field."""

    TEXT = "text"  # one line
    NUMBER = "number"
    CHOICE = "choice"
    DATE = "date"
    CHECKBOX = "checkbox"

    @property
    def label(self) -> str:
        return _(_TYPES[self]).capitalize()

    @property
    def has_order(self) -> bool:
        """Tell whether values can be asked for as a range."""
        return self in (FieldType.NUMBER, FieldType.DATE)


_TYPES: Final = {
    FieldType.TEXT: gettext_noop("text"),
    FieldType.NUMBER: gettext_noop("number"),
    FieldType.CHOICE: gettext_noop("choice"),
    FieldType.DATE: gettext_noop("date"),
    FieldType.CHECKBOX: gettext_noop("checkbox"),
}
FIELD_ID: Final = re.compile(rf"({'|'.join(FieldType)})_([1-9][0-9]?)\Z")
KIND_ID: Final = re.compile(r"kind_[1-9][0-9]?\Z")
GROUP_ID: Final = re.compile(r"group_[1-9][0-9]?\Z")


def is_field_id(text: str) -> bool:
    """Tell whether a text has the form of a custom field's id."""
    return FIELD_ID.match(text) is not None


def type_of(field_id: str) -> FieldType:
    """Return the type that an id names. Raises Invalid for what is no id."""
    found = FIELD_ID.match(field_id)
    if found is None:
        raise Invalid(_("There is no such field."), field=field_id[:40])
    return FieldType(found[1])


def has_words(field_id: str) -> bool:
    """Tell whether the words of a value are searched for beside other words: a tick has none."""
    found = FIELD_ID.match(field_id)
    return found is not None and found[1] != FieldType.CHECKBOX


def cleaned(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values by the ids of their fields as tickets store them, "" for one that is to be empty. Raises Invalid
    with the id of the field."""
    return {field_id: clean(field_id, value) for field_id, value in values.items()}


def clean(field_id: str, value: Any) -> str:
    """Return a value as tickets store it, "" for none. Raises Invalid.

    A choice is taken as it is: which ones are offered, the desk's definitions say.
    """
    kind = type_of(field_id)
    if kind is FieldType.CHECKBOX:
        return _checked(field_id, value)
    text = "" if value is None else plain_text.line(str(value))
    if not text:
        return ""
    if kind is FieldType.NUMBER:
        return _number(field_id, text)
    if kind is FieldType.DATE:
        return _day(field_id, text)
    return locales.within(text, TEXT_LIMIT, field_id)


def _checked(field_id: str, value: Any) -> str:
    word = {True: YES, False: "", None: ""}.get(value) if isinstance(value, bool | None) else str(value).lower()
    if word in (YES, "on", "true", "1"):
        return YES
    if word in ("", "no", "off", "false", "0"):
        return ""
    raise Invalid(_("Use yes or no."), field=field_id)


def _number(field_id: str, text: str) -> str:
    sentence = _("Enter a number such as 12 or 12.5, of at most %(digits)s digits.") % {"digits": DIGITS}
    problem = Invalid(sentence, field=field_id)
    try:
        number = Decimal(text.replace("\u2212", "-")) if re.fullmatch(r"[-+\u2212]?[0-9.]{1,40}", text) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise problem
    plain = format(number, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    if sum(character.isdigit() for character in plain) > DIGITS:
        raise problem
    return "0" if plain in ("-0", "") else plain


def _day(field_id: str, text: str) -> str:
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise Invalid(_("Enter a day as 2026-11-20."), field=field_id)


# --- filters ---


@dataclass(frozen=True, slots=True)
class CustomFilter:
    """A filter by one field: a value, or for numbers and days also a range with both ends included, of which "" is
    open."""

    field_id: str
    first: str
    last: str

    @classmethod
    def parse(cls, field_id: str, text: str) -> CustomFilter:
        """Read a value, or for numbers and days also `10..20`, `10..` and `..20`. Raises Invalid."""
        kind = type_of(field_id)
        first, dots, last = text.partition(_RANGE) if kind.has_order else (text, "", "")
        if kind is FieldType.CHECKBOX:
            return cls(field_id, *[_checked(field_id, text) or "no"] * 2)
        ends = [clean(field_id, end) for end in (first, last if dots else first)]
        if not any(ends):
            raise Invalid(_("Enter a value, or for a range one of its ends."), field=field_id)
        found = cls(field_id, *ends)
        if all(ends) and kind.has_order and found._key(ends[0]) > found._key(ends[1]):
            raise Invalid(_("This range ends before it begins."), field=field_id)
        return found

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first}{_RANGE}{self.last}"

    @property
    def is_one_value(self) -> bool:
        """Tell whether tickets with one value are asked for, and not a range of them, or those without a value."""
        return self.first == self.last != "no" or (self.first == self.last and self.field_id.startswith("text"))

    def takes(self, values: Mapping[str, str]) -> bool:
        """Tell whether a ticket with these values is asked for."""
        value = values.get(self.field_id) or ""
        kind = type_of(self.field_id)
        if kind is FieldType.CHECKBOX:
            return (value or "no") == self.first
        if not value:
            return False
        if not kind.has_order:
            return value.casefold() == self.first.casefold()
        key = self._key(value)
        return (not self.first or key >= self._key(self.first)) and (not self.last or key <= self._key(self.last))

    def _key(self, value: str) -> Any:
        return Decimal(value) if type_of(self.field_id) is FieldType.NUMBER else value
