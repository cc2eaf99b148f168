"""The stated exception: reads and writes that are not one tenant's.

Signing in, resolving who is calling, and what operators do happen before or beside any tenant. They go through
the platform connection, under a policy of its own, and through this module alone. A test names the few modules
that may import it, or a model of a platform table; another one that tries is a failing build.

Source: Spotlight, "Cross-tenant exception: Platform.Memberships": treat new code that reads it as authentication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from portal.dynamo import client, repository
from portal.dynamo.client import Item
from portal.dynamo.repository import Transaction


def connection() -> client.SharedConnection:
    return client.connection("platform")


def transact(transaction: Transaction) -> None:
    """All of the writes or none. Raises TransactionRefused."""
    repository.write(connection(), transaction)


def get_all(wanted: Sequence[tuple[type[Item], str, str | None]], *, consistent: bool = False) -> list[Any]:
    """Items of any tables in one round trip; see `repository.batch_get`."""
    return list(repository.batch_get(connection(), wanted, consistent=consistent))


def put_all(items: Iterable[Item]) -> None:
    """Many items without a transaction; see `repository.batch_put`."""
    repository.batch_put(connection(), items)
