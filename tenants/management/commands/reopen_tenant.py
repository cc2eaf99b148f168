"""`manage.py reopen_tenant`."""

from __future__ import annotations

from typing import Any

from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import closing_mails, desk_closing
from tenants.management.tenant_change import TenantChangeCommand
from tenants.tenancy.stored import TenantItem


class Command(TenantChangeCommand):
    costs = cost(
        get="slug, tenant",
        query="member",
        write="audit row, closing tenant, tenant, tenant by name",
        reads=10,
        writes=25,
    )
    help = "Undo the closing of a tenant, as long as its purge has not begun. It is again what it was before."

    def change(self, tenant: TenantItem, options: dict[str, Any], *, by: Actor) -> str:
        status = desk_closing.reopen(tenant.tenant_id, by=by, write=closing_mails.to_owners, reason=options["reason"])
        return f"{tenant.name} is {status} again."
