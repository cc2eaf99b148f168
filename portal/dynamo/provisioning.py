"""Make the declared tables real, and tell where a real one differs from its declaration."""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from portal.dynamo import client, library_errors
from portal.errors import Conflict, Unavailable
from portal.schema import registry, tables

_WAIT = 120  # seconds for a table to become active


def create_all(*, wait: bool = False) -> dict[str, bool]:
    """Create what is missing. Returns table names, True where created now.

    Raises Conflict when an existing table has other keys or indexes than declared, and Unavailable when the
    engine does not answer or, with `wait`, a table is not active in time.
    """
    connection = client.connection("platform")
    outcome = {}
    for table in registry.tables():
        existing = describe(table)
        if existing is None:
            outcome[table.full_name] = _create(connection, table)
        else:
            _compare(table, existing)
            outcome[table.full_name] = False
    for table in registry.tables():
        if table.ttl or wait:
            _wait(table)
        if table.ttl:
            _enable_ttl(connection, table)
    return outcome


def describe(table: tables.Table) -> dict[str, Any] | None:
    """Return the engine's description of a table, or None when it does not exist."""
    try:
        answer = client.connection("platform").client.describe_table(TableName=table.full_name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise library_errors.translate(error, "DescribeTable") or error from error
    except BotoCoreError as error:
        raise library_errors.translate(error, "DescribeTable") or error from error
    description: dict[str, Any] = answer["Table"]
    return description


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
