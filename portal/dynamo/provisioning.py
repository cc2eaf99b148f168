"""Make the declared tables real, tell where a real one differs from its declaration, and mend that while it serves.

A changed index has a new name (see `tables.Index`): `upgrade` builds it beside the old one, which processes of the
version before still read, and `drop_old` takes that away afterwards.

Those of one tenant alone are made and deleted where its placement says; see `placement.py`.

Source: AWS, "Quotas in Amazon DynamoDB": 2,500 tables of an account in a region, and up to 10,000 on request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from portal.dynamo import client, event_source_mappings, library_errors
from portal.dynamo.placement import POOL, Placement, at, current, site, table_name
from portal.errors import Conflict, Unavailable
from portal.isolation import guard
from portal.schema import registry

_SAID_EVERY = 10  # seconds between two lines of a long wait
_WAIT = 120  # seconds for a table to become active
REMEDY: Final = "have AWS raise the quota, up to 10,000, and set DYNAMODB_TABLE_QUOTA; or use a site in another account"
NEARLY_FULL: Final = 0.8  # of the quota: from here on operators are warned
UPGRADE: Final = "python manage.py create_tables --upgrade"
DROP_OLD: Final = "python manage.py create_tables --drop-old"
_BY_HAND: Final = (
    "no command changes a table's keys: export its tenants, and import them under another DYNAMODB_TABLE_PREFIX; "
    "throw sample data away with `make clean`"
)


def create_all(*, wait: bool = False, compare: bool = True) -> dict[str, bool]:
    """Create what is missing. Returns table names, True where created now. `compare=False` is for who upgrades next.

    Raises Conflict when an existing table differs from its declaration other than by an index of before, and
    Unavailable when the engine does not answer or, with `wait`, a table is not active in time.
    """
    return _create_missing(registry.tables(), wait=wait, compare=compare)


def create_placed(tenant_id: str, placement: Placement) -> None:
    """Create the tables that a tenant has to itself at a placement, and wait until they are active.

    They are protected, restorable and encrypted where those of all are, and the same Lambda functions read their
    streams. Those that are there already are left as they are. Raises ValueError for the pool, Conflict where the
    account may have no more tables, and what `create_all` does.
    """
    refuse_without_room(tenant_id, placement)
    with _tables_of(tenant_id, placement):
        tables_of_all = {table: _safety_of_all(table) for table in registry.placed_tables()}
        _create_missing(registry.placed_tables(), wait=True, safety=tables_of_all)
        for table, safety in tables_of_all.items():
            if safety.restorable and not _is_restorable(table):
                backups = {"PointInTimeRecoveryEnabled": True}
                _connection().call(
                    "UpdateContinuousBackups",
                    TableName=table.full_name,
                    PointInTimeRecoverySpecification=backups,
                )
        for table, safety in tables_of_all.items():
            if table.stream:
                event_source_mappings.repeat(safety.stream, _stream_arn(describe(table)))


def refuse_without_room(tenant_id: str, placement: Placement) -> None:
    """Raise Conflict where a tenant's own tables at a placement are missing and would exceed the account's quota."""
    with _tables_of(tenant_id, placement):
        wanted = sum(describe(table) is None for table in registry.placed_tables())
        if wanted and wanted > (found := count_tables()).quota - found.used:
            raise Conflict(
                f"There is no room for {wanted} more tables: the account has {found} in this region. "
                f"{REMEDY[0].upper()}{REMEDY[1:]}."
            )


def key_of(tenant_id: str, where: Placement) -> str:
    """Return in words which key encrypts a tenant's content at a placement. Raises Throttled, Unavailable."""
    table = registry.placed_tables()[0]
    with at(POOL):
        of_pool = found = _key(describe(table))
    if where != POOL:
        with _tables_of(tenant_id, where):
            found = _key(describe(table))
    if not found:
        return "a key that AWS owns"
    if found == of_pool:
        return f"the key of the pool, {found}"
    is_of_site = bool(where.site) and found == site(where.site).table_key_arn
    return f"{'the key of its site' if is_of_site else 'a key of its own'}, {found}"


def _key(described: dict[str, Any] | None) -> str:
    return str((described or {}).get("SSEDescription", {}).get("KMSMasterKeyArn", ""))


