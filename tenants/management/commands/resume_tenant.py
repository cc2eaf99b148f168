"""`manage.py resume_tenant`."""

from __future__ import annotations

from typing import Any

from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.management.tenant_change import TenantChangeCommand
from tenants.tenancy.stored import TenantItem, TenantStatus


class Command(TenantChangeCommand):
    costs = cost(get="slug, tenant", write="audit row, suspended tenant, tenant, tenant by name", reads=8, writes=25)
    help = "Resume a suspended tenant. Its members can work again at once. An active tenant is left as it is."

    def change(self, tenant: TenantItem, options: dict[str, Any], *, by: Actor) -> str:
        if tenant.status == TenantStatus.ACTIVE:
            return f"{tenant.name} is already active."
        tenant_lifecycle.resume(tenant.tenant_id, by=by, reason=options["reason"])
        return f"{tenant.name} is active again."
