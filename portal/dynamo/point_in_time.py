"""Restore the tables from a point in time beside the living ones, under a prefix of the drill, and delete those again.

Amazon DynamoDB restores into new tables alone, so the living ones are only named as sources. Each request is held
against the policy of the drill before it is sent: it can change nothing but tables of the drill's prefix. Tables in
silos are in other accounts, and are not restored from here.

The embedded engine answers the same request with a copy of a table as it is now.

Sources: AWS, "Point-in-time backups for DynamoDB" (streams, TTL and the recovery setting are not restored; 50 restores
at a time), "Using IAM with DynamoDB backup and restore", "RestoreTableToPointInTime".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import botocore.config
from botocore.exceptions import ClientError
from django.conf import settings

from portal import aws_session, clock
from portal.errors import Conflict, Invalid
from portal.isolation import guard, policies
from portal.isolation.expressions import NotUnderstood
from portal.isolation.policies import Policy, Request
from portal.schema import registry

SUFFIX: Final = "-Drill"
AT_ONCE: Final = 40  # restores; AWS allows an account 50
_SECONDS: Final = 2.0  # between two looks
_STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
_OF_SOURCES: Final = ("DescribeContinuousBackups", "DescribeTable", "RestoreTableToPointInTime")
_OF_DRILL: Final = ("DeleteTable", "DescribeTable", "UpdateTable")
# A restore writes with the rights of whoever asks for it, and AWS wants all of these of them; the verification needs
# the others.
_OF_ITEMS: Final = (
    *("BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"),
    *("BatchGetItem", "ConditionCheckItem", "DescribeStream", "GetRecords", "GetShardIterator"),
)

Say = Callable[[str], object]


def drill_prefix() -> str:
    """Return the beginning of the names of restored tables. Raises Invalid where they would be too long for AWS."""
    prefix = f"{settings.DYNAMODB_TABLE_PREFIX}{SUFFIX}"
    if len(prefix) > policies.longest_prefix():
        raise Invalid(f"The prefix {prefix} leaves no room for the names of tables.")
    return prefix


def document() -> dict[str, Any]:
    """Return the policy of whoever runs the drill: it may restore the declared tables, and write to its own alone."""
    names = [table.full_name for table in registry.tables()]
    names += [
        registry.physical(settings.DYNAMODB_TABLE_PREFIX, "0" * 32, table).replace("0" * 32, registry.ANY_TENANT)
        for table in registry.placed_tables()
    ]
    own = [policies.table_arn(f"{drill_prefix()}.*")]
    statements = [
        ("RestoreLivingTables", _OF_SOURCES, [policies.table_arn(name) for name in names]),
        ("UseTablesOfTheDrill", (*_OF_DRILL, *_OF_ITEMS), own),
        ("ListTables", ("ListTables",), ["*"]),
    ]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": sid, "Effect": "Allow", "Action": [f"dynamodb:{one}" for one in actions], "Resource": resources}
            for sid, actions, resources in statements
        ],
    }


@dataclass(frozen=True)
class Source:
    """A living table: its size in bytes, and the moments between which it can be restored, None without backups."""

    name: str
    target: str
    size: int
    items: int
    earliest: datetime | None
    latest: datetime | None
    stream: bool


class PointInTime:
    """The tables of this installation, as they can be restored. `sleep` is called between two looks at an engine."""

    def __init__(self, sleep: Callable[[float], object] = time.sleep) -> None:
        self._sleep = sleep
        self._prefix, self._drill = settings.DYNAMODB_TABLE_PREFIX, drill_prefix()
        self.client = make_client()

    # --- before ---

    def sources(self) -> list[Source]:
        """Return the tables that a drill restores. Raises Conflict where one is missing."""
        found = [name for name in self._listed(self._prefix) if _declared(name, self._prefix)]
        if missing := sorted({table.full_name for table in registry.tables()} - set(found)):
            raise Conflict(
                f"{missing[0]} is missing, so that it cannot be restored from here. docs/restore.md has more."
            )
        return [self._source(name) for name in found]

    def _source(self, name: str) -> Source:
        described = self.client.describe_table(TableName=name)["Table"]
        backups = self._backups(name)
        is_on = backups.get("PointInTimeRecoveryStatus") == "ENABLED"
        window = ("EarliestRestorableDateTime", "LatestRestorableDateTime")
        earliest, latest = (backups.get(one) if is_on else None for one in window)
        target = self._drill + name.removeprefix(self._prefix)
        size, items = (int(described.get(one, 0)) for one in ("TableSizeBytes", "ItemCount"))
        return Source(name, target, size, items, earliest, latest, "LatestStreamArn" in described)

    def _backups(self, name: str) -> dict[str, Any]:
        try:
            answer = self.client.describe_continuous_backups(TableName=name)
        except ClientError as error:
            if _code(error) == "UnknownOperationException":
                raise Conflict("This engine keeps no backups, and cannot copy tables either.") from error
            raise
        described: dict[str, Any] = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        return described

    def moment(self, sources: Iterable[Source], at: str = "") -> datetime | None:
        """Return the moment of a restore, to the second: the one that was asked for, a stamp, or the last that all
        tables have. None is now, for an engine that copies tables. Raises Conflict and Invalid where it cannot be."""
        windows = [(one.earliest, one.latest) for one in sources if one.earliest and one.latest]
        without = [one.name for one in sources if not one.latest]
        if without and (at or windows or not settings.DYNAMODB_ENDPOINT_URL):
            raise Conflict(f"No backups are kept of {without[0]}: turn point-in-time recovery on. docs/restore.md")
        if not windows:
            return None
        earliest, latest = max(first for first, _ in windows), min(last for _, last in windows)
        if earliest > latest:
            raise Conflict("There is no moment yet that all tables have a backup of. Try again in some minutes.")
        moment = clock.parse(at).replace(microsecond=0) if at else latest
        if not earliest <= moment <= latest:
            between = " and ".join(f"{one.astimezone(UTC):%Y-%m-%dT%H:%M:%S}" for one in (earliest, latest))
            raise Invalid(f"The tables can be restored to moments between {between}.", field="at")
        return moment

    # --- restoring ---

    def restore(self, sources: list[Source], moment: datetime | None, *, done: Callable[[str], object]) -> None:
        """Restore all tables to one moment, AT_ONCE at a time, and wait until they are active; `done` is called with
        the name of each. Raises Conflict where the account has no room for them."""
        room = int(settings.DYNAMODB_TABLE_QUOTA) - len(list(self._listed("")))
        if room < len(sources):
            raise Conflict(f"There is room for {room} more tables, and {len(sources)} are to be restored.")
        when = {"RestoreDateTime": moment} if moment else {"UseLatestRestorableTime": True}
        waiting, begun = list(sources), set[str]()
        while waiting or begun:
            while waiting and len(begun) < AT_ONCE and self._begin(waiting[0], when):
                begun.add(waiting.pop(0).target)
            for name in sorted(begun):
                if self._status(name) == "ACTIVE":
                    begun.discard(name)
                    done(name)
            if waiting or begun:
                self._sleep(_SECONDS)

    def _begin(self, source: Source, when: dict[str, Any]) -> bool:
        """Begin a restore; False where the account has as many under way as it may have."""
        try:
            self.client.restore_table_to_point_in_time(
                SourceTableName=source.name, TargetTableName=source.target, **when
            )
        except ClientError as error:
            if _code(error) == "LimitExceededException":
                return False
            raise
        return True

    def turn_streams_on(self, sources: Iterable[Source]) -> None:
        """Give the restored tables streams, where the living ones have them: from then on a worker can follow."""
        names = [one.target for one in sources if one.stream]
        for name in names:
            self.client.update_table(TableName=name, StreamSpecification=_STREAM)
        for name in names:
            while self._status(name) != "ACTIVE":
                self._sleep(_SECONDS)

    def _status(self, name: str) -> str:
        """Return the state of a table, "" for one that is not there."""
        return str((self._described(name) or {}).get("TableStatus", ""))

    def _described(self, name: str) -> dict[str, Any] | None:
        try:
            described: dict[str, Any] = self.client.describe_table(TableName=name)["Table"]
        except ClientError as error:
            if _code(error) == "ResourceNotFoundException":
                return None
            raise
        return described

    # --- removing ---

    def left(self) -> list[str]:
        """Return the tables of a drill that there are, of this one or of one that was killed."""
        return [name for name in self._listed(self._drill) if _declared(name, self._drill)]

    def remove(self, *, wait: bool = True, done: Callable[[str], object] = lambda name: None) -> list[str]:
        """Delete the tables of the drill, and return those that are left: without `wait`, tables that are still being
        restored, which AWS does not let go. Raises Conflict for a table that no restore has made."""
        busy = self.left()
        while busy:
            for name in list(busy):
                if self._deleted(name):
                    busy.remove(name)
                    done(name)
            if not busy or not wait:
                break
            self._sleep(_SECONDS)
        return [name for name in busy if self._status(name) not in ("DELETING", "")]

    def _deleted(self, name: str) -> bool:
        """Ask for the end of a table, and tell whether it is gone."""
        described = self._described(name)
        if described is None:
            return True
        source = described.get("RestoreSummary", {}).get("SourceTableArn", "")
        living = self._prefix + name.removeprefix(self._drill)
        if not settings.DYNAMODB_ENDPOINT_URL and not source.endswith(f":table/{living}"):
            raise Conflict(
                f"{name} was not restored from {living}, so it is no table of a drill. It was left as it is."
            )
        if described["TableStatus"] == "ACTIVE":
            if described.get("DeletionProtectionEnabled"):
                self.client.update_table(TableName=name, DeletionProtectionEnabled=False)
            else:
                self.client.delete_table(TableName=name)
            return self._described(name) is None
        return False

    def _listed(self, prefix: str) -> Iterator[str]:
        """Yield the names of tables that begin with a prefix and a dot, all of them for ""."""
        for page in self.client.get_paginator("list_tables").paginate():
            yield from (name for name in page["TableNames"] if not prefix or name.startswith(f"{prefix}."))


def make_client() -> Any:
    """Return a client of DynamoDB that sends nothing but what the policy of the drill allows."""
    session = aws_session.new_session(settings.DYNAMODB_ENDPOINT_URL)
    retries = botocore.config.Config(retries={"mode": "standard", "max_attempts": 8})
    where = settings.DYNAMODB_ENDPOINT_URL or None
    client = session.create_client("dynamodb", settings.AWS_REGION, endpoint_url=where, config=retries)
    policy, own = Policy(document()), f"{drill_prefix()}."

    def check(params: dict[str, Any], model: Any, **_: Any) -> None:
        living = params.get("SourceTableName") or params.get("TableName") or "*"
        with guard.refusals(model.name, {"TableName": living}):
            if not policy.allows(Request(f"dynamodb:{model.name}", policies.table_arn(living))):
                raise NotUnderstood(f"{model.name} is nothing that a drill does there")
            if not params.get("TargetTableName", own).startswith(own):
                raise NotUnderstood("a restore into a table that is not the drill's")

    client.meta.events.register_last("before-parameter-build", check)
    return client


def keep_to_drill(client: Any) -> None:
    """Let a client of any role, in a process that works on restored tables, name no other table."""
    own = f"{settings.DYNAMODB_TABLE_PREFIX}."

    def check(params: dict[str, Any], model: Any, **_: Any) -> None:
        with guard.refusals(model.name, params):
            if not all(name.startswith(own) for name in guard.tables_of(model.name, params) if name):
                raise NotUnderstood("a table that is not the drill's")

    client.meta.events.register_last("before-parameter-build", check)


def _declared(name: str, prefix: str) -> bool:
    """Tell whether a table of this prefix is declared: one of all, or one that a tenant has to itself."""
    shared = {table.name for table in registry.tables()}
    return name.removeprefix(f"{prefix}.") in shared or (registry.owner(name) is not None and name.startswith(prefix))


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])
