"""`manage.py resume_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantStatus


class Command(PortalCommand):
    help = "Resume a suspended tenant. Its members can work again at once. An active tenant is left as it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the slug of the tenant")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the tenant's audit trail")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        if tenant.status == TenantStatus.ACTIVE:
            self.stdout.write(f"{tenant.name} is already active.")
            return
        tenant_lifecycle.resume(tenant.tenant_id, by=Actor(origin="resume_tenant"), reason=options["reason"])
        self.stdout.write(f"{tenant.name} is active again.")
