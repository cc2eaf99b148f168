"""`manage.py restore_drill`: restores all tables beside the living ones, verifies them, and says how long it took."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from portal import clock
from portal.dynamo import library_errors, point_in_time
from portal.dynamo.point_in_time import PointInTime, Source
from portal.engines.processes import Child
from portal.errors import PortalError
from portal.hosting import prices
from portal.isolation import policies
from portal.management import demo_processes
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from portal.web import moments
from tenants.audit_trail import drills, recording
from tenants.audit_trail.drills import Drill, DrillResult
from tenants.audit_trail.recording import Actor
from tenants.audit_trail.stored import AUDIT, CHAINS
from tickets.management.commands.verify_restored import RestoredReport

_STOP_SECONDS: Final = 20.0
_READS_OF_BYTE: Final = 3 / 4096  # units, at most: trails, tickets for aggregates and for the search


@dataclass
class DrillReport:
    """The result of a drill. `restored_to` is "" for a copy of now; `seconds` are by phase, `lost` those of the RPO."""

    tables: int
    size: int
    restored_to: str
    lost: float | None
    seconds: dict[str, float] = field(default_factory=dict)
    dollars: float = 0.0
    verified: RestoredReport = field(default_factory=RestoredReport)


class Command(PortalCommand):
    costs = cost(per="item", get="*", query="*", write="audit row")
    help = (
        "Restore all tables to a moment, into tables of another prefix beside the living ones, verify audit trails, "
        "aggregates and search of all tenants there, say how much would have been lost (RPO), how long it took (RTO) "
        "and what it cost, and delete those tables. The living tables are only read, by the restore. Deletes first "
        "what a drill that was killed has left. On the embedded engine it restores a copy of now. Exit "
        "status: 0 all right; 1 refused, or something is wrong, by name; 3 something cannot be determined; 130 stopped."
    )
    again = "Run restore_drill --clean: it deletes what this one has left, also tables that are still being restored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--at", metavar="MOMENT", help="2026-11-20T10:00:00, in UTC; without it the latest one")
        parser.add_argument("--keep", action="store_true", help="leave the restored tables, to restore from them")
        parser.add_argument("--json", action="store_true", help="print the result for machines")
        instead = parser.add_mutually_exclusive_group()
        instead.add_argument("--price", action="store_true", help="say about what it would cost, and do nothing")
        instead.add_argument("--clean", action="store_true", help="delete the tables that a drill has left")
        instead.add_argument("--policy", action="store_true", help="print the IAM policy that the drill needs")

    def work(self, options: dict[str, Any]) -> None:
        self._write = self.stderr.write if options["json"] else self.stdout.write
        if options["policy"]:
            self.stdout.write(json.dumps(policy(), indent=2))
            return
        tables = PointInTime()
        if options["clean"]:
            self._remove(tables)
            return
        sources = tables.sources()
        size = sum(one.size for one in sources)
        if options["price"]:
            # Two reads of each ticket, which has at least two items; small reads cost a unit each.
            reads = size * _READS_OF_BYTE + sum(one.items for one in sources)
            for line in _priced(prices.drill(size, reads=reads, writes=0, seconds=3600)):
                self._write(line)
            return
        moment = tables.moment(sources, moments.moment(options["at"]) if options["at"] else "")
        if tables.left():
            self._remove(tables)
        lost = (clock.now() - moment).total_seconds() if moment else None
        report = DrillReport(len(sources), size, clock.stamp(moment) if moment else "", lost)
        try:
            self._restore(tables, sources, moment, report)
            status = self._verify(report)
        except BaseException:
            self._remove_now(tables)
            raise
        if not options["keep"]:
            self._remove(tables)
        bill = self._told(report)
        self._record(report, status)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(report), indent=1))
        for line in bill:
            self._write(line)
        if options["keep"]:
            self._write(f"The restored tables stay: DYNAMODB_TABLE_PREFIX={point_in_time.drill_prefix()}. {self.again}")
        if status:
            raise CommandError("\n".join(report.verified.wrong + report.verified.unknown), returncode=status)

    # --- phases ---

    def _restore(self, tables: PointInTime, sources: list[Source], moment: Any, report: DrillReport) -> None:
        begun = time.monotonic()
        what = f"Restoring {amount(len(sources), 'table')} to {report.restored_to or 'now'}"
        self._write(f"{what}, as {point_in_time.drill_prefix()}.*")
        with Progress(self, "Restoring", len(sources)) as progress:
            tables.restore(sources, moment, done=lambda name: progress.advance())
        tables.turn_streams_on(sources)
        report.seconds["restore"] = round(time.monotonic() - begun, 1)

    def _verify(self, report: DrillReport) -> int:
        """Verify in a process of its own, whose tables are those of the drill and no others. Returns its status."""
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.json"
            command = demo_processes.manage("verify_restored", "--report", str(path))
            child = Child("verification", command, env=_environ())
            try:
                while (status := child.poll()) is None:
                    self.heed()
                    time.sleep(0.1)
            finally:
                child.stop(seconds=_STOP_SECONDS)
            if not path.exists():
                raise CommandError(f"The verification ended with status {status}, and has no result.")
            report.verified = RestoredReport(**json.loads(path.read_text()))
        report.seconds["verify"] = round(time.monotonic() - begun, 1)
        return status

    def _record(self, report: DrillReport, status: int) -> None:
        """Write the result down for owners and operators, where these credentials may."""
        of = report.verified
        drill = Drill(
            {0: DrillResult.RIGHT, 3: DrillResult.UNKNOWN}.get(status, DrillResult.WRONG),
            tables=report.tables,
            trails=of.trails,
            tenants=of.tenants,
            tickets=of.tickets,
            took=round(sum(report.seconds.values()), 1),
            lost="" if report.lost is None else round(report.lost, 1),
        )
        try:
            drills.record(drill, by=Actor(origin="restore_drill"))
        except (PortalError, *library_errors.LIBRARY_ERRORS) as error:
            self._write(f"The result is not in the audit trail of the platform: {error}")

    def _remove(self, tables: PointInTime) -> None:
        left = tables.left()
        with Progress(self, "Deleting", len(left)) as progress:
            tables.remove(done=lambda name: progress.advance())
        self._write(f"Deleted {amount(len(left), 'table')} of the drill.")

    def _remove_now(self, tables: PointInTime) -> None:
        """Delete what can be deleted at once, whatever has ended the drill; that is what is told."""
        with suppress(PortalError, *library_errors.LIBRARY_ERRORS):
            tables.remove(wait=False)

    # --- the report ---

    def _told(self, report: DrillReport) -> list[str]:
        """Return the lines of the report, and note the price."""
        seconds, of = report.seconds, report.verified
        bill = prices.drill(report.size, reads=of.read_units, writes=of.write_units, seconds=sum(seconds.values()))
        report.dollars = round(prices.total(bill), 4)
        return [*_lines(report), *_priced(bill)]


def policy() -> dict[str, Any]:
    """Return the policy of whoever runs the drill: that of its tables, and to write a row of the platform's trail."""
    document = point_in_time.document()
    statement = {
        "Sid": "RecordTheResult",
        "Effect": "Allow",
        "Action": ["dynamodb:BatchGetItem", "dynamodb:PutItem"],
        "Resource": [policies.table_arn(table.full_name) for table in (AUDIT, CHAINS)],
        "Condition": {
            "ForAllValues:StringEquals": {policies.LEADING_KEYS: [recording.PLATFORM]},
            "Null": {policies.LEADING_KEYS: "false"},
        },
    }
    return {**document, "Statement": [*document["Statement"], statement]}


