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
# What Markdown writes around words, and the address behind a link's or picture's name.
_MARKUP: Final = re.compile(
    r"```[\w+-]*|`|\*\*(?=\S)|(?<=\S)\*\*|(?<!\w)__(?=\w)|(?<=\w)__(?!\w)|(?m:^ {0,3}(?:#{1,6} +|(?:> ?)+))"
    r"|!?\[(?=[^\[\]\n]{0,200}\]\([^()\s]{1,400}\))|\]\([^()\s]{1,400}\)"
)
# One asterisk or underscore is markup where another one ends what it begins: not in 2*3 or in snake_case.
_EMPHASIS: Final = re.compile(r"(?<![\w*\\])([*_])(?=[^\s*_])[^*_\n]{0,200}(?<=[^\s*_])\1(?![\w*])")
_IN_MARKDOWN: Final = (Where.DESCRIPTION, Where.COMMENT, Where.NOTE)
_AROUND: Final = 400  # characters of a snippet's surroundings that are looked at for markup that reaches into it
# Where a snippet is taken from, if several texts have as many of the words.
_ORDER: Final = (Where.DESCRIPTION, Where.COMMENT, Where.NOTE, Where.TAGS, Where.CUSTOM, Where.REQUESTER)


def title(match: TicketMatch) -> tuple[Piece, ...]:
    places = [place for one in match.fields if one.where is Where.TITLE for place in one.places]
    text = match.text.summary.title
    return tuple(_pieces(text, places, 0, len(text)))


def snippet(match: TicketMatch) -> tuple[tuple[Piece, ...], FieldMatch | None]:
    """Return the stretch of a text that has most of what was sought, and that text.

    Nothing, and None, where no text but the title has any of it.
    """
    others = [one for one in match.fields if one.where is not Where.TITLE]
    if not others:
        return (), None
    best = max(others, key=lambda one: (_different(one.places), -_ORDER.index(one.where)))
    start, end = _stretch(best)
    markup, places = _markup(best, start, end) if best.where in _IN_MARKDOWN else ([], best.places)
    pieces = list(_pieces(best.text, places, start, end, markup))
    if start:
        pieces.insert(0, Piece(_ELLIPSIS, is_match=False))
    if end < len(best.text):
        pieces.append(Piece(_ELLIPSIS, is_match=False))
    return tuple(pieces), best


def _different(places: Sequence[Occurrence]) -> int:
    return len({place.phrase for place in places})


def _stretch(one: FieldMatch) -> tuple[int, int]:
    """Return the bounds of the stretch with most different phrases, at ends of words."""
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


def _markup(one: FieldMatch, start: int, end: int) -> tuple[list[tuple[int, int]], list[Occurrence]]:
    """Return the bounds of markup that is not shown, and the places that are: an address is, where nothing else has a
    word."""
    near = max(0, start - _AROUND), end + _AROUND
    markup = [found.span() for found in _MARKUP.finditer(one.text, *near)]
    for found in _EMPHASIS.finditer(one.text, *near):
        markup += [(found.start(), found.start() + 1), (found.end() - 1, found.end())]
    markup.sort()
    inside = [place for place in one.places if start <= place.start and place.end <= end]
    clear = [place for place in inside if not any(_touches(span, place) for span in markup)]
    if _different(clear) == _different(inside):
        return markup, clear
    return [span for span in markup if not any(_touches(span, place) for place in inside)], inside


def _touches(span: tuple[int, int], place: Occurrence) -> bool:
    """Tell whether a place would lose more than markup between its words."""
    apart = span[1] <= place.start or place.end <= span[0]
    return not apart and not place.start < span[0] < span[1] < place.end


def _pieces(
    text: str, places: Sequence[Occurrence], start: int, end: int, hidden: Sequence[tuple[int, int]] = ()
) -> Iterator[Piece]:
    """Yield the text between the bounds without what is hidden, cut where what was sought begins and ends."""
    at = start
    for place in places:
        if place.start < at or place.end > end:
            continue
        yield from _piece(_shown(text, at, place.start, hidden), is_match=False)
        yield from _piece(_shown(text, place.start, place.end, hidden), is_match=True)
        at = place.end
    yield from _piece(_shown(text, at, end, hidden), is_match=False)


def _shown(text: str, start: int, end: int, hidden: Sequence[tuple[int, int]]) -> str:
    shown, at = [], start
    for first, last in hidden:
        if first < end and last > at:
            shown.append(text[at : max(at, first)])
            at = last
    return "".join([*shown, text[at:end]])


def _piece(text: str, *, is_match: bool) -> Iterator[Piece]:
    if text:
        yield Piece(_SPACES.sub(" ", text), is_match)
