"""Choose and rank tickets: first by what the index says of all, then by the texts of the best.

Texts are ranked by BM25 over weighted fields, then freshness, neighbourhood and open work. Source: Robertson, Zaragoza
and Taylor, "Simple BM25 extension to multiple weighted fields", 2004.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from portal import clock
from tickets.search.index.postings import Places
from tickets.search.index_lookup import TermRead
from tickets.search.results import Where
from tickets.search.text_match import TicketMatch
from tickets.ticket.fields import UNRESOLVED

# How much a posting says, between 0 and 1, by its byte: the impact's levels are half powers of two.
_SATURATION: Final = 1.2
_GAIN: Final = [impact / (_SATURATION + impact) for byte in range(256) for impact in [2 ** ((byte >> 4) / 2) / 4]]
FEW: Final = 10  # tickets that lack nothing: where there are less, others are proposed as well
NEARLY: Final = 20
_NUMBER_BITS: Final = 40  # of a rank
_EXACTNESS: Final = 1_000_000  # steps of a score
_OLDEST: Final = 0.6  # of the score of the newest ticket


def number_of(rank: int) -> int:
    """Return the ticket of a rank: a rank is the score and, below it, the number. So no two tickets have the same, and
    the newer one goes first."""
    return rank & (1 << _NUMBER_BITS) - 1


@dataclass(frozen=True)
class Proposals:
    """Hold the ranks of all proposals, best first. `is_complete` says that no other ticket can match; `nearly` are the
    best of those that lack something, where few lack nothing."""

    best: list[int]
    is_complete: bool
    nearly: list[int]


def counted(reads: Sequence[TermRead], tickets: int) -> list[int]:
    """Return the counts that ranks depend on: how many tickets there are, and how many have each word."""
    return [tickets, *(len(read.postings) for read in reads)]


def propose(
    reads: Sequence[TermRead], *, counts: Sequence[int], among: Collection[int] | None = None, newest_first: bool
) -> Proposals:
    """Return the proposals, of which each part of the query must hold; `counts` are those of `counted`.

    `among` leaves out all other tickets.
    """
    narrowing = _narrowing(reads)
    if narrowing:
        numbers = set.intersection(*sorted(narrowing.values(), key=len))
    else:  # all were cut off: any ticket with the rarest of them
        numbers = {*min((read.postings for read in reads), key=len, default={})}
    if among is not None:
        numbers &= {*among}
    best = _ranked(numbers, reads, counts, newest_first=newest_first)
    nearly: list[int] = []
    if len(best) < FEW and len(narrowing) > 1:
        others = set.union(*narrowing.values()) - numbers
        others = others if among is None else others & {*among}
        nearly = _ranked(others, reads, counts, newest_first=False)[:NEARLY]
    return Proposals(best, bool(narrowing), nearly)


def may_be_in_comments(reads: Sequence[TermRead], part: int, number: int) -> bool:
    """Tell whether a part of the query may stand in a ticket's comments or notes, for all that the index knows."""
    return all(
        read.postings.get(number, 0) & Places.COMMENT
        for read in reads
        if read.term.part == part and read.is_complete and not read.term.only_ranks
    )


def is_in_comments(reads: Sequence[TermRead], part: int, number: int, *, is_word: bool) -> bool:
    """Tell whether the index has a part of the query, as one word or as a whole, in a ticket's comments or notes."""
    return any(
        read.postings.get(number, 0) & Places.COMMENT
        for read in reads
        if read.term.part == part and (is_word or read.term.only_ranks)
    )


