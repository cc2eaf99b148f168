"""Tell an operator how the parts behind the portal are: the engine, the tables and what follows the streams."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from portal import clock
from portal.dynamo import provisioning
from portal.dynamo.client import fan_out
from portal.management.command import PortalCommand
from portal.schema import registry
from portal.schema.tables import Table
from portal.streams import watermark
from portal.streams.watermark import LATE_SECONDS


class Command(PortalCommand):
    help = (
        "Say whether the engine answers, every table is active, and the stream worker keeps up. "
        "Status 1: something is not as it should be."
    )
    again = ""

    def work(self, options: dict[str, Any]) -> None:
        tables = registry.tables()
        descriptions = fan_out([lambda table=table: provisioning.describe(table) for table in tables])  # type: ignore[misc]
        endpoint = settings.DYNAMODB_ENDPOINT_URL or f"Amazon DynamoDB in {settings.AWS_REGION}"
        self.stdout.write(f"engine: {endpoint} answers")
        states = {
            table: (description or {}).get("TableStatus", "missing")
            for table, description in zip(tables, descriptions, strict=True)
        }
        problems = [f"{table.full_name} is {state}" for table, state in states.items() if state != "ACTIVE"]
        self.stdout.write(f"tables: {len(tables) - len(problems)} of {len(tables)} active")
        for table in tables:
            if table.stream and states[table] == "ACTIVE":
                problems += self._stream(table)
        if problems:
            raise CommandError(f"{'; '.join(problems)}.")

    def _stream(self, table: Table) -> list[str]:
        """Print up to when the table's stream is applied; return what is wrong with that."""
        known = watermark.read(table)
        if known is None:
            self.stdout.write(f"stream of {table.full_name}: nobody reports")
            return []
        age = round((clock.now() - known.written_at).total_seconds())
        self.stdout.write(
            f"stream of {table.full_name}: applied up to {known.as_of:%Y-%m-%d %H:%M:%S} UTC, reported {age} s ago"
        )
        if age > LATE_SECONDS:
            return [f"nobody has followed the stream of {table.full_name} for {age} s"]
        if (clock.now() - known.as_of).total_seconds() > LATE_SECONDS:
            return [f"what follows the stream of {table.full_name} is more than {LATE_SECONDS} s behind"]
        return []
