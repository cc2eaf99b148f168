"""`manage.py import_tenant`: a tenant from the file that export_tenant has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.template.defaultfilters import pluralize

from portal.management.command import PortalCommand, Progress
from tenants.audit_trail.recording import Actor
from tenants.tenancy import placements
from tenants.transfer.tenant_import import TenantImport

BY = Actor(origin="import_tenant")


class Command(PortalCommand):
    help = (
        "Bring a tenant in from the file that export_tenant has written. Nothing is written before the whole file is "
        "found to be as it was written, the chain of its audit trail included. Members are known by their addresses; "
        "who has no account gets one without a password. The stream worker counts and indexes the tickets. Exit "
        "status: 0 all of it is here; 1 refused or stopped by an error; 130 stopped by Ctrl-C."
    )
    again = "Run it again: it goes on where it was."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="what export_tenant has written")
        parser.add_argument("--as", dest="slug", default="", metavar="SLUG", help="under this short name")
        parser.add_argument("--new-id", action="store_true", help="under another id; API keys stay behind then")
        parser.add_argument("--on", default="pool", metavar="PLACEMENT", help="pool, bridge or silo/NAME (pool)")

    def work(self, options: dict[str, Any]) -> None:
        with Progress(self, "Importing", None) as progress:
            run = TenantImport(
                options["file"],
                by=BY,
                slug=options["slug"],
                new_id=options["new_id"],
                placement=placements.chosen(options["on"]),
                begun=lambda step, lines: progress.label(f"Importing: {step}, {lines:,} items"),
                advance=progress.advance,
            )
            try:
                arrived = run.run()
            except OSError as error:
                raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from error
        tenant = arrived.tenant
        self.stdout.write(f"{tenant.name} is here as {tenant.slug}, with the id {tenant.tenant_id}.")
        for address in arrived.new_accounts:
            self.stdout.write(f"{address} has a new account, without a password.")
        for holding, many in arrived.left_out.items():
            self.stdout.write(f"Left out: {many:,} of the {holding}.")
        self.stderr.write(
            f"{arrived.items:,} item{pluralize(arrived.items)}. The stream worker (manage.py run_stream) counts and "
            "indexes the tickets."
        )
