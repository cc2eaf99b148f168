"""Take what people wrote in a ticket apart into fragments: the terms of one text in one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from portal.schema import keys
from portal.streams.batch import Record
from tickets.search import tokenizer
from tickets.search.index import postings
from tickets.search.index.postings import Places
from tickets.ticket import custom_values, stored
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, DetailItem, SummaryItem

COMMENT: Final = "comment"
NOTE: Final = "note"
_NUMBERS: Final = 1 << 63  # no ticket has a greater one, and none can be planted
_WHOLE_VALUE: Final = 40  # characters of a custom field's value that is a term as it is
_LABELS: Final = ("tags", "custom", "requester", "requester_name")
_SEARCHED: Final = ("title", "description", "kind", "body", *_LABELS)


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


def custom_term(field_id: str, value: str) -> str:
    """Return the reserved term of a value of a custom field, of a long one by its digest."""
    folded = value.casefold()
    return f"={field_id}:{folded if len(folded) <= _WHOLE_VALUE else keys.digest(folded)}"


def requester_term(user_id: str) -> str:
    """Return the reserved term of the person for whom a ticket was opened."""
    return f"=from:{user_id}"


def concerns_search(record: Record) -> bool:
    """Tell by its key whether a record may change what is found."""
    sort_key = record.keys.get("sk")
    return sort_key in (stored.SUMMARY, stored.DETAIL) or str(sort_key).startswith(stored.ACTIVITY_PREFIX)


def of_change(record: Record) -> list[Fragment]:
    """Return the fragments whose text a record has changed. Of what is gone there is none: nothing is removed here."""
    new, old = record.typed_new, record.typed_old or {}
    if new is None or not concerns_search(record):
        return []
    changed = {name for name in _SEARCHED if new.get(name) != old.get(name)}
    return of_item(TICKET_ITEMS.from_raw_data({**new, "sk": {"S": record.keys["sk"]}}), changed) if changed else []


def of_item(item: SummaryItem | DetailItem | ActivityItem, changed: Iterable[str] = _SEARCHED) -> list[Fragment]:
    """Return the fragments of what is `changed` in an item of a ticket: of an event of the history none."""
    owner, found = stored.owner_of(str(item.pk)), {}
    match item:
        case SummaryItem():
            if "title" in changed:
                found[Places.TITLE] = tokenizer.terms(item.title or "")
            if not {*_LABELS}.isdisjoint(changed):
                found[Places.LABEL] = _labels(item)
        case DetailItem():
            found[Places.DESCRIPTION] = tokenizer.terms(item.description)
        case ActivityItem(kind="comment" | "note"):
            found[Places.COMMENT] = tokenizer.terms(item.body)
    if owner is None or owner[1] >= _NUMBERS:
        return []
    is_note = isinstance(item, ActivityItem) and item.kind == NOTE
    return [Fragment(owner[1], place, is_note, terms) for place, terms in found.items() if terms]


def _labels(summary: SummaryItem) -> dict[str, int]:
    """Return the words of tags, of custom fields and of the requester's name, and each of them as a reserved term."""
    tags, custom = [tag for tag in summary.tags if tag], summary.custom
    words = [text for field_id, text in custom.items() if custom_values.has_words(field_id)]
    terms = tokenizer.terms("\n".join([*tags, *words, summary.requester_name or ""]))
    return (
        terms
        | {custom_term(field_id, text): 1 for field_id, text in custom.items()}
        | {tag_term(tag): 1 for tag in tags}
        | ({requester_term(summary.requester): 1} if summary.requester else {})
    )


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
