"""Tell an operator how the parts behind the portal are: the engine, the tables and what follows the streams."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from portal import clock
from portal.dynamo import placement, provisioning
from portal.dynamo.client import fan_out
from portal.errors import Unavailable
from portal.management.command import PortalCommand
from portal.schema import registry
from portal.schema.access_patterns import cost
from portal.schema.registry import Table
from portal.streams import stream_source, watermark
from portal.streams.stream_source import StreamSource
from portal.streams.watermark import LATE_SECONDS
from portal.web import readiness


class Command(PortalCommand):
    costs = cost(get="placed stream, queue depths, watermark", query="due rows by time, placed tenant", reads=15)
    help = (
        "Say whether the engine answers, every table is active and as declared, and the stream worker keeps up; also "
        "for the tenants that have tables of their own. "
        "Status 1: something is not as it should be."
    )
    again = ""

    def work(self, options: dict[str, Any]) -> None:
        tables = registry.tables()
        endpoint = settings.DYNAMODB_ENDPOINT_URL or f"Amazon DynamoDB in {settings.AWS_REGION}"
        states = _states(tables)
        self.stdout.write(f"engine: {endpoint} answers")
        problems = [*self._tables("tables", states), *self._quotas()]
        for source in stream_source.placed():
            problems += self._of(source)
        problems += self._late()
        if problems:
            raise CommandError(f"{'; '.join(problems)}.")

    def _late(self) -> list[str]:
        """Return what is late. Where the tables that say so are not as declared, those are the problem."""
        try:
            return [f"what is due by “{name}” is late; see /readyz" for name in readiness.late()]
        except Unavailable as error:
            return [f"nobody can say what is late: {error.message.removesuffix('. ').removesuffix('.')}"]

    def _quotas(self) -> list[str]:
        """Print how many tables the account at home and each site have; return where the quota is nearly reached."""
        problems = []
        for site, use in provisioning.counted_tables():
            name = f"site {site}" if site else "account"
            self.stdout.write(f"{name}: {use or 'its tables cannot be counted'}")
            if use and use.is_nearly_full:
                problems.append(f"the {name} has {use}; {provisioning.REMEDY}")
        return problems

    def _of(self, source: StreamSource) -> list[str]:
        """Print how a tenant's own tables stand; return what is wrong with them."""
        with source.entered():
            try:
                states = _states(registry.placed_tables())
            except Unavailable as error:
                return [f"the tables of {source} cannot be asked for: {error.message}"]
            return self._tables(f"tables of {source}", states)

    def _tables(self, name: str, states: dict[Table, str]) -> list[str]:
        problems = [f"{_name(table)} is {state}" for table, state in states.items() if state != "ACTIVE"]
        self.stdout.write(f"{name}: {len(states) - len(problems)} of {len(states)} active")
        for found in fan_out([partial(provisioning.differences, table) for table in states]):
            problems += map(str, found)
        for table, state in states.items():
            if table.stream and state == "ACTIVE":
                problems += self._stream(table)
        return problems

    def _stream(self, table: Table) -> list[str]:
        """Print up to when the table's stream is applied; return what is wrong with that."""
        known, name = watermark.read(table), _name(table)
        if known is None:
            self.stdout.write(f"stream of {name}: nobody reports")
            return [f"nobody has followed the stream of {name} yet"]
        age = round((clock.now() - known.written_at).total_seconds())
        self.stdout.write(f"stream of {name}: applied up to {known.as_of:%Y-%m-%d %H:%M:%S} UTC, reported {age} s ago")
        if age > LATE_SECONDS:
            return [f"nobody has followed the stream of {name} for {age} s"]
        if (clock.now() - known.as_of).total_seconds() > LATE_SECONDS:
            return [f"what follows the stream of {name} is more than {LATE_SECONDS} s behind"]
        return []


def _states(tables: Iterable[Table]) -> dict[Table, str]:
    """Return the state of each table of the current source; all are asked for at once."""
    declared = list(tables)
    found = fan_out([partial(provisioning.describe, table) for table in declared])
    return {table: (one or {}).get("TableStatus", "missing") for table, one in zip(declared, found, strict=True)}


def _name(table: Table) -> str:
    return placement.table_name(table.full_name)
