"""Take what people wrote in a ticket apart into fragments: the terms of one text in one place.

An image is a stored item as the engine writes it, {"title": {"S": "..."}}. A planted value of another type counts as no
text: a search can at worst miss it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from portal.streams.batch import Record
from tickets.search import tokenizer
from tickets.search.index import postings
from tickets.search.index.postings import Places
from tickets.ticket import stored

Raw = Mapping[str, Any]

COMMENT: Final = "comment"
NOTE: Final = "note"
_NUMBERS: Final = 1 << 63  # no ticket has a greater one, and none can be planted


@dataclass(frozen=True)
class Fragment:
    """One text of a ticket: how often each term is in it. Terms of an internal note are kept apart from all others."""

    number: int
    place: Places
    is_note: bool
    terms: Mapping[str, int]


def tag_term(tag: str) -> str:
    """Return the reserved term of a tag: no word begins so."""
    return f"=tag:{tag}"


def requester_term(user_id: str) -> str:
    """Return the reserved term of the person for whom a ticket was opened."""
    return f"=from:{user_id}"


def concerns_search(record: Record) -> bool:
    """Tell by its key whether a record may change what is found."""
    sort_key = record.keys.get("sk")
    return sort_key in (stored.SUMMARY, stored.DETAIL) or str(sort_key).startswith(stored.ACTIVITY_PREFIX)


def of_summary(image: Raw) -> list[Fragment]:
    """Return title and labels of a summary; [] for the image of no ticket."""
    return [*_of_title(image), *_of_labels(image)]


def of_detail(image: Raw) -> list[Fragment]:
    """Return the description of a ticket."""
    return _fragments(image, Places.DESCRIPTION, tokenizer.terms(_text(image, "description")))


def of_activity(image: Raw) -> list[Fragment]:
    """Return a comment or an internal note; [] for an event of the history."""
    kind = _text(image, "kind")
    if kind not in (COMMENT, NOTE):
        return []
    return _fragments(image, Places.COMMENT, tokenizer.terms(_text(image, "body")), is_note=kind == NOTE)


def of_change(record: Record) -> list[Fragment]:
    """Return the fragments whose text a record has changed. Of what is gone there is none: nothing is removed here."""
    new, old = record.typed_new, record.typed_old or {}
    if new is None or not concerns_search(record):
        return []
    sort_key = record.keys["sk"]
    if sort_key == stored.SUMMARY:
        title = _of_title(new) if _differ(new, old, "title") else []
        labels = _of_labels(new) if _differ(new, old, "tags", "requester", "requester_name") else []
        return [*title, *labels]
    if sort_key == stored.DETAIL:
        return of_detail(new) if _differ(new, old, "description") else []
    return of_activity(new) if _differ(new, old, "kind", "body") else []


def inverted(fragments: Iterable[Fragment]) -> list[tuple[bytes, dict[int, int]]]:
    """Return for each term, in order, the postings that these fragments add."""
    found: dict[bytes, list[dict[int, int]]] = defaultdict(list)
    for fragment in fragments:
        length = len(fragment.terms)
        for word, times in fragment.terms.items():
            term = word.encode(errors="replace")
            term = postings.noted(term) if fragment.is_note else term
            found[term].append({fragment.number: postings.posting(fragment.place, times, length)})
    return [(term, postings.merged(found[term])) for term in sorted(found)]


def _of_title(image: Raw) -> list[Fragment]:
    return _fragments(image, Places.TITLE, tokenizer.terms(_text(image, "title")))


def _of_labels(image: Raw) -> list[Fragment]:
    """Return the words of tags and of the requester's name, and both as reserved terms."""
    tags = [tag for value in _list(image, "tags") if (tag := _text({"tag": value}, "tag"))]
    requester = _text(image, "requester")
    terms = dict(tokenizer.terms("\n".join([*tags, _text(image, "requester_name")])))
    terms |= {tag_term(tag): 1 for tag in tags} | ({requester_term(requester): 1} if requester else {})
    return _fragments(image, Places.LABEL, terms)


def _fragments(image: Raw, place: Places, terms: Mapping[str, int], *, is_note: bool = False) -> list[Fragment]:
    owner = stored.owner_of(_text(image, "pk"))
    return [Fragment(owner[1], place, is_note, terms)] if owner and owner[1] < _NUMBERS and terms else []


def _differ(new: Raw, old: Raw, *names: str) -> bool:
    return any(new.get(name) != old.get(name) for name in names)


def _text(image: Raw, name: str) -> str:
    value = image.get(name)
    text = value.get("S") if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""


def _list(image: Raw, name: str) -> list[Any]:
    value = image.get(name)
    values = value.get("L") if isinstance(value, Mapping) else None
    return values if isinstance(values, list) else []
