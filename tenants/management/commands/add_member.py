"""`manage.py add_member`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.management.commands.create_tenant import account
from tenants.membership import member_changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import MEMBER_ROLES, Role


class Command(PortalCommand):
    costs = cost(
        get="account, address, slug, tenant", write="audit row, member, membership, tenant", reads=12, writes=25
    )
    help = (
        "Add the owner of an account to a tenant, from their next click on. Somebody who is a member already keeps the "
        "same role, and the exit status is 1."
    )
    again = "The member may have been added. Run the command again to find out."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address of the account")
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="the slug of the tenant")
        parser.add_argument(
            "--role",
            required=True,
            choices=[role.value for role in MEMBER_ROLES],
            help="a viewer reads tickets, an agent works them, an admin manages people, an owner also the settings",
        )

    def work(self, options: dict[str, Any]) -> None:
        user, tenant, role = account(options["email"]), tenant_directory.find(options["tenant"]), Role(options["role"])
        member_changes.add(user=user, tenant=tenant, role=role, by=Actor(origin="add_member"))
        self.stdout.write(f"{user.name} is now {role.with_article} in {tenant.name}.")
