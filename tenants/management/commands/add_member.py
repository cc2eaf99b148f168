"""`manage.py add_member`: somebody with an account joins a tenant."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.management.commands.create_tenant import account
from tenants.membership import members
from tenants.tenancy import tenant_directory
from tenants.tenancy.roles import Role


class Command(PortalCommand):
    help = (
        "Make somebody a member of a tenant; it counts at their next click. Who is a member already keeps the role, "
        "and the command ends with exit status 1."
    )
    again = "The membership may exist already; run it again to see."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address of the account")
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="which tenant")
        parser.add_argument(
            "--role",
            required=True,
            choices=[role.value for role in Role],
            help="viewer reads, agent works tickets, admin runs the tenant, owner may also give it away",
        )

    def work(self, options: dict[str, Any]) -> None:
        user, tenant, role = account(options["email"]), tenant_directory.find(options["tenant"]), Role(options["role"])
        members.add(
            user=user,
            tenant_id=tenant.tenant_id,
            tenant_name=tenant.name,
            tenant_slug=tenant.slug,
            role=role,
            by=Actor(origin="add_member"),
        )
        self.stdout.write(f"{user.name} is {role.value} in {tenant.name} now.")
