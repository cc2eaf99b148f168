"""`manage.py suspend_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import tenant_directory


class Command(PortalCommand):
    help = (
        "Suspend a tenant. Its members see a page that says so at their next click; nothing is removed. "
        "Where that is so already, nothing happens."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="which tenant")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        if tenant.status == tenant_directory.SUSPENDED:
            self.stdout.write(f"{tenant.name} is {tenant.status} already.")
            return
        tenant_lifecycle.set_status(tenant.tenant_id, tenant_directory.SUSPENDED, by=Actor(origin="suspend_tenant"))
        self.stdout.write(f"{tenant.name} is suspended now.")
