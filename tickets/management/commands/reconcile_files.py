"""`manage.py reconcile_files`: deletes copies of files that no ticket names."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.errors import Conflict
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount, file_size
from portal.schema.access_patterns import cost
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantStatus
from tickets.attachments import orphaned_copies
from tickets.attachments.orphaned_copies import CopiesFound


class Command(PortalCommand):
    costs = cost(get="slug, tenant", query="file, tenant by name", per="desk", reads=20, each=(0, 3, 0))
    help = (
        "Compare the files in the bucket with the tickets of the desks, and delete those that no ticket names: a "
        "process that was killed while it attached them has left them. Files of the last hour are left alone. Run it "
        "each week."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="look at this desk alone")

    def work(self, options: dict[str, Any]) -> None:
        if options["tenant"]:
            tenant = tenant_directory.find(options["tenant"])
            self._say(f"{tenant.slug}: ", orphaned_copies.delete_of(tenant.tenant_id))
            return
        total, moving = CopiesFound(), 0
        active = [one for one in tenant_directory.all_tenants() if one.status == TenantStatus.ACTIVE]
        with Progress(self, "comparing", len(active)) as progress:
            for one in active:
                try:
                    found = orphaned_copies.delete_of(one.tenant_id)
                except Conflict:
                    moving += 1
                    continue
                finally:
                    progress.advance()
                total.copies += found.copies
                total.orphans, total.size = total.orphans + found.orphans, total.size + found.size
        self._say("", total)
        if moving:
            self.stdout.write(f"Not looked at, since they are being moved or brought in: {amount(moving, 'desk')}.")

    def _say(self, begin: str, found: CopiesFound) -> None:
        deleted = f"{found.orphans:,} that no ticket names are deleted" if found.orphans else "a ticket names each"
        size = f" ({file_size(found.size)})" if found.orphans else ""
        self.stdout.write(f"{begin}{amount(found.copies, 'file')} older than an hour: {deleted}{size}.")
