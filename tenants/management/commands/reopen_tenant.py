"""`manage.py reopen_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import closing_mails, desk_closing
from tenants.tenancy import tenant_directory


class Command(PortalCommand):
    help = "Undo the closing of a tenant, as long as its purge has not begun. It is again what it was before."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the slug of the tenant")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the tenant's audit trail")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        by = Actor(origin="reopen_tenant")
        status = desk_closing.reopen(tenant.tenant_id, by=by, write=closing_mails.to_owners, reason=options["reason"])
        self.stdout.write(f"{tenant.name} is {status} again.")
