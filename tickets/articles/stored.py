"""Declare how articles are stored: their table, keys, items and holdings.

The partition of an article has its draft, the text that readers see, and each version that was published. The partition
of the help centre has, in the order of the sort keys: a row for each article, the centre's own item, and a card for
each published article, public ones first. A reader of the catalogue asks for the centre's item and what sorts behind
it, so that the cards are at least as new as the edition that the item names.

The table is not placed: changes are written with rows of the audit trail, and no transaction spans two placements.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pynamodb.attributes import BinaryAttribute, BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item, Kinds
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding, declare_people
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm

ARTICLES = Table("Support.Articles", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS)

# --- keys ---

DRAFT: Final = "DRAFT"
PUBLISHED: Final = "PUBLISHED"
CENTRE: Final = "CENTRE"
_VERSION: Final = "VERSION"
_ROW: Final = "ARTICLE"
_PUBLIC: Final = "PUBLIC"
_WITHIN: Final = "WITHIN"
_DIGITS: Final = 12
_WORDS_LIMIT: Final = 1024 * 1024  # bytes of an article's words, unpacked: those of the longest text have a fifth

VERSIONS: Final = keys.beginning(_VERSION)
ROWS: Final = keys.beginning(_ROW)
# Bounds, both included, of what the catalogue is read by.
FOR_GUESTS: Final = (CENTRE, keys.joined(_PUBLIC, "~"))
FOR_MEMBERS: Final = (CENTRE, keys.joined(_WITHIN, "~"))


def article(tenant_id: str, number: int) -> str:
    return keys.collection(tenant_id, "ARTICLE", keys.whole_number(number, "an article", least=1))


def centre(tenant_id: str) -> str:
    """Return the partition key of the help centre."""
    return keys.collection(tenant_id, "HELP")


def version(number: int) -> str:
    """Return the sort key of a published version."""
    return keys.joined(_VERSION, _padded(number))


def row(number: int) -> str:
    """Return the sort key of an article's row in the list of all."""
    return keys.joined(_ROW, _padded(number))


def card(number: int, *, is_public: bool) -> str:
    """Return the sort key of a published article's card."""
    return keys.joined(_PUBLIC if is_public else _WITHIN, _padded(number))


def _padded(number: int) -> str:
    return keys.whole_number(number, "an article or a version", least=1).zfill(_DIGITS)


declare(
    ARTICLES,
    grants=(
        Grant("tenant", ARTICLES, ("BatchGetItem", "GetItem", "Query")),
        Grant("platform", ARTICLES, ("DeleteItem", "PutItem", "UpdateItem")),
    ),
)


# --- items ---


class ArticleItem(Item):
    """Base of the items that have an article's text."""

    table = ARTICLES

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    title = UnicodeAttribute()
    body = UnicodeAttribute(default="")
    section = UnicodeAttribute(default="")
    is_public = BooleanAttribute(default=False)


class DraftItem(ArticleItem):
    """An article as agents work on it. `edit` grows with each change.

    `versions` is how many versions were published so far, `published` the one that readers see, 0 for none, and
    `published_edit` the edit that it was made from.
    """

    edit = NumberAttribute(default=1)
    versions = NumberAttribute(default=0)
    published = NumberAttribute(default=0)
    published_edit = NumberAttribute(default=0)
    created_at = UnicodeAttribute()
    edited_at = UnicodeAttribute()


class VersionItem(ArticleItem):
    """A version as it was published. Nothing changes it, but the erasure of a person."""

    version = NumberAttribute()
    published_at = UnicodeAttribute()


class PublishedItem(VersionItem):
    """The version that readers see, where it is read without knowing its number."""


class RowItem(Item):
    """An article in the list of all, without its text."""

    table = ARTICLES

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    title = UnicodeAttribute()
    section = UnicodeAttribute(default="")
    is_public = BooleanAttribute(default=False)
    published = NumberAttribute(default=0)
    is_changed = BooleanAttribute(default=False)
    edited_at = UnicodeAttribute()


class CardItem(Item):
    """A published article in the catalogue. `words` are its terms with their postings, as one block of the search."""

    table = ARTICLES

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    title = UnicodeAttribute()
    lead = UnicodeAttribute(default="")
    section = UnicodeAttribute(default="")
    is_public = BooleanAttribute(default=False)
    published_at = UnicodeAttribute()
    words = BinaryAttribute(legacy_encoding=False, default=b"")
    words_version = NumberAttribute()


