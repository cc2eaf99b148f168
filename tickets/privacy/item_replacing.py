"""Replace one person in the items of a ticket: what each has afterwards, and how much of it one transaction takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from portal.dynamo.meter import item_size
from portal.dynamo.repository import ITEM_LIMIT, Action
from tickets.privacy import personal_places
from tickets.privacy.beside_tickets import NewName
from tickets.privacy.desk_person import Raw
from tickets.ticket import stored
from tickets.ticket.stored import ActivityItem, ChangeMap, DetailItem, SummaryItem

_MEMBERS: Final = 40  # of one transaction beside the summary
_BYTES: Final = 3_000_000  # of them; AWS takes 4 MB in one transaction
_PARTS: Final = ("author", "requester", "resolver")

Values = dict[str, Any]  # by attribute: a text, the tags, or what an entry tells of each field


@dataclass(frozen=True)
class ReplacedItem:
    """An item as it was read, with the values that it has afterwards. `is_shortened` says that its texts have no room
    for the whole name of the pseudonym, so that a shorter one is in them."""

    raw: Raw
    values: Values
    is_shortened: bool

    @property
    def model(self) -> Any:
        sort = self.raw["sk"]["S"]
        return {stored.SUMMARY: SummaryItem, stored.DETAIL: DetailItem}.get(sort, ActivityItem)

    @cached_property
    def size(self) -> int:
        """Return the bytes that it has afterwards."""
        return item_size(self.raw | {name: _typed(value) for name, value in self.values.items()})

    @property
    def update(self) -> tuple[Any, list[Action]]:
        """Return the item to be changed, and what is to be set in it."""
        model = self.model
        actions = [getattr(model, name).set(_stored(value)) for name, value in self.values.items()]
        return model(self.raw["pk"]["S"], self.raw["sk"]["S"]), actions


def replaced(new: NewName, raw: Raw) -> ReplacedItem | None:
    """Return an item of a ticket with the pseudonym in place of the person, None where nothing of it changes.

    In texts stands the longest of its names with which the item is not larger than it may be: the last one is no longer
    than any address.
    """
    digits = new.name.rpartition(" ")[2]
    for name in (new.name, f"Erased {digits}", digits, "*"):
        found = ReplacedItem(raw, _values(new, raw, name), is_shortened=name != new.name)
        if not found.values:
            return None
        if found.size <= ITEM_LIMIT:
            break
    return found


def first_of(items: list[ReplacedItem]) -> tuple[list[ReplacedItem], list[ReplacedItem]]:
    """Return the first items, as many as one transaction takes, and the others."""
    size = many = 0
    for one in items[:_MEMBERS]:
        size += one.size
        if many and size > _BYTES:
            break
        many += 1
    return items[:many], items[many:]


def _values(new: NewName, raw: Raw, name: str) -> Values:
    values: Values = {}
    for part in _PARTS:
        if new.person.is_who(_text(raw, part)):
            values |= {part: new.pseudonym, f"{part}_name": new.name}
    if "resolver" in values:
        values["resolver_updated"] = stored.resolver_updated(new.pseudonym, _text(raw, "updated_at"))
        if raised_at := _text(raw, "raised_at"):
            values["resolver_raised"] = stored.resolver_updated(new.pseudonym, raised_at)
    if new.person.is_who(_text(raw, "former_resolver")):
        values["former_resolver"] = new.pseudonym
    told = personal_places.changes_of(raw)
    if (changes := [_change(new, name, **one) for one in told]) != told:
        values["changes"] = changes
    return values | (dict(_written(new, raw, name)) if new.texts else {})


def _written(new: NewName, raw: Raw, name: str) -> Iterator[tuple[str, str | list[str]]]:
    """Yield what people wrote with the address in it, by attribute, as it is without the address."""
    others = [f"{part}_name" for part in personal_places.others_shown(new.person, raw)]
    for attribute, text in (personal_places.texts_of(raw) | {one: _text(raw, one) for one in others}).items():
        if (without := new.person.mail.replaced(text, name)) != text:
            yield attribute, without
    tags = personal_places.tags_of(raw)
    if (new_tags := [new.person.mail.replaced(tag, _tag(name)) for tag in tags]) != tags:
        yield "tags", [*dict.fromkeys(new_tags)]


def _change(new: NewName, name: str, field: str, before: str = "", after: str = "") -> dict[str, str]:
    """Return what an entry tells of one field, with the new name: of an assignee by the name alone."""
    values = {"before": before, "after": after}
    if field == "resolver":
        values = {when: new.name if text in new.names else text for when, text in values.items()}
    if new.texts:
        shown = _tag(name) if field == "tags" else name
        values = {when: new.person.mail.replaced(text, shown) for when, text in values.items()}
    return {"field": field, **values}


def _tag(name: str) -> str:
    return name.lower().replace(" ", "-")


def _text(raw: Raw, name: str) -> str:
    return str(raw.get(name, {}).get("S", ""))


def _stored(value: Any) -> Any:
    """Return a value as an attribute takes it."""
    if isinstance(value, list):
        return [one if isinstance(one, str) else ChangeMap(**one) for one in value]  # type: ignore[no-untyped-call]
    return value


def _typed(value: Any) -> Raw:
    """Return a value as DynamoDB gives it."""
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, dict):
        return {"M": {name: _typed(one) for name, one in value.items()}}
    return {"L": [_typed(one) for one in value]}
