"""Share what commands do that change the state of one tenant for a reason."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem


class TenantChangeCommand(PortalCommand):
    """A command that changes one tenant, and prints one sentence about it."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the slug of the tenant")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the tenant's audit trail")

    def work(self, options: dict[str, Any]) -> None:
        by = Actor(origin=self.__module__.rpartition(".")[2])
        self.stdout.write(self.change(tenant_directory.find(options["slug"]), options, by=by))

    def change(self, tenant: TenantItem, options: dict[str, Any], *, by: Actor) -> str:
        """Change the tenant, and return a sentence about it."""
        raise NotImplementedError
