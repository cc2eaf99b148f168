"""Rank tickets whose texts are known: BM25 over weighted fields, then freshness, neighbourhood and open work.

Source: Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", 2004.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from portal import clock
from tickets.counting.contributions import UNRESOLVED
from tickets.search.results import Where
from tickets.search.text_match import FieldMatch, TicketMatch
from tickets.search.ticket_texts import text_in

_K1: Final = 1.2
_B: Final = 0.75
# Of each field its weight, and how many words are usual in it.
_FIELDS: Final = {
    Where.TITLE: (6.0, 12),
    Where.TAGS: (3.0, 2),
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
    return sum_ * _neighbourhood(match.fields) * _standing(match, now)


def _neighbourhood(fields: Sequence[FieldMatch]) -> float:
    return _NEIGHBOURS if any(_has_neighbours(one) for one in fields) else 1.0


def _has_neighbours(one: FieldMatch) -> bool:
    """Tell whether a phrase of the query stands right in front of the next one."""
    return any(
        second.phrase == first.phrase + 1 and first.end < second.start <= first.end + 2
        for first, second in pairwise(one.places)
    )


def _standing(match: TicketMatch, now: datetime) -> float:
    """Say how much a ticket matters beside its words."""
    summary = match.text.raw_summary
    is_open = text_in(summary, "status") in UNRESOLVED
    try:
        days = max(0.0, (now - clock.parse(text_in(summary, "updated_at"))).total_seconds() / 86_400)
    except ValueError:
        days = math.inf
    return (_OPEN if is_open else 1.0) * (1 - _FRESH + _FRESH * math.pow(0.5, days / _HALF_LIFE))