def delete_placed(tenant_id: str, placement: Placement) -> None:
    """Delete the tables that a tenant has to itself at a placement, with all that they hold and what maps their streams
    to functions; those that are there.

    Raises ValueError for the pool, and Unavailable.
    """
    with _tables_of(tenant_id, placement):
        for table in registry.placed_tables():
            try:
                described = describe(table) or {}
                if stream := _stream_arn(described):
                    event_source_mappings.delete(stream)
                if described.get("DeletionProtectionEnabled"):
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
    stream: str  # its ARN, "" without one


def _safety_of_all(table: registry.Table) -> _Safety:
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
    return _Safety(definition, restorable, _stream_arn(described))


def _stream_arn(described: dict[str, Any] | None) -> str:
    return str((described or {}).get("LatestStreamArn", ""))


def _is_restorable(table: registry.Table) -> bool:
    try:
        answer = client.connection("lifecycle").ask("DescribeContinuousBackups", {"TableName": table.full_name})
    except (ClientError, BotoCoreError) as error:
        if _is_missing(error) or _is_unknown(error):
            return False
        raise library_errors.translate(error, "DescribeContinuousBackups") or error from error
    described = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(described.get("PointInTimeRecoveryStatus") == "ENABLED")


def _create_missing(
    declared: Iterable[registry.Table],
    *,
    wait: bool,
    compare: bool = True,
    safety: Mapping[registry.Table, _Safety] = MappingProxyType({}),
) -> dict[str, bool]:
    connection = _connection()
    outcome, active = {}, set()
    for table in declared:
        existing = describe(table)
        if existing is None:
            kept = _at_hand(safety[table].definition) if table in safety else {}
            outcome[table.full_name] = _create(connection, {**table.definition(), **kept})
        else:
            if compare:
                _compare(table, existing)
            if existing["TableStatus"] == "ACTIVE":
                active.add(table)
            outcome[table.full_name] = False
    for table in declared:
        if (table.ttl or wait) and table not in active:
            _wait(table)
        if table.ttl and compare:
            _enable_ttl(connection, table)
    return outcome


def describe(table: registry.Table) -> dict[str, Any] | None:
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


@dataclass(frozen=True)
class TableDifference:
    """One way in which a real table is not as declared, and what to do about it."""

    table: str
    text: str
    mend: str

    def __str__(self) -> str:
        return f"{self.table}: {self.text}. Mend it: {self.mend}"


def differences(table: registry.Table, existing: dict[str, Any] | None = None) -> list[TableDifference]:
    """Compare a table of the current source with its declaration: a DescribeTable, where it is not given, and a
    DescribeTimeToLive. A missing table is no difference. Raises Throttled, Unavailable."""
    existing = existing or describe(table)
    return list(_compared(table, existing, _ttl(table))) if existing else []


def _compare(table: registry.Table, existing: dict[str, Any]) -> None:
    """Raise Conflict for what a start must not go past. TTL that is off is turned on afterwards."""
    found = [one for one in _compared(table, existing, table.ttl) if one.mend != DROP_OLD]
    if found:
        raise Conflict("\n".join(map(str, found)))


def _compared(table: registry.Table, existing: dict[str, Any], ttl: str | None) -> Iterator[TableDifference]:
    wanted, name = table.definition(), _name(table)
    found = _indexes(existing)
    if _shape(existing, wanted) != _shape(wanted, wanted):
        yield TableDifference(
            name, f"other keys: {_shape(existing, wanted)}, declared {_shape(wanted, wanted)}", _BY_HAND
        )
    for index in table.indexes:
        there, declared = found.pop(index.name, None), index.definition()
        if there is None:
            yield TableDifference(name, f"index {index.name} is missing", UPGRADE)
        elif _shape(there, existing) != _shape(declared, wanted):
            shapes = f"{_shape(there, existing)}, declared {_shape(declared, wanted)}"
            yield TableDifference(name, f"index {index.name} has other keys or attributes: {shapes}", UPGRADE)
        elif there.get("IndexStatus", "ACTIVE") != "ACTIVE":
            yield TableDifference(name, f"index {index.name} is {there['IndexStatus']}", f"wait for it, with {UPGRADE}")
    for left in sorted(found):
        yield TableDifference(name, f"index {left} is not declared, and costs writes and storage", DROP_OLD)
    for what, of in (("stream", _stream), ("billing mode", _billing)):
        if of(existing) != of(wanted):
            yield TableDifference(name, f"{what} is {of(existing) or 'off'}, declared {of(wanted) or 'off'}", UPGRADE)
    if ttl != table.ttl:
        yield TableDifference(name, f"TTL is {ttl or 'off'}, declared {table.ttl or 'off'}", UPGRADE)


