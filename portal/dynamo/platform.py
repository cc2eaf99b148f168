"""The stated exception: reads and writes that are not one tenant's.

Signing in, resolving who is calling, and what operators do happen before or beside any tenant. They go through
the platform connection, under a policy of its own, and through this module alone. A test names the few modules
that may import it, or a model of a platform table; another one that tries is a failing build.

Source: Spotlight, "Cross-tenant exception: Platform.Memberships": treat new code that reads it as authentication.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from portal.dynamo import client
from portal.dynamo.client import Item
from portal.dynamo.models import RawItems
from portal.dynamo.paging import Page
from portal.dynamo.store import Store
from portal.schema import tables

_I = TypeVar("_I", bound=Item)

PLATFORM: Final = Store("platform")


transact: Final = PLATFORM.transact
get_all: Final = PLATFORM.get_all


def connection() -> client.SharedConnection:
    return client.connection("platform")


def get(model: type[_I], hash_key: str, range_key: str) -> _I | None:
    """Read one item of any table that the platform may read, or None: one GetItem, eventually consistent."""
    return PLATFORM.get(model, hash_key, sort=range_key)


def query(
    table: tables.Table, partition: str, *, index: tables.Index | None = None, **how: Any
) -> Page[dict[str, Any]]:
    """Read the raw items of one partition by one Query; see `Store.query`."""
    return PLATFORM.query(RawItems(table, index), partition, **how)


def query_all(
    table: tables.Table, partition: str, *, index: tables.Index | None = None, **how: Any
) -> Iterator[dict[str, Any]]:
    """Read all raw items of one partition, page by page as they are taken; see `Store.query_all`."""
    return PLATFORM.query_all(RawItems(table, index), partition, **how)
