"""Management commands as a shell sees them: exit status and what they print, in this process or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from delivery.queues import stored as queue_keys
from delivery.queues.stored import QUEUES
from portal.dynamo import client, meter, placement
from portal.isolation import guard
from portal.schema import registry
from portal.streams.stored import LEASES
from tenants.tenancy import placements
from tickets.ticket.stored import TICKETS


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def run(*arguments: object) -> Ended:
    """The command in this process. Anything but a CommandError is a traceback, and fails the test."""
    out, err = StringIO(), StringIO()
    status = 0
    try:
        call_command(*map(str, arguments), stdout=out, stderr=err)
    except CommandError as error:
        status = error.returncode
        err.write(str(error))
    return Ended(status, out.getvalue(), err.getvalue())


def start(*arguments: object, terminal: int | None = None, **environ: str) -> subprocess.Popen[str]:
    """The command in a process of its own, on the same engine; talking through pipes, or on a terminal."""
    stream = subprocess.PIPE if terminal is None else terminal
    return subprocess.Popen(
        [sys.executable, "manage.py", *map(str, arguments)],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "DEBUG": "1", **environ},
        stdin=stream,
        stdout=stream,
        stderr=stream,
        # Else a prompt would find the terminal of whoever runs the tests.
        start_new_session=terminal is not None,
        text=True,
    )


def finish(process: subprocess.Popen[str], *, stdin: str = "", timeout: float = 600) -> Ended:
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    finally:
        if process.poll() is None:
            process.kill()
    return Ended(process.returncode, out, err)


@contextmanager
def broken_at(call: int, moment: str, error: BaseException) -> Iterator[list[str]]:
    """The given write of a tenant's data, counted from 1, fails: before it is sent or after it was done.

    Yields the names of all writes that were begun.
    """
    events = [client.connection(role).client.meta.events for role in ("tenant", "seed")]
    writes: list[str] = []

    def before(model: Any, **_: Any) -> None:
        if "Write" in model.name or model.name == "UpdateItem":
            writes.append(model.name)
            if moment == "before" and len(writes) == call:
                raise error

    def after(model: Any, **_: Any) -> None:
        if moment == "after" and len(writes) == call and model.name == writes[-1]:
            raise error

    for of_client in events:
        of_client.register("before-call.dynamodb", before)
        of_client.register("after-call.dynamodb", after)
    try:
        yield writes
    finally:
        for of_client in events:
            of_client.unregister("before-call.dynamodb", before)
            of_client.unregister("after-call.dynamodb", after)


def everything(table: registry.Table = TICKETS, *, index: registry.Index | None = None) -> list[dict[str, Any]]:
    """All items of a table as they are stored, in key order: what no code of the portal can ask for.

    Those of tables that tenants have to themselves are among them. With an index, those that are in it.
    """
    found = in_pool(table, index=index)
    with meter.measure():  # whoever counts what a test costs does not count this
        for placed in placements.listed() if table.placed else []:
            with guard.acting_for(placed.tenant_id), placement.at(placed.placement):
                found += _scanned(table, index)
    return sorted(found, key=lambda item: [item[name]["S"] for name in (table.hash, table.range) if name])


def of_tenants() -> set[tuple[str, str]]:
    """The table and key of everything that is stored, but for what is of the installation: leases, and how many sets of
    queues were given out and how full the queues are."""
    return {
        (table.name, str([raw[name]["S"] for name in table.key_names]))
        for table in registry.tables()
        if table is not LEASES
        for raw in everything(table)
        if table is not QUEUES or raw["kind"]["S"] == queue_keys.SETS
    }


def in_pool(table: registry.Table = TICKETS, *, index: registry.Index | None = None) -> list[dict[str, Any]]:
    """All items of the table of all tenants, in no order, without those in tables that tenants have to themselves."""
    with meter.measure():
        return _scanned(table, index)


def _scanned(table: registry.Table, index: registry.Index | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {"TableName": table.full_name} | ({"IndexName": index.name} if index else {})
    while True:
        answer = client.connection("platform").dispatch("Scan", request)
        found += answer["Items"]
        if not answer.get("LastEvaluatedKey"):
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