def _name(table: registry.Table) -> str:
    return table_name(table.full_name)


def _indexes(definition: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {index["IndexName"]: index for index in definition.get("GlobalSecondaryIndexes") or []}


def _shape(of: dict[str, Any], definition: dict[str, Any]) -> str:
    """Return the keys with their types of a table or an index, and what an index projects, as a text to compare."""
    types = {a["AttributeName"]: a["AttributeType"] for a in definition["AttributeDefinitions"]}
    keys = ", ".join(f"{k['AttributeName']} {k['KeyType']} {types.get(k['AttributeName'])}" for k in of["KeySchema"])
    projection = of.get("Projection")
    if projection is None:
        return keys
    return " ".join([keys, projection["ProjectionType"], *sorted(projection.get("NonKeyAttributes") or [])])


def _stream(definition: dict[str, Any]) -> str:
    specification = definition.get("StreamSpecification") or {}
    return str(specification["StreamViewType"]) if specification.get("StreamEnabled") else ""


def _billing(definition: dict[str, Any]) -> str:
    summary = definition.get("BillingModeSummary") or {}
    return str(definition.get("BillingMode") or summary.get("BillingMode", "PROVISIONED"))


def upgrade(table: registry.Table, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Make an existing table of the current source as declared, while it serves; indexes of before stay. Return its
    description.

    Can be interrupted and run again. Raises Conflict for keys that no command can change, and Throttled, Unavailable.
    """
    existing = _settled(table, say)
    wanted = table.definition()
    if any(one.mend == _BY_HAND for one in _compared(table, existing, table.ttl)):
        _compare(table, existing)
    if _billing(existing) != _billing(wanted):
        say(f"{_name(table)}: billing mode {_billing(wanted)}")
        existing = _update(table, say, BillingMode=_billing(wanted))
    if _stream(existing) != _stream(wanted):
        say(f"{_name(table)}: stream {_stream(wanted) or 'off'}")
        if _stream(existing):
            existing = _update(table, say, StreamSpecification={"StreamEnabled": False})
        if table.stream:
            existing = _update(table, say, StreamSpecification=wanted["StreamSpecification"])
            say("  Nobody counted what was written without it: run rebuild_aggregates and rebuild_search.")
    _upgrade_ttl(table, say)
    for index in table.indexes:
        there, declared = _indexes(existing).get(index.name), index.definition()
        if there and _shape(there, existing) != _shape(declared, wanted):
            say(f"{_name(table)}: index {index.name} is made anew; its lists are unavailable until it is there")
            existing, there = _drop(table, index.name, say), None
        if there is None:
            say(f"{_name(table)}: building index {index.name}")
            needed = {index.hash, index.range}
            types = [a for a in existing["AttributeDefinitions"] if a["AttributeName"] not in needed]
            types += [a for a in wanted["AttributeDefinitions"] if a["AttributeName"] in needed]
            existing = _update(
                table, say, AttributeDefinitions=types, GlobalSecondaryIndexUpdates=[{"Create": declared}]
            )
    return existing


def drop_old(
    table: registry.Table, existing: dict[str, Any] | None = None, *, say: Callable[[str], None]
) -> dict[str, Any]:
    """Delete the indexes of an existing table that are not declared, and return its description. Raises Conflict while
    a declared one is not there: an older version may still be all that serves."""
    existing = existing or _settled(table, say)
    _compare(table, existing)
    for name in sorted(_indexes(existing).keys() - {index.name for index in table.indexes}):
        say(f"{_name(table)}: deleting index {name}")
        existing = _drop(table, name, say)
    return existing


def _drop(table: registry.Table, name: str, say: Callable[[str], None]) -> dict[str, Any]:
    return _update(table, say, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}])


def _update(table: registry.Table, say: Callable[[str], None], **changes: Any) -> dict[str, Any]:
    """Change a table and return its description once all of it is active again: DynamoDB makes one change at a time."""
    try:
        _connection().ask("UpdateTable", {"TableName": table.full_name, **changes})
    except (ClientError, BotoCoreError) as error:
        raise library_errors.translate(error, "UpdateTable") or error from error
    return _settled(table, say)


def _settled(table: registry.Table, say: Callable[[str], None]) -> dict[str, Any]:
    """Wait until the table and its indexes are active: on Amazon DynamoDB however long, as filling an index of a large
    table takes hours; elsewhere for _WAIT seconds, as DynamoDB Local sometimes never fills one."""
    begun = said = time.monotonic()
    while True:
        existing = describe(table)
        if existing is None:
            raise Unavailable(f"{_name(table)} is missing.")
        busy = [i["IndexName"] for i in _indexes(existing).values() if i.get("IndexStatus", "ACTIVE") != "ACTIVE"]
        if existing["TableStatus"] == "ACTIVE" and not busy:
            return existing
        if time.monotonic() - said > _SAID_EVERY:
            said = time.monotonic()
            say(f"{_name(table)}: waiting for {', '.join(busy) or 'the table'}, {said - begun:.0f} s so far")
        if settings.DYNAMODB_ENDPOINT_URL and time.monotonic() - begun > _WAIT:
            raise Unavailable(f"{_name(table)}: {', '.join(busy) or 'the table'} is not active after {_WAIT} s.")
        time.sleep(0.5)


def _wait(table: registry.Table) -> None:
    for _ in range(_WAIT * 5):
        existing = describe(table)
        if existing is not None and existing["TableStatus"] == "ACTIVE":
            return
        time.sleep(0.2)
    raise Unavailable(f"{table.full_name} is not active after {_WAIT} s.")


def _enable_ttl(connection: client.SharedConnection, table: registry.Table) -> None:
    if _ttl(table) != table.ttl:
        _set_ttl(connection, table, str(table.ttl), is_on=True)


def _upgrade_ttl(table: registry.Table, say: Callable[[str], None]) -> None:
    found = _ttl(table)
    if found == table.ttl:
        return
    say(f"{_name(table)}: TTL {table.ttl or 'off'}")
    if found:
        _set_ttl(_connection(), table, found, is_on=False)
    if table.ttl:
        _set_ttl(_connection(), table, table.ttl, is_on=True)


def _set_ttl(connection: client.SharedConnection, table: registry.Table, attribute: str, *, is_on: bool) -> None:
    specification = {"Enabled": is_on, "AttributeName": attribute}
    try:
        connection.call("UpdateTimeToLive", TableName=table.full_name, TimeToLiveSpecification=specification)
    except ClientError as error:
        if (_ttl(table) == attribute) is is_on:
            return  # Another process was faster; both wanted the same.
        if error.response["Error"]["Code"] != "ValidationException":
            raise
        raise Conflict(f"{_name(table)}: DynamoDB changes TTL once an hour at most. Run it again then.") from error


def _ttl(table: registry.Table) -> str | None:
    """Return the attribute by which the engine removes items, None where it removes none."""
    try:
        described = _connection().ask("DescribeTimeToLive", {"TableName": table.full_name})
    except (ClientError, BotoCoreError) as error:
        raise library_errors.translate(error, "DescribeTimeToLive") or error from error
    found = described.get("TimeToLiveDescription", {})
    return found["AttributeName"] if found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") else None


# --- the quota of tables ---


@dataclass(frozen=True)
class TableUse:
    """The number of tables in an account and region, whoever made them, and the number that there may be."""

    used: int
    quota: int

    @property
    def is_nearly_full(self) -> bool:
        return self.used >= NEARLY_FULL * self.quota

    def __str__(self) -> str:
        return f"{self.used:,} of {self.quota:,} tables"


def count_tables() -> TableUse:
    """Count the tables where requests are sent now: one ListTables for each hundred. Raises Throttled, Unavailable."""
    used = 0
    after: dict[str, str] = {}
    while True:
        answer = _list_tables(after)
        used += len(answer["TableNames"])
        if "LastEvaluatedTableName" not in answer:
            return TableUse(used, _quota())
        after = {"ExclusiveStartTableName": answer["LastEvaluatedTableName"]}


def counted_tables() -> Iterator[tuple[str, TableUse | None]]:
    """Yield each site, "" for home, with its tables; None where a site cannot be reached."""
    for name in ("", *sorted(settings.SILOS)):
        with at(Placement("silo", name) if name else POOL):
            try:
                yield name, count_tables()
            except Unavailable:
                yield name, None


def _list_tables(after: dict[str, str]) -> dict[str, Any]:
    try:
        return _connection().ask("ListTables", {"Limit": 100, **after})
    except (ClientError, BotoCoreError) as error:
        raise library_errors.translate(error, "ListTables") or error from error


def _quota() -> int:
    where = current().site
    return int((site(where).table_quota if where else "") or settings.DYNAMODB_TABLE_QUOTA)
