"""Make the declared tables real, and tell where a real one differs from its declaration.

Those of one tenant alone are made and deleted where its placement says; see `placement.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from portal.dynamo import client, library_errors
from portal.dynamo.placement import POOL, Placement, at, current, site
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

    They are protected, restorable and encrypted where those of all are. Those that are there already are left as they
    are. Raises ValueError for the pool, and what `create_all` raises.
    """
    with _tables_of(tenant_id, placement):
        tables_of_all = {table: _safety_of_all(table) for table in placed_names.placed_tables()}
        _create_missing(placed_names.placed_tables(), wait=True, safety=tables_of_all)
        for table, safety in tables_of_all.items():
            if safety.restorable and not _is_restorable(table):
                backups = {"PointInTimeRecoveryEnabled": True}
                _connection().call(
                    "UpdateContinuousBackups",
                    TableName=table.full_name,
                    PointInTimeRecoverySpecification=backups,
                )


def delete_placed(tenant_id: str, placement: Placement) -> None:
    """Delete the tables that a tenant has to itself at a placement, with all that they hold; those that are there.

    Raises ValueError for the pool, and Unavailable.
    """
    with _tables_of(tenant_id, placement):
        for table in placed_names.placed_tables():
            try:
                if (describe(table) or {}).get("DeletionProtectionEnabled"):
                    _connection().ask("UpdateTable", {"TableName": table.full_name, "DeletionProtectionEnabled": False})
                    _wait(table)
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


@dataclass(frozen=True)
class _Safety:
    """Hold what keeps a table beside its declaration, as the template or an operator has set it."""

    definition: dict[str, Any]
    restorable: bool


def _safety_of_all(table: tables.Table) -> _Safety:
    """Return what keeps the table of all of this name, for one of a tenant's own."""
    with at(POOL):
        described = describe(table) or {}
        restorable = _is_restorable(table)
    definition: dict[str, Any] = {}
    if described.get("DeletionProtectionEnabled"):
        definition["DeletionProtectionEnabled"] = True
    if described.get("SSEDescription", {}).get("SSEType") == "KMS":
        definition["SSESpecification"] = {"Enabled": True, "SSEType": "KMS"}
        if key := described["SSEDescription"].get("KMSMasterKeyArn"):
            definition["SSESpecification"]["KMSMasterKeyId"] = key
    return _Safety(definition, restorable)


def _is_restorable(table: tables.Table) -> bool:
    try:
        answer = client.connection("lifecycle").ask("DescribeContinuousBackups", {"TableName": table.full_name})
    except (ClientError, BotoCoreError) as error:
        if _is_missing(error) or _is_unknown(error):
            return False
        raise library_errors.translate(error, "DescribeContinuousBackups") or error from error
    described = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(described.get("PointInTimeRecoveryStatus") == "ENABLED")


def _create_missing(
    declared: Iterable[tables.Table], *, wait: bool, safety: Mapping[tables.Table, _Safety] = MappingProxyType({})
) -> dict[str, bool]:
    connection = _connection()
    outcome = {}
    for table in declared:
        existing = describe(table)
        if existing is None:
            kept = _at_hand(safety[table].definition) if table in safety else {}
            outcome[table.full_name] = _create(connection, {**table.definition(), **kept})
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


def _is_unknown(error: Exception) -> bool:
    """Tell whether the engine has no such operation, as one that keeps no backups."""
    return isinstance(error, ClientError) and error.response["Error"]["Code"] == "UnknownOperationException"


def _is_missing(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] == "ResourceNotFoundException"


def _at_hand(definition: dict[str, Any]) -> dict[str, Any]:
    """Return it as it can be where requests are sent now: a key of ours is for tables at home."""
    where = current().site
    if not where or "SSESpecification" not in definition:
        return definition
    key = site(where).table_key_arn
    theirs = {"KMSMasterKeyId": key} if key else {}
    return {**definition, "SSESpecification": {"Enabled": True, "SSEType": "KMS", **theirs}}


def _create(connection: client.SharedConnection, definition: dict[str, Any]) -> bool:
    try:
        connection.call("CreateTable", **definition)
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
