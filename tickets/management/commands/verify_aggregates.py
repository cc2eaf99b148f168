"""`manage.py verify_aggregates`: recounts the tickets and says where the aggregates differ."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from tickets.counting import rebuild, verify
from tickets.counting.verify import Verdict
from tickets.management import tenant_option
from tickets.management.commands.rebuild_aggregates import run_rebuild, seconds
from tickets.management.tenant_option import Chosen

CANNOT_TELL = 3
SHOWN = 40  # differences of one tenant; --json has them all


class Command(PortalCommand):
    help = (
        "Recount the tickets of tenants and compare with the aggregates that the stream worker keeps. Changes nothing, "
        "unless --repair is given. Exit status: 0 all right; 1 drift, named by tenant, item and count, unless it was "
        "repaired; 3 cannot be told now, because the numbers keep changing or the stream worker is behind."
    )
    again = "Run it again."

    def add_arguments(self, parser: CommandParser) -> None:
        tenant_option.add_arguments(parser)
        parser.add_argument(
            "--settle",
            type=seconds,
            default=verify.SETTLE,
            metavar="SECONDS",
            help="how long a difference must stand still, or the worker may take to catch up (%(default)s)",
        )
        parser.add_argument("--repair", action="store_true", help="rebuild the tenants that drift")
        parser.add_argument("--json", action="store_true", help="print the result for machines")

    def work(self, options: dict[str, Any]) -> None:
        found: list[tuple[Chosen, Verdict, bool]] = []
        for tenant in tenant_option.chosen(options):
            verdict = self._verify(tenant, options)
            repaired = verdict.state == verify.DRIFT and options["repair"]
            if repaired:
                write = self.stderr.write if options["json"] else self.stdout.write
                run_rebuild(self, tenant, timeout=rebuild.TIMEOUT, settle=options["settle"], write=write)
            found.append((tenant, verdict, repaired))
        if options["json"]:
            self.stdout.write(json.dumps([_document(*one) for one in found], indent=1))
        drifting = [tenant.slug for tenant, v, repaired in found if v.state == verify.DRIFT and not repaired]
        unknown = [tenant.slug for tenant, v, _ in found if v.state == verify.UNKNOWN]
        if drifting:
            raise CommandError(f"The aggregates of {_names(drifting)} are wrong. Run it with --repair.")
        if unknown:
            raise CommandError(f"{_names(unknown)} cannot be verified now.", returncode=CANNOT_TELL)
        if not options["json"]:
            tickets = sum(v.tickets for _, v, _ in found)
            self.stdout.write(f"{len(found):,} tenants, {tickets:,} tickets: nothing is wrong.")

    def _verify(self, tenant: Chosen, options: dict[str, Any]) -> Verdict:
        repository = tenant.repository
        with Progress(self, f"Recounting {tenant.slug}", verify.last_number(repository)) as progress:
            verdict = verify.verify(repository, settle=options["settle"], advance=progress.advance)
        if not options["json"]:
            self._say(tenant.slug, verdict)
        return verdict

    def _say(self, slug: str, verdict: Verdict) -> None:
        if verdict.state == verify.UNKNOWN:
            self.stdout.write(f"{slug}: cannot be verified now, because {verdict.why}.")
        for one in verdict.differences[:SHOWN]:
            self.stdout.write(f"{slug}: {one.item} {one.count}: stored {one.stored:,}, recounted {one.recounted:,}")
        if len(verdict.differences) > SHOWN:
            self.stdout.write(f"{slug}: and {len(verdict.differences) - SHOWN:,} more counts")
        for number in verdict.uncountable[:SHOWN]:
            self.stdout.write(f"{slug}: ticket {number} holds what cannot be counted, and is in no number.")


def _document(tenant: Chosen, verdict: Verdict, repaired: bool) -> dict[str, Any]:
    return {"tenant": tenant.slug, **asdict(verdict), "repaired": repaired}


def _names(slugs: list[str]) -> str:
    return ", ".join(slugs[:10]) + (f" and {len(slugs) - 10} more" if len(slugs) > 10 else "")
