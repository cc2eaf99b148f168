"""Add to a tenant's page whether its deliveries go out, and the buttons that pause, drain, resume and drop them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin

from delivery.holding import holding
from portal.nosql.admin import ObjectAction
from tenants.admin.tenant_admin import TenantAdmin
from tenants.operators.facades import Tenant
from tenants.operators.operator_site import actor
from tenants.tenancy import tenant_directory

_PAUSE = ObjectAction(
    "_pause_deliveries",
    "Pause deliveries",
    "What leaves this desk waits, up to 30 days. Within some seconds; what is being delivered is finished.",
    needs_reason=True,
)
_DRAIN = ObjectAction(
    "_drain_deliveries",
    "Drain deliveries",
    "What was written until now goes out, what comes later waits.",
    needs_reason=True,
)
_RESUME = ObjectAction("_resume_deliveries", "Resume deliveries", "Everything goes out again, what waited too.")
_DROP = ObjectAction(
    "_drop_deliveries",
    "Drop deliveries",
    "What was written until now and is not delivered yet never is. This cannot be taken back.",
    needs_reason=True,
)
_ACTS: Final = {
    _PAUSE.name: holding.pause,
    _DRAIN.name: holding.drain,
    _RESUME.name: holding.resume,
    _DROP.name: holding.drop,
}

admin.site.unregister(Tenant)


@admin.register(Tenant)
class HeldTenantAdmin(TenantAdmin):
    object_actions = (*TenantAdmin.object_actions, _PAUSE, _DRAIN, _RESUME, _DROP)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        fields = super().get_fields(request, obj)
        return fields if obj is None else (*fields, "deliveries")

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if obj is None else (*fields, "deliveries")

    @admin.display(description="deliveries")
    def deliveries(self, obj: Any) -> str:
        return holding.state_of(obj.tenant_id)

    def offered_actions(self, request: Any, obj: Any) -> list[ObjectAction]:
        return [*super().offered_actions(request, obj), _PAUSE, _DRAIN, _RESUME, _DROP]

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        if action not in _ACTS:
            return super().perform(request, obj, action, reason=reason)
        _ACTS[action](tenant_directory.get(obj.tenant_id), by=actor(request), reason=reason)
        return f"Deliveries of {obj.name}: {holding.state_of(obj.tenant_id)}"
