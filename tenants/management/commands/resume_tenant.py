"""`manage.py resume_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import tenant_directory


class Command(PortalCommand):
    help = "Resume a tenant. Its members go on at their next click. Where that is so already, nothing happens."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="which tenant")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        if tenant.status == tenant_directory.ACTIVE:
            self.stdout.write(f"{tenant.name} is {tenant.status} already.")
            return
        tenant_lifecycle.set_status(tenant.tenant_id, tenant_directory.ACTIVE, by=Actor(origin="resume_tenant"))
        self.stdout.write(f"{tenant.name} is at work again now.")
