"""Declare the models of a tenant's aggregates. Their counts are attributes of their own, named by code (coding.py)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from typing import Any, Final, Self

from pynamodb.attributes import Attribute, NumberAttribute, UnicodeAttribute
from pynamodb.expressions.operand import Path

from portal.dynamo.client import Item
from portal.dynamo.meter import item_size
from portal.dynamo.models import Kinds
from portal.dynamo.store import Action, Store
from tickets.counting import coding, stored
from tickets.counting.contributions import Counts, Kind, Part
from tickets.counting.leaders import UNKNOWN, Outside
from tickets.counting.stored import VerifiedItem
from tickets.ticket.stored import TICKETS

MARK: Final = "s"  # begins the names of marks
_LETTERS: Final = "oprc"  # of the statuses


class AggregateItem(Item):
    """Any item beside a tenant's aggregates: base of those that hold counts, and the model of what readers pass by."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)


class AnswerItem(AggregateItem):
    """The worker's answer to a barrier: it has met the marker, at this place of the stream. It goes by TTL."""

    shard = UnicodeAttribute()
    sequence = UnicodeAttribute()
    expires_at = NumberAttribute()


class ReplayedItem(AggregateItem):
    """Says that a dead letter of a silo has been counted, by a replay that has not removed it yet."""

    applied_at = UnicodeAttribute()


class CountsItem(AggregateItem):
    """Counts by code: LEADERS, and the runs and pages of those who are no leaders."""

    counts: Counts

    def __init__(self, *key: Any, counts: Mapping[str, int] | None = None, **attributes: Any) -> None:
        super().__init__(*key, **attributes)
        self.counts = Counts(counts or {})

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return an instance made of a raw item: every number that is no attribute of the model is a count."""
        item, declared = super().from_raw_data(data), _declared(cls)
        item.counts = Counts({n: int(v["N"]) for n, v in data.items() if "N" in v and n not in declared})
        return item

    def serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        """Return the item as DynamoDB takes it."""
        return super().serialize(null_check) | {name: {"N": str(n)} for name, n in self.counts.items()}

    def changed(self, **attributes: Any) -> Self:
        """Return a copy with other attributes: instances are remembered, and never changed."""
        other = copy(self)
        other.attribute_values = dict(self.attribute_values)
        for name, value in attributes.items():
            setattr(other, name, value)
        return other

    @property
    def size(self) -> int:
        """Return the bytes that AWS counts for the item without its key."""
        return item_size({n: v for n, v in self.serialize().items() if n not in TICKETS.key_names})


@lru_cache
def _declared(model: type[CountsItem]) -> frozenset[str]:
    return frozenset(attribute.attr_name for attribute in model.get_attributes().values())


class PartItem(CountsItem):
    """TOTALS or a DAY of one epoch. Its counts are by `coding.short`.

    Says of its own part, and TOTALS of people and tags, which merge touched it last. `weeks_from` is the first week of
    TOTALS that is held by itself.
    """

    touched = NumberAttribute(attr_name="n", null=True)
    people_touched = NumberAttribute(attr_name="nP", null=True)
    tags_touched = NumberAttribute(attr_name="nG", null=True)
    weeks_from = UnicodeAttribute(attr_name="wf", null=True)

    @property
    def part(self) -> Part:
        kind, date, epoch = stored.aggregate_parts(self.sk) or ("", "", 0)
        return Part("DAY" if kind == "DAY" else "TOTALS", date, epoch)

    def last_touches(self) -> dict[Part, int]:
        """Return the last merge that touched each part of which this item says it."""
        part = self.part
        wide = {part._replace(kind=kind): getattr(self, TOUCHED[kind]) for kind in WIDE}
        return {part: int(self.touched or 0)} | {one: int(last) for one, last in wide.items() if last is not None}

    def by_name(self) -> Counts:
        """Return the counts by their names in contributions.py."""
        kind = self.part.kind
        return Counts({coding.long(kind, code): n for code, n in self.counts.items()})


WIDE: Final[tuple[Kind, ...]] = ("PEOPLE", "TAGS")  # kinds of parts of which a tenant may have any number of counts
TOUCHED: Final[Mapping[Kind, str]] = {
    "TOTALS": "touched", "DAY": "touched", "PEOPLE": "people_touched", "TAGS": "tags_touched",
}  # fmt: skip


class OutsideAttribute(Attribute[Outside]):
    """Store what is known of people, or tags, that are no leaders, as numbers in one text."""

    attr_type = "S"

    def serialize(self, value: Outside) -> str:
        """Return the text."""
        tickets = (value.tickets.get(letter, 0) for letter in _LETTERS)
        return " ".join(map(str, (value.bound, value.least, value.most, value.floor, *tickets)))

    def deserialize(self, value: str) -> Outside:
        """Read the text."""
        bound, least, most, floor, *tickets = map(int, value.split())
        return Outside(bound, least, most, floor, dict(zip(_LETTERS, tickets, strict=True)))

    def get_value(self, value: dict[str, Any]) -> str:
        """Take what an older version wrote, a number, for unknown."""
        return value.get("S") or self.serialize(UNKNOWN)


class Recent(CountsItem):
    """RECENT: the latest changes by code, and the marks of stream shards (exactly_once.py).

    `version` grows with every write, `merges` with every merge. `correction` is the token of the last correction by a
    rebuild. `marks` are by the name that `exactly_once.mark_name` gives a shard. Kept in memory only: `floors`,
    likewise, are sequences that are known to be applied under this very number of merges, by positions or marks that
    this process has pruned itself; `kept` are the marks that the last merge could not prune.

    The counts of people and tags that are no leaders lie in the pages of `generation`, "" for none, and in the runs of
    the merges from `runs_from` on. `new_bytes` is the size of the runs since the leaders were chosen.
    """

    version = NumberAttribute(default=0)
    merges = NumberAttribute(default=0)
    applied_at = UnicodeAttribute(null=True)
    correction = UnicodeAttribute(null=True)
    generation = UnicodeAttribute(null=True)
    runs_from = NumberAttribute(default=1)
    run_bytes = NumberAttribute(default=0)
    page_bytes = NumberAttribute(default=0)
    new_bytes = NumberAttribute(default=0)
    people = OutsideAttribute(null=True)
    tags = OutsideAttribute(null=True)

    marks: Mapping[str, str]
    floors: Mapping[str, str]
    kept: frozenset[str]

    def __init__(self, *key: Any, **attributes: Any) -> None:
        super().__init__(*key, **attributes)
        self.marks, self.floors, self.kept = {}, {}, frozenset()

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return an instance made of a raw item."""
        item = super().from_raw_data(data)
        item.marks = {name: value["S"] for name, value in data.items() if is_mark(name)}
        item.floors, item.kept = {}, frozenset()
        return item

    def serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        """Return the item as DynamoDB takes it."""
        return super().serialize(null_check) | {name: {"S": sequence} for name, sequence in self.marks.items()}

    def learnt(self, former: Recent | None) -> Recent:
        """Return the same with what was known of RECENT before: valid while the number of merges is unchanged."""
        if former is None or former.merges != self.merges:
            return self
        return self.changed(floors=former.floors, kept=former.kept)

    def floor(self, mark: str) -> str | None:
        """Return the sequence up to which this tenant's records of the shard are applied, None where it has to be
        asked.

        Before the first merge no mark was ever pruned, so one that is not there never was.
        """
        known = [source[mark] for source in (self.marks, self.floors) if mark in source]
        return max(known) if known else None if self.merges else ""

    def knowing(self, mark: str, sequence: str) -> Recent:
        return self.changed(floors={**self.floors, mark: sequence})

    @property
    def has_tail(self) -> bool:
        """Tell whether there are people or tags that are no leaders."""
        return bool(self.run_bytes or self.page_bytes)

    def outside(self, family: str) -> Outside:
        """Return what is known of those of a family, "P" or "G", that are no leaders."""
        return ((self.people if family == "P" else self.tags) or UNKNOWN) if self.has_tail else Outside()

    def holds(self, item: CountsItem) -> bool:
        """Tell whether a run or page is current: others belong to the past, or to a compaction that came too late."""
        if item.sk.startswith(stored.RUNS):
            return stored.run_number(item.sk) >= self.runs_from
        return bool(self.generation) and item.sk.startswith(stored.pages(self.generation))


