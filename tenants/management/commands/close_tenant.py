"""`manage.py close_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal import clock
from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import closing_mails, desk_closing
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantStatus


class Command(PortalCommand):
    help = (
        "Close a tenant: it can only be read from now on, its owners get a mail, and once the grace is over it may be "
        "purged. Nothing is deleted by this; reopen_tenant undoes it. A tenant that is closing already is left so."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the slug of the tenant")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the tenant's audit trail")
        parser.add_argument("--days", type=int, metavar="N", help="days of grace (CLOSING_DAYS)")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        if tenant.status == TenantStatus.CLOSING:
            stands = clock.parse(tenant.closes_at)
            if options["days"] is not None:
                raise CommandError(
                    f"{tenant.name} is already closed. To give it another grace: reopen_tenant {tenant.slug} first."
                )
            self.stdout.write(
                f"{tenant.name} is already closed. It may be deleted from {stands:%-d %B %Y, %H:%M} UTC on."
            )
            return
        by = Actor(origin="close_tenant")
        until = desk_closing.close(
            tenant.tenant_id, by=by, write=closing_mails.to_owners, reason=options["reason"], days=options["days"]
        )
        self.stdout.write(f"{tenant.name} is closed. It may be deleted from {until:%-d %B %Y, %H:%M} UTC on.")
