"""Count each record exactly once: in the item RECENT, through which all changes go, and which remembers what it took.

A batch of one stream shard is added to RECENT by one UpdateItem, and so is the *mark* of that shard: the last sequence
number taken from it. The update holds only if the mark is absent or smaller than the first record of the batch. So a
batch that comes again, or overlaps with one that was applied, is refused by the item itself.

A *merge* moves the counts on to the items that hold them for good, and prunes the marks that are no longer needed:
those of shards whose position, "everything up to here is applied", has passed them. An applier that finds no mark of
its shard therefore reads that position and drops the records up to it. It has to do so after it has read RECENT, and
the number of merges so far must stand still until its update, which is a part of the update's condition: a merge in
between may have pruned a mark that the applier had never seen. So an applier that was asleep with an old batch is
refused by the number of merges, or it sees the position. A process without knowledge of the tenant tries without
reading: that succeeds if RECENT has the mark, or if there is no RECENT.

The reasoning is checked in tests/counting/test_exactly_once_model.py, against every interleaving that Hypothesis finds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from portal import clock
from tickets.counting import coding, leaders
from tickets.counting.leaders import Outside

VERSION: Final = "version"  # grows with every write of the item
MERGES: Final = "merges"
AT: Final = "applied_at"
CORRECTION: Final = "correction"  # the token of the last correction by a rebuild
GENERATION: Final = "generation"
_MARK: Final = "s"
_USUAL_SHARD: Final = "shardId-"
_ALPHABET: Final = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # sorted as text is
_WIDTH: Final = 23  # of a sequence number of 40 digits in this alphabet


@dataclass(frozen=True)
class Tail:
    """Where the counts of people and tags lie that are no leaders; see tail_counts.py.

    `generation` names the pages, "" for none. Runs are numbered by the merges that wrote them, those from `runs_from`
    on are not in the pages yet. Sizes are in bytes, `new_bytes` that of the runs since the leaders were chosen.
    `people` and `tags` say what is known of those who are no leaders.
    """

    generation: str = ""
    runs_from: int = 1
    run_bytes: int = 0
    page_bytes: int = 0
    new_bytes: int = 0
    people: Outside = field(default_factory=Outside)
    tags: Outside = field(default_factory=Outside)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Tail:
        numbers = coding.numbers(raw)
        run_bytes, page_bytes, new_bytes = (numbers.get(name, 0) for name in _TAIL_NUMBERS[1:])
        generation, runs_from = raw.get(GENERATION, {}).get("S", ""), numbers.get("runs_from", 1)
        tail = cls(generation, runs_from, run_bytes, page_bytes, new_bytes)
        if tail.is_empty:
            return tail
        return replace(tail, people=_outside(raw.get("people")), tags=_outside(raw.get("tags")))

    def item(self) -> dict[str, Any]:
        """Return the attributes to store."""
        generation = {GENERATION: {"S": self.generation}} if self.generation else {}
        said = {"people": _typed_outside(self.people), "tags": _typed_outside(self.tags)}
        outside = {} if self.is_empty else said
        return {**coding.typed({name: getattr(self, name) for name in _TAIL_NUMBERS}), **outside, **generation}

    @property
    def is_empty(self) -> bool:
        return not (self.run_bytes or self.page_bytes)


@dataclass(frozen=True)
class Recent:
    """RECENT as it was read, with what is known beside it.

    `counts` are by code. `marks` are by the name that `mark_name` gives a shard. `floors`, likewise, are sequences that
    are known to be applied under this very number of merges: positions, or marks that this process has pruned itself.
    `kept` are the marks that the last merge could not prune, where this process has made it.
    """

    version: int = 0
    merges: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    tail: Tail = field(default_factory=Tail)
    applied_at: str = ""
    correction: str = ""
    floors: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()

    @classmethod
    def of(cls, raw: Mapping[str, Any], *, floors: Mapping[str, str] | None = None) -> Recent:
        """Read the stored item, {} for none."""
        numbers = coding.numbers(raw)
        return cls(
            version=numbers.get(VERSION, 0),
            merges=numbers.get(MERGES, 0),
            counts={name: n for name, n in numbers.items() if coding.decode(name)},
            marks={name: value["S"] for name, value in raw.items() if is_mark(name)},
            tail=Tail.of(raw),
            applied_at=raw.get(AT, {}).get("S", ""),
            correction=raw.get(CORRECTION, {}).get("S", ""),
            floors=floors or {},
        )

    def after(self, raw: Mapping[str, Any]) -> Recent:
        """Return the item as read later. Other values stay valid while the number of merges is unchanged."""
        read = Recent.of(raw)
        return replace(read, floors=self.floors, kept=self.kept) if read.merges == self.merges else read

    def floor(self, mark: str) -> str | None:
        """Return the sequence up to which this tenant's records of the shard are applied, None where it has to be
        asked.

        Before the first merge no mark was ever pruned, so one that is not there never was.
        """
        known = [source[mark] for source in (self.marks, self.floors) if mark in source]
        return max(known) if known else None if self.merges else ""

    def knowing(self, mark: str, sequence: str) -> Recent:
        return replace(self, floors={**self.floors, mark: sequence})

    def item(self) -> dict[str, Any]:
        """Return the attributes to store, without the key."""
        marks = {name: {"S": sequence} for name, sequence in self.marks.items()}
        texts = {name: {"S": text} for name, text in ((AT, self.applied_at), (CORRECTION, self.correction)) if text}
        numbers = {VERSION: self.version, MERGES: self.merges, **self.counts}
        return {**coding.typed(numbers), **marks, **self.tail.item(), **texts}


_TAIL_NUMBERS: Final = ("runs_from", "run_bytes", "page_bytes", "new_bytes")
_LETTERS: Final = "oprc"  # of the statuses


def _typed_outside(some: Outside) -> dict[str, Any]:
    numbers = (some.bound, some.least, some.most, some.floor, *(some.tickets.get(letter, 0) for letter in _LETTERS))
    return {"S": " ".join(map(str, numbers))}


def _outside(value: Mapping[str, Any] | None) -> Outside:
    if value is None or "S" not in value:
        return leaders.UNKNOWN
    bound, least, most, floor, *tickets = map(int, value["S"].split())
    return Outside(bound, least, most, floor, dict(zip(_LETTERS, tickets, strict=True)))


# --- marks ---


def mark_name(stream_arn: str, shard_id: str) -> str:
    """Return the attribute that holds the mark of a shard: some engines give every stream a shard of the same id."""
    return f"{_stream(stream_arn)}{_shortened(shard_id)}"


def marked_shard(stream_arn: str, mark: str) -> str | None:
    """Return the id of the shard whose mark has this name, None where it is another stream's."""
    prefix = _stream(stream_arn)
    rest = mark[len(prefix) + 1 :]
    return None if not mark.startswith(prefix) else _USUAL_SHARD + rest if mark[len(prefix)] == "~" else rest


