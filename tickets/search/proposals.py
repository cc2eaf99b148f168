"""Make proposals of what the index has: which tickets may match, the most promising first.

A ticket is proposed where it has every word that the index was asked for and that was read to the end; of the others
the text decides. Its score grows with how rare each word is, with where and how often it stands there (the impact in
the posting) and with how new the ticket is. It is a guess, by which a few tickets are chosen to be read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tickets.search.index import postings
from tickets.search.index.postings import Places
from tickets.search.index_terms import AskedTerm
from tickets.search.lookup import RangeRead
from tickets.search.word_matcher import BEGINS, EXACT, FORM

_LEVEL: Final = 16  # one step of the impact in a posting
_LOWER: Final = {EXACT: 0, FORM: _LEVEL, BEGINS: 2 * _LEVEL}  # for words that are not spelt as they were typed
_PLACES: Final = 15
# How much a posting says, between 0 and 1, by its byte: the impact's levels are half powers of two.
_SATURATION: Final = 1.2
_GAIN: Final = [impact / (_SATURATION + impact) for byte in range(256) for impact in [2 ** ((byte >> 4) / 2) / 4]]
FEW: Final = 10  # tickets that lack nothing: where there are less, others are proposed as well
NEARLY: Final = 20
_OLDEST: Final = 0.6  # of the score of the newest ticket


@dataclass(frozen=True, slots=True)
class Proposal:
    """Hold a ticket that may match, its score, and where the index says that words stand."""

    number: int
    score: float
    places: Places


@dataclass(frozen=True)
class Proposals:
    """Hold all proposals, best first. `is_complete` says that no other ticket can match; `nearly` are the best of those
    that lack something, where few lack nothing."""

    best: list[Proposal]
    is_complete: bool
    nearly: list[Proposal]


@dataclass(frozen=True)
class TermRead:
    """Hold the postings of an asked term, and whether these are all; also for each term of the index by itself."""

    term: AskedTerm
    postings: Mapping[int, int]
    is_complete: bool
    by_term: Mapping[str, Mapping[int, int]]


def read_terms(terms: Sequence[AskedTerm], ranges: Iterable[RangeRead], *, with_notes: bool) -> list[TermRead]:
    """Decode what was read: `ranges` are those of the terms, in order."""
    found, left = [], iter(ranges)
    for term in terms:
        several = [next(left) for _ in term.ranges(with_notes=with_notes)]
        decoded: dict[bytes, list[Mapping[int, int]]] = defaultdict(list)
        for name, entry in (one for read in several for one in read.entries):
            if weight := term.weight(name, with_notes=with_notes):
                decoded[name].append(_lowered(_decoded(entry), _LOWER[weight], term.places))
        by_term = {name.decode(errors="replace"): postings.merged(ones) for name, ones in decoded.items()}
        merged = postings.merged(by_term.values())
        found.append(TermRead(term, merged, all(read.is_complete for read in several), by_term))
    return found


def propose(
    of_versions: Sequence[Sequence[TermRead]], *, tickets: int, among: Collection[int] | None = None, newest_first: bool
) -> Proposals:
    """Return the proposals: terms by version of the tokenizer, `tickets` is how many there are.

    Each part of the query must hold by the terms of some version. `among` leaves out all other tickets.
    """
    narrowing = _narrowing(of_versions)
    if narrowing:
        numbers = set.intersection(*sorted(narrowing.values(), key=len))
    else:  # all were cut off: any ticket with the rarest of them
        numbers = {*min((read.postings for reads in of_versions for read in reads), key=len, default={})}
    if among is not None:
        numbers &= {*among}
    reads = _different(of_versions)
    best = _ranked(numbers, reads, tickets, newest_first=newest_first)
    nearly: list[Proposal] = []
    if len(best) < FEW and len(narrowing) > 1:
        others = set.union(*narrowing.values()) - numbers
        others = others if among is None else others & {*among}
        nearly = _ranked(others, reads, tickets, newest_first=False)[:NEARLY]
    return Proposals(best, bool(narrowing), nearly)


def _ranked(numbers: Collection[int], reads: Sequence[TermRead], tickets: int, *, newest_first: bool) -> list[Proposal]:
    """Score these tickets by what the index says of them."""
    scores: dict[int, float] = dict.fromkeys(numbers, 0.0)
    places: dict[int, int] = dict.fromkeys(numbers, 0)
    for read in reads:
        rarity = _rarity(len(read.postings), tickets)
        few, many = (scores, read.postings) if len(scores) < len(read.postings) else (read.postings, scores)
        for number in [one for one in few if one in many]:
            byte = read.postings[number]
            scores[number] += rarity * _GAIN[byte]
            places[number] |= byte & _PLACES
    newest = max(1, tickets)
    ranked = [
        (number if newest_first else round(score * (_OLDEST + (1 - _OLDEST) * min(1, number / newest)), 6), number)
        for number, score in scores.items()
    ]
    ranked.sort(reverse=True)
    return [Proposal(number, score, Places(places[number])) for score, number in ranked]


def _narrowing(of_versions: Sequence[Sequence[TermRead]]) -> dict[int, set[int]]:
    """Return the tickets of each part of the query that narrows the search down, in every version."""
    parts: dict[int, set[int]] = {}
    free: set[int] = set()
    wanted = {read.term.part for reads in of_versions for read in reads}
    for reads in of_versions:
        for part in wanted:
            telling = [r for r in reads if r.term.part == part and r.is_complete and not r.term.only_ranks]
            if telling:
                telling.sort(key=lambda r: len(r.postings))
                parts.setdefault(part, set()).update(
                    set(telling[0].postings).intersection(*(r.postings for r in telling[1:]))
                )
            else:
                free.add(part)
    return {part: numbers for part, numbers in parts.items() if part not in free}


def _different(of_versions: Sequence[Sequence[TermRead]]) -> list[TermRead]:
    """Leave out terms that another version asks for as well."""
    return list({read.term: read for reads in of_versions for read in reads}.values())


def _decoded(entry: bytes) -> Mapping[int, int]:
    """Decode an entry; one that was tampered with has no tickets."""
    try:
        return postings.decode(entry)
    except (IndexError, ValueError):
        return {}


def _lowered(decoded: Mapping[int, int], by: int, places: Places | None) -> Mapping[int, int]:
    if places is not None:
        decoded = {number: byte for number, byte in decoded.items() if byte & places}
    if not by:
        return decoded
    return {number: byte - by if byte >= by + _LEVEL else byte & _PLACES for number, byte in decoded.items()}


def _rarity(having: int, tickets: int) -> float:
    """Return how much a word says, in half powers of two, so that a few new tickets leave the order as it is."""
    return 2 ** (round(2 * math.log2(math.log(2 + tickets / (having + 1)))) / 2)


def rarities(of_versions: Sequence[Sequence[TermRead]], tickets: int) -> dict[int, float]:
    """Return for each part of the query how much it says: as much as the rarest of its words."""
    found: dict[int, float] = {}
    for read in _different(of_versions):
        if not read.term.only_ranks:
            rarity = _rarity(len(read.postings), tickets)
            found[read.term.part] = max(rarity, found.get(read.term.part, 0.0))
    return found
