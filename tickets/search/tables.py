"""Declare the table of the search index, which tenants read and only the stream worker writes."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema import keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table
from tickets.search.keys import directory, segment, segment_named

# It has no stream: what indexing writes is nothing that has to be indexed.
SEARCH = Table("Support.Search", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS, placed=True)

declare(
    SEARCH,
    grants=(
        Grant("tenant", SEARCH, ("BatchGetItem", "Query")),
        Grant(
            "worker",
            SEARCH,
            ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem", "Query", "UpdateItem"),
            "MaintainSearch",
            leading_keys=keys.ALL_COLLECTIONS,
        ),
    ),
)

_INDEXED_AGAIN = "the stream of the imported tickets makes it again"


def _directory(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(SEARCH, directory(reader.tenant_id))


def _blocks(reader: Reader) -> Iterator[StoredItem]:
    segments: dict[str, None] = {}
    for _, row, _ in _directory(reader):
        if own := segment_named(row["sk"]["S"]):
            segments[own] = None
        for attribute in ("of", "replaced"):
            segments |= dict.fromkeys(row.get(attribute, {}).get("M", {}))
    for named in segments:
        yield from reader.query(SEARCH, segment(reader.tenant_id, named))


declare_holding(
    Holding("search directory", (SEARCH,), _directory, Stage.BESIDE, left_out=_INDEXED_AGAIN),
    Holding("search blocks", (SEARCH,), _blocks, Stage.DERIVED, left_out=_INDEXED_AGAIN),
)
