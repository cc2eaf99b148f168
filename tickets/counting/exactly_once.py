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
from typing import Final

from portal import clock
from portal.dynamo.store import Action, Condition
from tickets.counting.stored import MARK, Recent, adding, named

_USUAL_SHARD: Final = "shardId-"
_ALPHABET: Final = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # sorted as text is
_WIDTH: Final = 23  # of a sequence number of 40 digits in this alphabet


# --- marks ---


def mark_name(stream_arn: str, shard_id: str) -> str:
    """Return the attribute that holds the mark of a shard: some engines give every stream a shard of the same id."""
    return f"{_stream(stream_arn)}{_shortened(shard_id)}"


def marked_shard(stream_arn: str, mark: str) -> str | None:
    """Return the id of the shard whose mark has this name, None where it is another stream's."""
    prefix = _stream(stream_arn)
    rest = mark[len(prefix) + 1 :]
    return None if not mark.startswith(prefix) else _USUAL_SHARD + rest if mark[len(prefix)] == "~" else rest


def _stream(arn: str) -> str:
    return MARK + hashlib.blake2b(arn.encode(), digest_size=2).hexdigest()


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


def addition(
    state: Recent | None, mark: str, *, first: str, last: str, counts: Mapping[str, int]
) -> tuple[list[Action], Condition]:
    """Return the update that adds counts by code to RECENT and sets the shard's mark, if RECENT stands as in `state`.

    `first` and `last` are the packed sequences of the records that it stands for. Where nothing is known of RECENT
    (None) it holds if there is none, or if the shard's mark is there and smaller: a mark that is there says all,
    however many merges there were.
    """
    actions = [named(mark).set(last), Recent.applied_at.set(clock.stamp()), *adding(counts)]
    smaller: Condition = named(mark) < first
    if state is None:
        return actions, Recent.version.does_not_exist() | smaller
    return actions, as_merged(state) & (named(mark).does_not_exist() | smaller)


def as_merged(state: Recent) -> Condition:
    """Return the condition that no merge has taken place since RECENT was read."""
    return Recent.merges == state.merges if state.merges else Recent.merges.does_not_exist()