class CentreItem(Item):
    """The help centre. `edition` changes with what readers see, `last` is the last number given out, and
    `articles` how many there are. `sections` is JSON: id, name and description of each, in their order."""

    table = ARTICLES

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    last = NumberAttribute(default=0)
    articles = NumberAttribute(default=0)
    edition = UnicodeAttribute(default="")
    sections = UnicodeAttribute(default="[]")


CATALOGUE_ROWS: Final = Kinds[CentreItem | CardItem](
    {CENTRE: CentreItem, keys.beginning(_PUBLIC): CardItem, keys.beginning(_WITHIN): CardItem}
)


# --- holdings ---


def _centre(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(ARTICLES, centre(reader.tenant_id))


def _texts(reader: Reader) -> Iterator[StoredItem]:
    for _, item, _ in reader.query(ARTICLES, centre(reader.tenant_id), begins_with=ROWS):
        yield from reader.query(ARTICLES, article(reader.tenant_id, int(item["number"]["N"])))


def _number(item: Raw) -> int:
    return int(item["number"]["N"])


def _forms() -> tuple[RowForm, ...]:
    def of_text(sort: str) -> Any:
        return lambda tenant_id, item: (article(tenant_id, _number(item)), sort)

    def of_version(tenant_id: str, item: Raw) -> tuple[str, str]:
        return article(tenant_id, _number(item)), version(int(item["version"]["N"]))

    return (
        RowForm(DraftItem, of_text(DRAFT), begins=DRAFT, checks=row_forms.moments("created_at", "edited_at")),
        RowForm(PublishedItem, of_text(PUBLISHED), begins=PUBLISHED, checks=row_forms.moments("published_at")),
        RowForm(VersionItem, of_version, begins=VERSIONS, checks=row_forms.moments("published_at")),
    )


def _centre_forms() -> tuple[RowForm, ...]:
    def of_row(tenant_id: str, item: Raw) -> tuple[str, str]:
        return centre(tenant_id), row(_number(item))

    def of_card(tenant_id: str, item: Raw) -> tuple[str, str]:
        return centre(tenant_id), card(_number(item), is_public=item["is_public"]["BOOL"])

    return (
        RowForm(RowItem, of_row, begins=ROWS, checks=row_forms.moments("edited_at")),
        RowForm(
            CentreItem,
            lambda tenant_id, item: (centre(tenant_id), CENTRE),
            begins=CENTRE,
            checks={"sections": are_sections},
        ),
        *(
            RowForm(
                CardItem,
                of_card,
                begins=keys.beginning(kind),
                checks={"words": _is_block, **row_forms.moments("published_at")},
            )
            for kind in (_PUBLIC, _WITHIN)
        ),
    )


def new_edition() -> str:
    """Return the name of an edition of the catalogue: random, so that none comes back after a restore or an import."""
    return uuid.uuid4().hex


def sections_text(sections: Iterable[Iterable[Any]]) -> str:
    """Return sections, each as its members, as the item of a help centre holds them."""
    return json.dumps([[*one] for one in sections], ensure_ascii=False)


def _is_block(packed: bytes) -> bool:
    """Tell whether words can be unpacked without filling the memory."""
    unpacking = zlib.decompressobj()
    unpacking.decompress(packed, _WORDS_LIMIT)
    return unpacking.eof


def are_sections(text: str) -> bool:
    """Tell whether a text is the sections of a help centre, as its item holds them."""
    told = json.loads(text)
    return isinstance(told, list) and all(row_forms.are_texts(one) and len(one) == 3 for one in told)


declare_holding(
    Holding("articles", (ARTICLES,), _texts, Stage.BESIDE, forms=_forms),
    Holding("help centre", (ARTICLES,), _centre, Stage.OWN, forms=_centre_forms),
)
declare_people("articles", "tickets.articles.people")


declare_keys(
    ARTICLES, {"article": "TENANT#<tenant>|ARTICLE#<number>, <part>", "help centre": "TENANT#<tenant>|HELP, <part>"}
)
