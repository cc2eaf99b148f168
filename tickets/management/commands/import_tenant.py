"""`manage.py import_tenant`: a tenant from the file that export_tenant has written, or the end of such an import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.errors import Conflict
from portal.mailing.outgoing import OutgoingMail
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_closing, import_notes
from tenants.lifecycle.tenant_import import TenantImport
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.stored import TenantStatus
from tickets.purging import purge_requests

BY = Actor(origin="import_tenant")
ABANDONED = "Its import was abandoned."


class Command(PortalCommand):
    costs = cost(
        get="account, address, arriving tenant, audit chain, purge, slug, tenant",
        query="arriving tenant, given queues, member, placed tenant, purge",
        write="*",
        per="item",
        reads=15,
        writes=20,
        each=(0, 1.5, 3),
    )
    help = (
        "Bring a tenant in from the file that export_tenant has written. Nothing is written before the whole file is "
        "found to be as it was written, the chain of its audit trail included. Members are known by their addresses; "
        "who has no account gets one without a password. The stream worker counts and indexes the tickets. Exit "
        "status: 0 all of it is here; 1 refused or stopped by an error; 130 stopped by Ctrl-C."
    )
    again = "Run it again, and it goes on where it was."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("file", nargs="?", type=Path, metavar="FILE", help="what export_tenant has written")
        what.add_argument(
            "--abandon",
            metavar="SLUG",
            help="give up the import that was refused or broken off: what it has written is deleted, and the short "
            "name is free. Needs a running stream worker, like purge_tenant",
        )
        parser.add_argument("--as", dest="slug", default="", metavar="SLUG", help="under this short name")
        parser.add_argument("--new-id", action="store_true", help="under another id; API keys stay behind then")
        parser.add_argument("--on", default="pool", metavar="PLACEMENT", help="pool, bridge or silo/NAME (pool)")

    def work(self, options: dict[str, Any]) -> None:
        if options["abandon"]:
            self._abandon(options["abandon"], placements.chosen(options["on"]))
        else:
            self._bring_in(options)

    def _abandon(self, slug: str, placement: Placement) -> None:
        """Give up an import. The items of the tenant are purged like any tenant's, with a certificate.

        Where it was broken off between its own tables and its item, nothing but `placement` says that there are some.
        """
        note, purge = import_notes.under_way(slug), purge_requests.by_slug(slug)
        if note is None and (purge is None or purge.reason != ABANDONED):
            raise CommandError(f"No import of {slug} is under way.")
        if note is not None and purge is not None and purge.tenant_id != note.tenant_id:
            raise CommandError(f"Another tenant of this short name is being purged. First: purge_tenant {slug}.")
        named = slug  # the name that the tenant has by now: its members may have changed it
        if note is not None and (purge is None or purge.state == purge_requests.ORDERED):
            tenant = import_notes.give_up(note)
            if tenant is None:
                if placement != POOL and import_notes.is_nobodys(note.tenant_id):
                    provisioning.delete_placed(note.tenant_id, placement)
                stays = " A desk that has its id stays." if tenant_directory.get_many([note.tenant_id]) else ""
                self.stdout.write(
                    f"The import of {slug} is given up. Nothing of it was here but its short name.{stays}"
                )
                return
            named = tenant.slug
            if tenant.status not in (TenantStatus.CLOSING, TenantStatus.PURGING):
                desk_closing.close(
                    tenant.tenant_id, by=BY, write=_to_nobody, reason=ABANDONED, days=0, given_up=note.import_id
                )
        call_command("purge_tenant", named, now=True, reason=ABANDONED, stdout=self.stdout, stderr=self.stderr)
        self.stdout.write(f"The import of {slug} is given up.")

    def _bring_in(self, options: dict[str, Any]) -> None:
        with Progress(self, "Importing", None) as progress:
            run = TenantImport(
                options["file"],
                by=BY,
                slug=options["slug"],
                new_id=options["new_id"],
                placement=placements.chosen(options["on"]),
                begun=lambda step, lines: progress.label(f"Importing: {step}, {amount(lines, 'item')}"),
                advance=progress.advance,
                refuse=_refuse_purged,
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
            f"{amount(arrived.items, 'item')}. The stream worker (manage.py run_stream) counts and indexes the tickets."
        )


def _refuse_purged(tenant_id: str) -> None:
    """Raise Conflict where a purge of the tenant has not ended: it would delete what is brought in."""
    purge = purge_requests.PURGES.last(tenant_id)
    if purge is not None and purge.state != purge_requests.ORDERED:
        raise Conflict(f"This tenant is being purged. Let that end first: purge_tenant {purge.slug}.")


def _to_nobody(*_: Any, **__: Any) -> list[OutgoingMail]:
    """Write no mail: a desk that is half here has nobody yet who waits for it."""
    return []
