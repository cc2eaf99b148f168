"""`manage.py suspend_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantStatus


class Command(PortalCommand):
    help = (
        "Suspend a tenant. From their next click on, its members see a page that says so. Nothing is deleted. "
        "A tenant that is suspended already is left as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the slug of the tenant")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the tenant's audit trail")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        if tenant.status == TenantStatus.SUSPENDED:
            self.stdout.write(f"{tenant.name} is already suspended.")
            return
        tenant_lifecycle.suspend(tenant.tenant_id, by=Actor(origin="suspend_tenant"), reason=options["reason"])
        self.stdout.write(f"{tenant.name} is suspended.")