def is_mark(attribute: str) -> bool:
    return attribute.startswith(MARK) and attribute[5:6] in ("~", "=")


# What a Query of the aggregates' partition gives.
AGGREGATES: Final = Kinds[AggregateItem | VerifiedItem](
    {
        "": AggregateItem, "TOTALS": PartItem, "DAY": PartItem, stored.LEADERS: CountsItem, stored.RECENT: Recent,
        stored.RUNS: CountsItem, stored.pages(): CountsItem, stored.VERIFIED: VerifiedItem,
    }
)  # fmt: skip


def blank(store: Store) -> Recent:
    """Return RECENT of a tenant of which nothing is counted yet; also its key, for an update."""
    return Recent(store.key(stored.aggregate), stored.RECENT)


def recent(store: Store) -> Recent:
    """Read RECENT consistently."""
    return store.get(Recent, stored.aggregate, sort=stored.RECENT, consistent=True) or blank(store)


# --- updates ---


class _Named(Path):
    """An attribute by its name. PynamoDB takes brackets in a name, such as a tag's, for an index."""

    def _serialize_value(self, value: list[str], placeholder_names: dict[str, str], _: dict[str, str]) -> str:
        return placeholder_names.setdefault(value[0], f"#{len(placeholder_names)}")


def named(attribute: str) -> Path:
    """Return an attribute for an action or a condition, by its name."""
    return _Named([attribute])


def adding(counts: Mapping[str, int]) -> list[Action]:
    """Return the actions that add counts by code to RECENT."""
    return [Recent.version.add(1), *(named(code).add(n) for code, n in sorted(counts.items()))]
