"""`manage.py rename_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tenants.management.tenant_change import TenantChangeCommand
from tenants.membership import members
from tenants.tenancy import context
from tenants.tenancy.context import Role
from tenants.tenancy.stored import TenantItem


class Command(TenantChangeCommand):
    costs = cost(
        get="slug, tenant",
        query="auditor, member",
        write="audit row, membership, slug, tenant, tenant by name",
        reads=20,
        writes=50,
    )
    help = (
        "Give a tenant another short name, as its owners can in its settings. For one whose name has become the "
        "beginning of other addresses with a new version: nobody reaches its pages under it. Mail to the former name "
        "still comes to it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the slug of the tenant")
        parser.add_argument("new", metavar="NEW", help="its new slug")

    def change(self, tenant: TenantItem, options: dict[str, Any], *, by: Actor) -> str:
        if options["new"] == tenant.slug:
            return f"{tenant.name} has the slug {tenant.slug} already."
        owner = next(
            iter(members.owners_of(context.of_tenant(tenant, role=Role.OWNER, user_id="", user_name="").repository)),
            None,
        )
        if owner is None:
            raise CommandError(f"{tenant.name} has no owner. Add one first: add_member.")
        desk = context.of_tenant(tenant, role=Role.OWNER, user_id=owner.id, user_name=owner.name)
        desk_settings.rename(desk, name=tenant.name, slug=options["new"], by=by)
        return f"{tenant.name} is {options['new']} from now on, and no longer {tenant.slug}."
