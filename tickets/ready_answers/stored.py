"""Declare how ready answers are stored: their table, keys, items and holdings.

All answers of a desk are in one partition. Each has its text, a row in the list of its owner by the shortcut, which is
so nobody else's, and a row for each word that it is found by. So what is typed is found by reading a few rows, however
many answers there are. The owner of a shared answer is the desk.

The table is not placed: changes are written with rows of the audit trail, and no transaction spans two placements. How
often an answer was used is counted beside the tickets, in the transaction of the comment.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding, declare_people
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, counter

READY_ANSWERS = Table("Support.ReadyAnswers", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS)

# --- keys ---

DESK: Final = "DESK"  # the owner of shared answers
_TEXT: Final = "TEXT"
_ROW: Final = "ROW"
_WORD: Final = "WORD"
_USES: Final = "ANSWER"
TEXTS: Final = keys.beginning(_TEXT)
_ID: Final = re.compile(r"r([ap])_[0-9a-f]{32}\Z")


def new_id(*, shared: bool) -> str:
    """Return a fresh id of an answer, which says whether it is shared."""
    return f"r{'a' if shared else 'p'}_{uuid.uuid4().hex}"


def is_shared(answer_id: str) -> bool:
    """Tell whether an id is that of a shared answer. Raises ValueError for what is no id of an answer."""
    match = _ID.match(answer_id)
    if not match:
        raise ValueError("this is no id of a ready answer")
    return match[1] == "a"


def answers(tenant_id: str) -> str:
    """Return the partition key of a desk's answers."""
    return keys.collection(tenant_id, "ANSWERS")


def text(owner: str, answer_id: str) -> str:
    """Return the sort key of an answer's text."""
    return keys.joined(_TEXT, owner, answer_id)


def texts_of(owner: str) -> str:
    """Return the beginning of the sort keys of somebody's texts."""
    return keys.beginning(_TEXT, owner)


def row(owner: str, shortcut: str) -> str:
    """Return the sort key of an answer's row in the list of its owner."""
    return keys.joined(_ROW, owner, shortcut)


def rows_of(owner: str) -> str:
    """Return the beginning of the sort keys of somebody's list."""
    return keys.beginning(_ROW, owner)


def word(owner: str, folded_word: str, answer_id: str) -> str:
    """Return the sort key of an answer under one of its words."""
    return keys.joined(_WORD, owner, folded_word, answer_id)


def words_like(owner: str, beginning: str) -> str:
    """Return the beginning of the sort keys of somebody's words that begin so."""
    return keys.beginning(_WORD, owner) + beginning


def uses(answer_id: str) -> str:
    """Return the sort key, among the counters of a desk, of how often an answer was used."""
    return keys.joined(_USES, answer_id)


_NO_WORD: Final = re.compile(r"[^\w-]+")


def words(text: str) -> list[str]:
    """Return the words of a text as answers are found by them, each once: without accents, case and punctuation."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return list(dict.fromkeys(one for one in _NO_WORD.sub(" ", plain).split() if one.strip("-_")))


declare(
    READY_ANSWERS,
    grants=(
        Grant("tenant", READY_ANSWERS, ("BatchGetItem", "GetItem", "Query")),
        Grant("platform", READY_ANSWERS, ("DeleteItem", "PutItem", "UpdateItem")),
    ),
)


# --- items ---


class ReadyAnswerItem(Item):
    """A ready answer with its text in Markdown. `version` grows with each change.

    `status`, `tags` and `resolver` are what it changes in a ticket with the comment: "" and none leave these as they
    are, and the resolver "me" stands for whoever uses it.
    """

    table = READY_ANSWERS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    answer_id = UnicodeAttribute()
    owner = UnicodeAttribute()
    title = UnicodeAttribute()
    shortcut = UnicodeAttribute()
    body = UnicodeAttribute()
    status = UnicodeAttribute(default="")
    tags: ListAttribute[Any] = ListAttribute(default=list)
    resolver = UnicodeAttribute(default="")
    version = NumberAttribute(default=1)
    changed_at = UnicodeAttribute()


class ReadyAnswerRow(Item):
    """An answer in a list, or under one of its words, without its text."""

    table = READY_ANSWERS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    answer_id = UnicodeAttribute()
    owner = UnicodeAttribute()
    title = UnicodeAttribute()
    shortcut = UnicodeAttribute()


class WordRow(ReadyAnswerRow):
    """The same under one of its words."""

    word = UnicodeAttribute()


class UsesItem(Item):
    """The number of comments that an answer was used in, each counted in the transaction that wrote it."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    uses = NumberAttribute(default=0)


# --- holdings ---


def _stored(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(READY_ANSWERS, answers(reader.tenant_id))


def _counts(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, counter(reader.tenant_id), begins_with=keys.beginning(_USES))


def _forms() -> tuple[RowForm, ...]:
    def of_text(tenant_id: str, item: Raw) -> tuple[str, str]:
        return answers(tenant_id), text(_text(item, "owner"), _text(item, "answer_id"))

    def of_row(tenant_id: str, item: Raw) -> tuple[str, str]:
        return answers(tenant_id), row(_text(item, "owner"), _text(item, "shortcut"))

    def of_word(tenant_id: str, item: Raw) -> tuple[str, str]:
        return answers(tenant_id), word(_text(item, "owner"), _text(item, "word"), _text(item, "answer_id"))

    texts: dict[str, row_forms.Check] = {
        "status": lambda value: value in ("", *Status),
        "tags": row_forms.texts,
        "resolver": lambda value: value in ("", "me") or keys.USER_ID.match(value),
        **row_forms.moments("changed_at"),
    }
    return (
        RowForm(ReadyAnswerItem, of_text, begins=TEXTS, checks=texts, whole=_owner),
        RowForm(ReadyAnswerRow, of_row, begins=keys.beginning(_ROW), whole=_owner),
        RowForm(WordRow, of_word, begins=keys.beginning(_WORD), whole=_owner),
    )


def _text(item: Raw, name: str) -> str:
    return str(item[name]["S"])


def _owner(tenant_id: str, item: Raw) -> str:
    """Say what is wrong with the owner of an answer, "" for nothing."""
    owner = _text(item, "owner")
    fits = owner == DESK if is_shared(_text(item, "answer_id")) else keys.USER_ID.match(owner)
    return "" if fits else "has an owner that does not fit its id"


def _count_forms() -> tuple[RowForm, ...]:
    def of_uses(tenant_id: str, item: Raw) -> tuple[str, str]:
        _, answer_id = keys.split(_text(item, "sk"))
        is_shared(answer_id)
        return counter(tenant_id), uses(answer_id)

    return (RowForm(UsesItem, of_uses, begins=keys.beginning(_USES)),)


declare_holding(
    Holding("ready answers", (READY_ANSWERS,), _stored, Stage.OWN, forms=_forms),
    Holding("uses of ready answers", (TICKETS,), _counts, Stage.OWN, forms=_count_forms),
)
declare_people("ready answers", "tickets.ready_answers.answer_people")


declare_keys(READY_ANSWERS, {"ready answer": "TENANT#<tenant>|ANSWERS, <part>"})
