"""`manage.py verify_restored`: verifies all that was restored, in the tables of a drill. `restore_drill` runs it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from portal.dynamo import client, meter, point_in_time
from portal.dynamo.placement import POOL, Placement
from portal.errors import Conflict
from portal.management.command import INTERRUPTED, PortalCommand
from portal.schema.access_patterns import cost
from portal.streams import stream_source
from portal.streams.poller import Poller
from portal.streams.stream_source import POOLED, StreamSource
from tenants.tenancy import tenant_directory
from tickets.following import ticket_stream
from tickets.search import index_check
from tickets.ticket.stored import TICKETS
from tickets.verification import verify


@dataclass
class RestoredReport:
    """The result. Tenants are named by their slugs; `seconds` and units are of the verification alone.

    `behind` had aggregates, `reindexed` a search index, that lacked what the restored moment had not counted yet, or
    that were wrong then; a rebuild has made them right. `wrong` and `unknown` are sentences. `left_out` lie in silos.
    """

    tenants: int = 0
    tickets: int = 0
    trails: int = 0
    behind: list[str] = field(default_factory=list)
    reindexed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0
    read_units: float = 0.0
    write_units: float = 0.0

    def charged(self, call: meter.Call) -> None:
        """Take note of the capacity units of a request."""
        self.read_units += call.read_units
        self.write_units += call.write_units

    def throttled(self) -> None:
        """Take no note of what was refused."""


class Command(PortalCommand):
    costs = cost(get="tenant", query="placed tenant, tenant by name", per="item")
    help = (
        "Verify everything in the tables of a drill, which DYNAMODB_TABLE_PREFIX names: audit trails, aggregates and "
        "search of all tenants, by verify_audit, verify_aggregates and verify_search. Follows the stream of the "
        "restored tables meanwhile, and rebuilds what was not counted or indexed yet at the restored moment. Refuses "
        "any other tables. Exit status: 0 all right; 1 something is wrong; 3 something cannot be determined."
    )
    again = "Run restore_drill again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--report", type=Path, metavar="FILE", help="where the result goes, as JSON")

    def work(self, options: dict[str, Any]) -> None:
        if not settings.DYNAMODB_TABLE_PREFIX.endswith(point_in_time.SUFFIX):
            raise Conflict("These are the living tables. restore_drill verifies those that it has restored.")
        client.each_client(point_in_time.keep_to_drill)
        self._report = meter.listener = RestoredReport()
        begun = time.monotonic()
        try:
            self._verify()
        finally:
            meter.listener = None
        self._report.seconds = round(time.monotonic() - begun, 1)
        if options["report"]:
            options["report"].write_text(json.dumps(asdict(self._report)))
        if self._report.wrong or self._report.unknown:
            raise CommandError("\n".join(self._report.wrong + self._report.unknown), returncode=self._status())

    def _status(self) -> int:
        return 1 if self._report.wrong else 3

    def _verify(self) -> None:
        report, chosen = self._report, list[str]()
        for tenant in tenant_directory.all_tenants():
            lies_in_silo = Placement.parse(tenant_directory.get(tenant.tenant_id).placement).kind == "silo"
            (report.left_out if lies_in_silo else chosen).append(tenant.name)
        report.tenants = len(chosen)
        report.trails = self._trails()
        if not chosen:
            return
        with _following():
            for one in self._judged("verify_aggregates", chosen, "--repair", "--take-over"):
                report.tickets += one["tickets"]
                if one["repaired"]:
                    report.behind.append(one["tenant"])
                elif one["state"] != verify.OK:
                    self._note(f"The aggregates of {one['tenant']}", one, is_unknown=one["state"] == verify.UNKNOWN)
                if one["uncountable"]:
                    report.wrong.append(f"{one['tenant']} has tickets that cannot be counted: {one['uncountable']}.")
            self._search(chosen)

    def _search(self, chosen: list[str]) -> None:
        found = {one["tenant"]: one for one in self._judged("verify_search", chosen)}
        lacking = [slug for slug, one in found.items() if one["state"] != index_check.OK]
        if lacking:
            self._run("rebuild_search", *_named(lacking))
            found |= {one["tenant"]: one for one in self._judged("verify_search", lacking)}
        for slug in lacking:
            if found[slug]["state"] == index_check.OK:
                self._report.reindexed.append(slug)
            else:
                is_unknown = found[slug]["state"] == index_check.UNKNOWN
                self._note(f"The search index of {slug}", found[slug], is_unknown=is_unknown)

    def _note(self, what: str, verdict: dict[str, Any], *, is_unknown: bool) -> None:
        if is_unknown:
            self._report.unknown.append(f"{what}: cannot be verified, because {verdict['why']}.")
        else:
            self._report.wrong.append(f"{what}: wrong, also after a rebuild.")

    def _trails(self) -> int:
        status, lines = self._run("verify_audit", "--all")
        if status:
            broken = [line for line in lines if not line.partition(", fingerprint")[0].endswith("chain intact")]
            self._report.wrong += [f"Audit trail: {line}" for line in broken]
        return len(lines)

    def _judged(self, name: str, slugs: list[str], *options: str) -> list[dict[str, Any]]:
        status, lines = self._run(name, *_named(slugs), "--json", *options)
        if not lines:
            self._report.wrong.append(f"{name} ended with status {status}.")
        found: list[dict[str, Any]] = json.loads("\n".join(lines) or "[]")
        return found

    def _run(self, name: str, *arguments: str) -> tuple[int, list[str]]:
        """Run a command whose lines go to stderr here, and return its status and what it printed."""
        out = StringIO()
        try:
            call_command(name, *arguments, stdout=out, stderr=self.stderr)
        except CommandError as error:
            if error.returncode == INTERRUPTED:
                raise KeyboardInterrupt from error
            self.stderr.write(f"{name}: {error}")
            return error.returncode, out.getvalue().splitlines()
        return 0, out.getvalue().splitlines()


def _named(slugs: list[str]) -> Iterator[str]:
    return (word for slug in slugs for word in ("--tenant", slug))


@contextmanager
def _following() -> Iterator[None]:
    """Count and index what comes by the streams of the restored tables: of them alone, and with no other work of a
    stream worker, which could reach silos, queues or objects."""
    stop = threading.Event()
    here = [POOLED, *(one for one in stream_source.placed() if one.placement != POOL and not one.placement.site)]
    with ExitStack() as stack:
        for source in here:
            thread = threading.Thread(target=partial(_follow, source, stop), name=f"poller of {source}")
            stack.callback(thread.join)
            thread.start()
        stack.callback(stop.set)
        stack.enter_context(ticket_stream.merges.running())
        yield


def _follow(source: StreamSource, stop: threading.Event) -> None:
    with source.entered():
        Poller(TICKETS, ticket_stream.handle, if_lost=ticket_stream.IF_LOST).run(lambda: not stop.is_set())
