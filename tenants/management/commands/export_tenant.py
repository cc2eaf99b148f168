"""`manage.py export_tenant`: all that belongs to a tenant, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import tenant_export
from tenants.tenancy import tenant_directory

BY = Actor(origin="export_tenant")


class Command(PortalCommand):
    costs = cost(
        get="API answer, address of a requester, counter, letter, move, purge, requester, resharding, slug, tenant",
        query="*",
        write="API answer, aggregate, audit row, closing tenant, counter, due row, file, import, import source, "
        "letter, move, move log, past move, placed tenant, purge, request, resharding, tenant, tenant by name, ticket",
        per="item",
        reads=100,
        writes=10,
        each=(0, 2, 2),
    )
    help = (
        "Write all that belongs to a tenant into one file, while its people work: tickets, members, endpoints, keys, "
        "settings and the audit trail. import_tenant brings it in again. The file is there when it is whole. The "
        "export is recorded in the tenant's audit trail. Exit status: 0 all written; 1 stopped by an error; 130 "
        "stopped by Ctrl-C."
    )
    again = "Run it again, and it begins anew."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="which tenant")
        parser.add_argument("file", type=Path, metavar="FILE", help="where to: a zip archive of JSON lines")
        parser.add_argument(
            "--with-secrets",
            action="store_true",
            help="with the secrets of webhooks and the hashes of API keys, without which both have to be made anew",
        )

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        try:
            with Progress(self, "Exporting", None) as progress:
                manifest = tenant_export.export(
                    tenant,
                    options["file"],
                    with_secrets=options["with_secrets"],
                    by=BY,
                    begun=lambda holding: progress.label(f"Exporting: {holding}"),
                    advance=progress.advance,
                )
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be written: {error.strerror}.") from error
        self.stdout.write("Items in the file; a ticket is several of them:")
        for entry in manifest.entries:
            if entry.lines:
                self.stdout.write(f"{entry.lines:>9,} {entry.holding}")
        secrets = "with" if manifest.with_secrets else "without"
        self.stderr.write(
            f"{amount(manifest.lines, 'item')} of {manifest.name}, {secrets} secrets, in {options['file']}."
        )
