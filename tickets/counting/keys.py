"""Form the keys of aggregates and dead letters."""

from __future__ import annotations

import re
from typing import Final

from portal.schema import keys

VERIFIED: Final = "VERIFIED"  # sorts behind all aggregates
_AGGREGATE: Final = "AGGREGATE"
ALL_AGGREGATES: Final = keys.of_any_tenant(_AGGREGATE)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def aggregate(tenant_id: str) -> str:
    """Partition key of what the stream worker maintains: `totals`, `tags` and `day` are its sort keys."""
    return keys.collection(tenant_id, _AGGREGATE)


def totals(epoch: int) -> str:
    """Sort key of the counts of all tickets. An epoch begins with each rebuild; readers add all of them up."""
    return keys.joined("TOTALS", keys.whole_number(epoch, "an epoch"))


def tags(epoch: int) -> str:
    """Sort key of the counts by tag."""
    return keys.joined("TAGS", keys.whole_number(epoch, "an epoch"))


def day(date: str, epoch: int) -> str:
    """Sort key of what happened on one day, "2026-11-20" in UTC."""
    if not _DAY.match(date):
        raise ValueError("a day is written as 2026-11-20")
    return keys.joined("DAY", date, keys.whole_number(epoch, "an epoch"))


def first_day(date: str) -> str:
    """The bound from which on a Query meets the days from this one on, then the totals and tags, and no more days."""
    return day(date, 0)


def aggregate_parts(sort_key: str) -> tuple[str, str, int] | None:
    """Kind ("TOTALS", "TAGS" or "DAY"), date ("" where there is none) and epoch; None for another sort key."""
    kind, *parts = keys.split(sort_key)
    if kind not in ("TOTALS", "TAGS", "DAY") or len(parts) != 1 + (kind == "DAY") or not parts[-1].isdigit():
        return None
    return kind, "".join(parts[:-1]), int(parts[-1])


def letter(sequence: str, aggregate_key: str) -> str:
    """Sort key of a dead letter: a padded sequence number, and the one aggregate it is about, "" for all of them."""
    return keys.labelled(sequence, aggregate_key) if aggregate_key else sequence


def settled_letters(stream: str) -> str:
    """Partition key of what remembers that dead letters of this stream were replayed or dropped."""
    return f"{stream}/SETTLED"