def is_mark(attribute: str) -> bool:
    return attribute.startswith(_MARK) and attribute[5:6] in ("~", "=")


def _stream(arn: str) -> str:
    return _MARK + hashlib.blake2b(arn.encode(), digest_size=2).hexdigest()


def _shortened(shard_id: str) -> str:
    usual = shard_id.startswith(_USUAL_SHARD)
    return f"~{shard_id[len(_USUAL_SHARD) :]}" if usual else f"={shard_id}"


def packed(sequence: str) -> str:
    """Return a padded sequence number as a mark holds it: shorter, in the same order. Raises ValueError for other
    text."""
    if not sequence.isascii() or not sequence.isdigit() or len(sequence) > 40:
        raise ValueError("a sequence number has up to 40 digits")
    number, digits = int(sequence), []
    for _ in range(_WIDTH):
        number, digit = divmod(number, 64)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


# --- the update ---


def addition(state: Recent | None, mark: str, *, first: str, last: str, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the request that adds counts by code to RECENT, and sets the shard's mark, if RECENT stands as in `state`.

    `first` and `last` are the packed sequences of the records that it stands for. Where nothing is known of RECENT
    (None) it holds if there is none, or if the shard's mark is there and smaller: a mark that is there says all,
    however many merges there were.
    """
    added = [(f"#c{i}", f":c{i}", name, n) for i, (name, n) in enumerate(sorted(counts.items()))]
    adds = ", ".join(["#version :one", *(f"{name} {value}" for name, value, _, _ in added)])
    condition, names, values = _stands(state)
    values |= {
        ":one": {"N": "1"}, ":last": {"S": last}, ":first": {"S": first}, ":now": {"S": clock.stamp()},
        **{value: {"N": str(n)} for _, value, _, n in added},
    }  # fmt: skip
    return {
        "UpdateExpression": f"SET #mark = :last, #at = :now ADD {adds}",
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {
            "#mark": mark, "#at": AT, "#version": VERSION, **names,
            **{placeholder: name for placeholder, _, name, _ in added},
        },
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }  # fmt: skip


def _stands(state: Recent | None) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Return the condition of an addition, with the names and values that it takes."""
    if state is None:
        return "attribute_not_exists(#version) OR #mark < :first", {}, {}
    values = {":merges": {"N": str(state.merges)}} if state.merges else {}
    merges = "#merges = :merges" if state.merges else "attribute_not_exists(#merges)"
    return f"{merges} AND (attribute_not_exists(#mark) OR #mark < :first)", {"#merges": MERGES}, values
