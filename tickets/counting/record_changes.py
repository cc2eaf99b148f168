"""Take a batch of stream records apart: who changed, and by how much. Pure functions, without the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from portal.streams.batch import Image, Record, plain
from tickets.counting import coding, contributions, stored
from tickets.counting.contributions import Contribution, Counts
from tickets.ticket.stored import SUMMARY, owner_of

REASON_LIMIT: Final = 300  # characters


@dataclass(frozen=True)
class Change:
    """The effect of one record on its tenant's aggregates: it adds counts by code, or cannot be counted and says why.

    `marker` is the sort key under which a barrier wants to hear that it was here, "" for all other records.
    """

    sequence: str
    record: Record = field(repr=False)
    counts: Counts = field(default_factory=Counts)
    reason: str = ""
    marker: str = ""


def concerns_counting(record: Record) -> bool:
    """Tell whether anything is done about a record. The filter of the Lambda function says the same."""
    return record.keys.get("sk") in (SUMMARY, stored.MARKER)


def by_tenant(records: Iterable[Record]) -> tuple[dict[str, list[Change]], int]:
    """Return the changes of each tenant in the order of the stream, and how many records were about summaries.

    Those that change no number, and that open pages need not hear of, are left out. A record that names no tenant is
    under "".
    """
    changes: dict[str, list[Change]] = defaultdict(list)
    events, known = 0, _Contributions()
    for record in records:
        if marker := stored.marker_of(record.keys):
            tenant_id, seen_key = marker
            if record.new is not None:
                changes[tenant_id].append(Change(record.sequence, record, marker=seen_key))
        elif record.keys.get("sk") == SUMMARY:
            events += 1
            owner = owner_of(str(record.keys.get("pk", "")))
            if owner is None:
                changes[""].append(Change(record.sequence, record, reason="The partition key is no ticket's."))
            elif change := _change(record, known):
                changes[owner[0]].append(change)
    return dict(changes), events


class _Contributions:
    """Look at each image once: the new one of a change is mostly the old one of the ticket's next change."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[Image, Contribution]] = {}  # of each ticket, by partition key

    def old(self, pk: str, typed: Image | None) -> Contribution:
        newest = self._newest.get(pk)
        return newest[1] if newest and newest[0] == typed else _contribution(typed)

    def new(self, pk: str, typed: Image | None) -> Contribution:
        contribution = _contribution(typed)
        if typed is not None:
            self._newest[pk] = typed, contribution
        return contribution


def _contribution(typed: Image | None) -> Contribution:
    return contributions.contribution(plain(typed, contributions.COUNTED)) if typed is not None else {}


def _change(record: Record, known: _Contributions) -> Change | None:
    try:
        counts = counted(record, known)
    except contributions.UNCOUNTABLE as error:
        return Change(record.sequence, record, reason=f"{type(error).__name__}: {error}"[:REASON_LIMIT])
    if counts:
        return Change(record.sequence, record, coding.coded(with_touches(counts)))
    return Change(record.sequence, record) if _is_news(record) else None


def _is_news(record: Record) -> bool:
    """Tell whether lists show the ticket at another place, such as a snoozed one: RECENT has another version then, by
    which open pages hear of it, although no number is another."""
    old, new = record.typed_old or {}, record.typed_new or {}
    return bool(new) and any(old.get(name) != new.get(name) for name in ("updated_at", "noted_at"))


def counted(record: Record, known: _Contributions | None = None) -> Contribution:
    """Return what a record changes, in counts. Raises one of UNCOUNTABLE."""
    known, pk = known or _Contributions(), record.keys.get("pk", "")
    old = known.old(pk, record.typed_old)
    return contributions.difference(known.new(pk, record.typed_new), old)


def with_touches(counts: Contribution) -> Contribution:
    """Add one touch to each part that moves, and return the same."""
    for some in counts.values():
        some[coding.TOUCHES] = 1
    return counts


def groups(changes: Iterable[Change], *, limit: int) -> Iterator[list[Change]]:
    """Yield the changes in order, in groups. Each has one change, or touches at most `limit` attributes and holds at
    most `limit` changes that cannot be counted."""
    group: list[Change] = []
    names: set[str] = set()
    for change in changes:
        dead = sum(bool(one.reason) for one in (*group, change)) if change.reason else 0
        if group and (len(names | change.counts.keys()) > limit or dead > limit):
            yield group
            group, names = [], set()
        group.append(change)
        names |= change.counts.keys()
    if group:
        yield group


def summed(changes: Iterable[Change]) -> Counts:
    """Add up the counts of several changes, without zeros."""
    total: Counts = Counts()
    for change in changes:
        total.update(change.counts)
    return Counts({name: n for name, n in total.items() if n})
