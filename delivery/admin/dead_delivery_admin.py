"""List the deliveries that are dead, replay or drop them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from delivery.admin.facades import DeadDelivery
from delivery.queues import dead_deliveries
from portal.nosql.admin import Notice, ObjectAction
from tenants.admin import admin_lists
from tenants.admin.admin_lists import DeadItemAdmin, with_id
from tenants.operators.operator_site import OperatorSite


@admin.register(DeadDelivery)
class DeadDeliveryAdmin(DeadItemAdmin):
    list_display = ("__str__", "at", "tenant", "event", "reason")
    fields = readonly_fields = (
        "at", "tenant", "event", "destination", "reason", "event_id", "timestamp",
    )  # fmt: skip
    object_actions = (
        ObjectAction("_replay", "Replay", "Sends it again, with all its attempts before it, and removes it here."),
        ObjectAction("_drop", "Drop", "Removes it; it is never delivered. This cannot be taken back.", asks=True),
    )
    replayed = "It is sent again."

    @admin.display(description="event")
    def event(self, obj: Any) -> Any:
        return with_id(obj.event_type, f"{obj.subject.replace('/', ' ')} to {obj.destination}")

    def replay_one(self, obj: Any, *, by: Any) -> None:
        dead_deliveries.replay(obj.dead_delivery, by=by)

    def drop_one(self, obj: Any, *, by: Any) -> None:
        dead_deliveries.drop(obj.dead_delivery, by=by)


@OperatorSite.watches
def waiting_dead_deliveries() -> list[Notice]:
    """Report dead deliveries."""
    nobody = "nobody tries again."
    return admin_lists.notice(
        DeadDelivery, 21, one=f"delivery is dead: {nobody}", many=f"deliveries are dead: {nobody}"
    )