def _ranked(
    numbers: Collection[int], reads: Sequence[TermRead], counts: Sequence[int], *, newest_first: bool
) -> list[int]:
    """Rank these tickets by what the index says of them, or by their numbers."""
    if newest_first:
        return sorted((number << _NUMBER_BITS | number for number in numbers), reverse=True)
    scores: dict[int, float] = dict.fromkeys(numbers, 0.0)
    tickets, *having = counts
    for read, number_having in zip(reads, having, strict=True):
        rarity = _rarity(number_having, tickets)
        gains = [rarity * gain for gain in _GAIN]
        few, many = (scores, read.postings) if len(scores) < len(read.postings) else (read.postings, scores)
        for number in [one for one in few if one in many]:
            scores[number] += gains[read.postings[number]]
    freshness = (1 - _OLDEST) / max(1, tickets)
    ranks = [
        int(_EXACTNESS * score * (_OLDEST + freshness * number)) << _NUMBER_BITS | number
        for number, score in scores.items()
    ]
    ranks.sort(reverse=True)
    return ranks


def _narrowing(reads: Sequence[TermRead]) -> dict[int, set[int]]:
    """Return the tickets of each part of the query that narrows the search down."""
    telling: dict[int, list[TermRead]] = defaultdict(list)
    for read in sorted(reads, key=lambda read: len(read.postings)):
        if read.is_complete and not read.term.only_ranks:
            telling[read.term.part].append(read)
    return {
        part: set(fewest.postings).intersection(*(one.postings for one in more))
        for part, (fewest, *more) in telling.items()
    }


def _rarity(having: int, tickets: int) -> float:
    """Return how much a word says, in half powers of two, so that a few new tickets leave the order as it is."""
    return 2 ** (round(2 * math.log2(math.log(2 + tickets / (having + 1)))) / 2)


def rarities(reads: Sequence[TermRead], counts: Sequence[int]) -> dict[int, float]:
    """Return for each part of the query how much it says: as much as the rarest of its words."""
    found: dict[int, float] = {}
    tickets, *having = counts
    for read, number_having in zip(reads, having, strict=True):
        if not read.term.only_ranks:
            rarity = _rarity(number_having, tickets)
            found[read.term.part] = max(rarity, found.get(read.term.part, 0.0))
    return found


# --- ranks of tickets whose texts are known ---


_K1: Final = 1.2
_B: Final = 0.75
# Of each field its weight, and how many words are usual in it.
_FIELDS: Final = {
    Where.TITLE: (6.0, 12),
    Where.TAGS: (3.0, 2),
    Where.CUSTOM: (3.0, 2),
    Where.REQUESTER: (3.0, 2),
    Where.DESCRIPTION: (2.0, 60),
    Where.COMMENT: (1.0, 100),
    Where.NOTE: (1.0, 100),
}
_NEIGHBOURS: Final = 1.15  # times: words of the query follow each other, as they were typed
_OPEN: Final = 1.1  # times: somebody still works on it
_FRESH: Final = 0.15  # of the score depends on when the ticket changed last
_HALF_LIFE: Final = 90  # days


def score(match: TicketMatch, rarities: Mapping[int, float], now: datetime) -> float:
    """Return how good a match is, from 0. `rarities` say by phrase how much it tells; 1 where that is not known."""
    weighted: dict[int, float] = defaultdict(float)
    for one in match.fields:
        weight, usual = _FIELDS[one.where]
        share = weight / (1 - _B + _B * match.words[one.where] / usual)
        for place in one.places:
            weighted[place.phrase] += place.weight * share
    sum_ = sum(rarities.get(phrase, 1.0) * times / (_K1 + times) for phrase, times in weighted.items())
    has_neighbours = any(
        second.phrase == first.phrase + 1 and first.end < second.start <= first.end + 2
        for one in match.fields
        for first, second in pairwise(one.places)
    )
    summary = match.text.summary
    days = max(0.0, (now - clock.parse(summary.updated_at)).total_seconds() / 86_400)
    standing = (_OPEN if summary.status in UNRESOLVED else 1.0) * (1 - _FRESH + _FRESH * 0.5 ** (days / _HALF_LIFE))
    return float(sum_ * (_NEIGHBOURS if has_neighbours else 1.0) * standing)
