"""Add to a tenant's page whether its deliveries go out, and the buttons that pause, drain, resume and drop them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.urls import reverse
from django.utils.text import capfirst

from delivery.queues import holds
from delivery.queues.stored import EVERYTHING, HoldItem
from portal import clock
from portal.nosql.admin import Notice, ObjectAction
from portal.schema.access_patterns import cost
from tenants.admin.admin_lists import first_few
from tenants.admin.tenant_admin import TenantAdmin
from tenants.operators.facades import Tenant
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import tenant_directory

NOTICED: Final = 5  # tenants that the front page names
_PAUSE = ObjectAction(
    "_pause_deliveries",
    "Pause deliveries",
    "Everything that leaves this desk waits, from a few seconds from now on. What waits longer than 30 days is lost.",
    needs_reason=True,
)
_DRAIN = ObjectAction(
    "_drain_deliveries",
    "Drain deliveries",
    "What was written until now still goes out. What comes later waits; what waits longer than 30 days is lost.",
    needs_reason=True,
)
_RESUME = ObjectAction("_resume_deliveries", "Resume deliveries", "Everything goes out again, what waited as well.")
_DROP = ObjectAction(
    "_drop_deliveries",
    "Drop deliveries",
    "What was written until now and is not delivered yet never will be. This cannot be taken back.",
    needs_reason=True,
)
_ACTS: Final = {
    _PAUSE.name: holds.pause,
    _DRAIN.name: holds.drain,
    _RESUME.name: holds.resume,
    _DROP.name: holds.drop,
}

admin.site.unregister(Tenant)


@admin.register(Tenant)
class HeldTenantAdmin(TenantAdmin):
    get_costs = cost(
        get="hold of deliveries",
        query="audit rows by object, invitation, placed tenant, tenant by name",
        trips=6,
        reads=10,
    )
    post_costs = cost(
        get="hold of deliveries, invitation, suppressed address",
        query="auditor, given queues, invitation, member, tenant by name",
        write="attempts, audit row, closing tenant, given queues, hold of deliveries, invitation, invitation link, "
        "invited, membership, queue set, slug, suspended tenant, tenant, tenant by name",
        trips=13,
        reads=20,
        writes=40,
    )
    object_actions = (*TenantAdmin.object_actions, _PAUSE, _DRAIN, _RESUME, _DROP)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        fields = super().get_fields(request, obj)
        return fields if obj is None else (*fields, "deliveries")

    @admin.display(description="deliveries")
    def deliveries(self, obj: Any) -> str:
        return f"{capfirst(holds.said(self._hold_of(obj)))}."

    def offered_actions(self, request: Any, obj: Any) -> list[ObjectAction]:
        hold = self._hold_of(obj)
        waits = hold.waits_from if hold else None
        if not waits:
            ours = [_PAUSE, _DRAIN, _DROP]
        elif waits == EVERYTHING:
            ours = [_RESUME, _DRAIN, _DROP]
        else:
            ours = [_RESUME, _PAUSE, _DROP]
        return [*super().offered_actions(request, obj), *ours]

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        if action not in _ACTS:
            return super().perform(request, obj, action, reason=reason)
        _ACTS[action](tenant_directory.get(obj.tenant_id), by=actor(request), reason=reason)
        return f"Deliveries of {obj.name} are {holds.said(holds.hold_of(obj.tenant_id))}."

    def _hold_of(self, obj: Any) -> HoldItem | None:
        if not hasattr(obj, "delivery_hold"):
            obj.delivery_hold = holds.hold_of(obj.tenant_id)
        hold: HoldItem | None = obj.delivery_hold
        return hold


@OperatorSite.watches
def held_tenants() -> list[Notice]:
    """Name the first tenants whose deliveries wait: one Query."""
    more = Notice(26, "Deliveries of more tenants are held back.")
    return first_few(holds.waiting(limit=NOTICED + 1), _held, most=NOTICED, more=more)


def _held(hold: HoldItem) -> Notice:
    since = f"{clock.parse(hold.changed_at):%d %b %Y, %H:%M} UTC"
    text = f"Deliveries of {hold.title or hold.name} have been held back since {since}. After 30 days they are lost."
    return Notice(25, text, reverse("admin:tenants_tenant_change", args=[hold.name]))