def _environ() -> dict[str, str]:
    """Return the environment of a process on the restored tables. It cannot reach silos, nor objects of the living."""
    prefix = point_in_time.drill_prefix()
    return {
        **os.environ,
        "AWS_REGION": settings.AWS_REGION,
        "DYNAMODB_ENDPOINT_URL": settings.DYNAMODB_ENDPOINT_URL,
        "DYNAMODB_TABLE_PREFIX": prefix,
        "LOG_LEVEL": "WARNING",
        "MAIL_BUCKET": f"{prefix.lower().replace('.', '-')}-none",
        "NOISE_NOTED": "off",
        "SILOS": "{}",
        "TENANT_ROLE_ARN": "",
    }


def _lines(report: DrillReport) -> Iterator[str]:
    of, seconds = report.verified, report.seconds
    if report.lost is None:
        yield "RPO: not measured. This engine copies tables as they are now; only Amazon DynamoDB keeps backups."
    else:
        yield f"RPO: {_duration(report.lost)}; what was written since {report.restored_to} would be lost."
    phases = ", ".join(f"{phase} {_duration(each)}" for phase, each in seconds.items())
    yield f"RTO: {_duration(sum(seconds.values()))} ({phases})."
    yield f"Audit trails: {of.trails:,} verified."
    behind = (
        f"; counted anew, because they were behind at that moment or wrong: {', '.join(of.behind)}" if of.behind else ""
    )
    yield f"Aggregates: {amount(of.tenants, 'tenant')}, {amount(of.tickets, 'ticket')} recounted{behind}."
    anew = f"; indexed anew: {', '.join(of.reindexed)}" if of.reindexed else ""
    yield f"Search: the indexes of {amount(of.tenants, 'tenant')} checked{anew}."
    if of.left_out:
        yield f"Not restored, because they lie in a silo: {', '.join(of.left_out)}."


def _priced(bill: list[prices.BillLine]) -> Iterator[str]:
    parts = ", ".join(f"{line.what} {line.count} ${line.dollars:,.4f}" for line in bill)
    yield f"Cost: ${prices.total(bill):,.4f} ({parts}), at the list prices of us-east-1 of {prices.NOTED}."


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
