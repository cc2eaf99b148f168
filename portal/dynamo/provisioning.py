"""Make the declared tables real, and tell where a real one differs from its declaration.

Those of one tenant alone are made and deleted where its placement says; see `placement.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from portal.dynamo import client, library_errors
from portal.dynamo.placement import POOL, Placement, at, current
from portal.errors import Conflict, Unavailable
from portal.isolation import guard
from portal.schema import placed_names, registry, tables

_WAIT = 120  # seconds for a table to become active


def create_all(*, wait: bool = False) -> dict[str, bool]:
    """Create what is missing. Returns table names, True where created now.

    Raises Conflict when an existing table has other keys or indexes than declared, and Unavailable when the
    engine does not answer or, with `wait`, a table is not active in time.
    """
    return _create_missing(registry.tables(), wait=wait)


def create_placed(tenant_id: str, placement: Placement) -> None:
    """Create the tables that a tenant has to itself at a placement, and wait until they are active.

    Those that are there already are left as they are. Raises ValueError for the pool, and what `create_all` raises.
    """
    with _tables_of(tenant_id, placement):
        _create_missing(placed_names.placed_tables(), wait=True)


def delete_placed(tenant_id: str, placement: Placement) -> None:
    """Delete the tables that a tenant has to itself at a placement, with all that they hold; those that are there.

    Raises ValueError for the pool, and Unavailable.
    """
    with _tables_of(tenant_id, placement):
        for table in placed_names.placed_tables():
            try:
                _connection().ask("DeleteTable", {"TableName": table.full_name})
            except (ClientError, BotoCoreError) as error:
                if not _is_missing(error):
                    raise library_errors.translate(error, "DeleteTable") or error from error


def _connection() -> client.SharedConnection:
    """Return the connection of the role that may make the tables at hand; of those of all, in development alone."""
    return client.connection("platform" if current() == POOL else "lifecycle")


@contextmanager
def _tables_of(tenant_id: str, placement: Placement) -> Iterator[None]:
    if placement == POOL:
        raise ValueError("the tables of the pool are nobody's own")
    with guard.acting_for(tenant_id), at(placement):
        yield


def _create_missing(declared: Iterable[tables.Table], *, wait: bool) -> dict[str, bool]:
    connection = _connection()
    outcome = {}
    for table in declared:
        existing = describe(table)
        if existing is None:
            outcome[table.full_name] = _create(connection, table)
        else:
            _compare(table, existing)
            outcome[table.full_name] = False
    for table in declared:
        if table.ttl or wait:
            _wait(table)
        if table.ttl:
            _enable_ttl(connection, table)
    return outcome


def describe(table: tables.Table) -> dict[str, Any] | None:
    """Return the engine's description of a table, or None when it does not exist."""
    try:
        answer = _connection().ask("DescribeTable", {"TableName": table.full_name})
    except (ClientError, BotoCoreError) as error:
        if _is_missing(error):
            return None
        raise library_errors.translate(error, "DescribeTable") or error from error
    description: dict[str, Any] = answer["Table"]
    return description


def _is_missing(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] == "ResourceNotFoundException"


def _create(connection: client.SharedConnection, table: tables.Table) -> bool:
    try:
        connection.call("CreateTable", **table.definition())
    except ClientError as error:
        # Another process was faster; both wanted the same.
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
        return False
    return True


def _compare(table: tables.Table, existing: dict[str, Any]) -> None:
    wanted = table.definition()
    if _keys(existing) != _keys(wanted):
        raise Conflict(
            f"{table.full_name} exists with other keys or indexes than declared, from another version perhaps. Bring "
            "it up to date with infra/template.yaml, use another prefix, or throw sample data away with `make clean`."
        )


def _keys(definition: dict[str, Any]) -> Any:
    indexes = definition.get("GlobalSecondaryIndexes") or []
    return (
        sorted((k["KeyType"], k["AttributeName"]) for k in definition["KeySchema"]),
        sorted((i["IndexName"], sorted((k["KeyType"], k["AttributeName"]) for k in i["KeySchema"])) for i in indexes),
    )


def _wait(table: tables.Table) -> None:
    for _ in range(_WAIT * 5):
        existing = describe(table)
        if existing is not None and existing["TableStatus"] == "ACTIVE":
            return
        time.sleep(0.2)
    raise Unavailable(f"{table.full_name} is not active after {_WAIT} s.")


def _enable_ttl(connection: client.SharedConnection, table: tables.Table) -> None:
    if _has_ttl(connection, table):
        return
    specification = {"Enabled": True, "AttributeName": table.ttl}
    try:
        connection.call("UpdateTimeToLive", TableName=table.full_name, TimeToLiveSpecification=specification)
    except ClientError:
        # Another process was faster; both wanted the same.
        if not _has_ttl(connection, table):
            raise


def _has_ttl(connection: client.SharedConnection, table: tables.Table) -> bool:
    described = connection.call("DescribeTimeToLive", TableName=table.full_name)
    return described.get("TimeToLiveDescription", {}).get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
