"""Cut out of a ticket's texts what shows best why it was found, with the words marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tickets.search.results import Piece, Where
from tickets.search.text_match import FieldMatch, Occurrence, TicketMatch

LENGTH: Final = 180  # characters of a snippet, about
_BEFORE: Final = 40  # of them in front of the first word
_ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
_SPACES: Final = re.compile(r"\s+")
# Where a snippet is taken from, if several texts have as many of the words.
_ORDER: Final = (Where.DESCRIPTION, Where.COMMENT, Where.NOTE, Where.TAGS, Where.REQUESTER)


def title(match: TicketMatch) -> tuple[Piece, ...]:
    """Return the title in pieces."""
    places = [place for one in match.fields if one.where is Where.TITLE for place in one.places]
    text = match.text.title
    return tuple(_pieces(text, places, 0, len(text)))


def snippet(match: TicketMatch) -> tuple[tuple[Piece, ...], Where]:
    """Return the stretch of a text that has most of what was sought, and where it stands.

    Nothing, and the title, where no other text has any of it.
    """
    others = [one for one in match.fields if one.where is not Where.TITLE]
    if not others:
        return (), Where.TITLE
    best = max(others, key=lambda one: (_different(one.places), -_ORDER.index(one.where)))
    start, end = _stretch(best)
    pieces = list(_pieces(best.text, best.places, start, end))
    if start:
        pieces.insert(0, Piece(_ELLIPSIS, is_match=False))
    if end < len(best.text):
        pieces.append(Piece(_ELLIPSIS, is_match=False))
    return tuple(pieces), best.where


def _different(places: Sequence[Occurrence]) -> int:
    return len({place.phrase for place in places})


def _stretch(one: FieldMatch) -> tuple[int, int]:
    """The bounds of the stretch with most different phrases, at ends of words."""
    text, places = one.text, one.places
    if len(text) <= LENGTH:
        return 0, len(text)
    room = LENGTH - _BEFORE
    best, last = (0, 0), 0
    for at, first in enumerate(places):
        last = max(last, at)
        while last + 1 < len(places) and places[last + 1].end <= first.start + room:
            last += 1
        inside = (_different(places[at : at + 50][: last - at + 1]), -at)
        best = max(best, (*inside,), key=lambda pair: pair) if at else inside
    first = places[-best[1]]
    start = max(0, first.start - _BEFORE)
    end = min(len(text), max(first.end, start + LENGTH))
    if start and (space := text.find(" ", start, first.start)) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", first.end, end)) >= 0:
        end = space
    return start, end


def _pieces(text: str, places: Sequence[Occurrence], start: int, end: int) -> Iterator[Piece]:
    """The text between the bounds, cut where what was sought begins and ends."""
    at = start
    for place in places:
        if place.start < at or place.end > end:
            continue
        yield from _piece(text[at : place.start], is_match=False)
        yield from _piece(text[place.start : place.end], is_match=True)
        at = place.end
    yield from _piece(text[at:end], is_match=False)


def _piece(text: str, *, is_match: bool) -> Iterator[Piece]:
    if text:
        yield Piece(_SPACES.sub(" ", text), is_match)
