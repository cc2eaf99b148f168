"""List the deliveries that are dead, replay or drop them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.urls import reverse

from delivery.admin.facades import DeadDelivery
from delivery.consuming import dead_deliveries
from portal.errors import PortalError, Unavailable
from portal.nosql.admin import DynamoAdmin, Notice, ObjectAction
from tenants.admin.named_columns import NamedColumns
from tenants.admin.partition_filters import TenantInput
from tenants.operators.operator_site import OperatorSite, actor

NOTICED = 10  # dead deliveries that the front page counts


@admin.register(DeadDelivery)
class DeadDeliveryAdmin(NamedColumns, DynamoAdmin):
    may_change = True
    list_display = ("__str__", "at", "tenant", "event_type", "subject", "destination", "reason")
    list_filter = (TenantInput,)
    fields = readonly_fields = (
        "at", "tenant", "event_type", "subject", "destination", "reason", "event_id", "timestamp",
    )  # fmt: skip
    actions = ("replay", "drop")
    object_actions = (
        ObjectAction("_replay", "Replay", "Sends it again, with all its attempts before it, and removes it here."),
        ObjectAction("_drop", "Drop", "Removes it; it is not delivered."),
    )

    @admin.action(description="Replay: deliver them after all")
    def replay(self, request: Any, queryset: Any) -> None:
        self._each(request, queryset, replay=True)

    @admin.action(description="Drop: they are not delivered")
    def drop(self, request: Any, queryset: Any) -> None:
        self._each(request, queryset, replay=False)

    def _each(self, request: Any, queryset: Any, *, replay: bool) -> None:
        done = 0
        for obj in queryset:
            try:
                (dead_deliveries.replay if replay else dead_deliveries.drop)(obj.dead_delivery, by=actor(request))
                done += 1
            except Unavailable:
                raise
            except PortalError as error:
                messages.error(request, f"{obj}: {error.message}")
        messages.success(request, f"{done} {'replayed' if replay else 'dropped'}.")

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        if action == "_replay":
            dead_deliveries.replay(obj.dead_delivery, by=actor(request))
            return "It is sent again."
        dead_deliveries.drop(obj.dead_delivery, by=actor(request))
        return "It is dropped."

    def performed_url(self, request: Any) -> str:
        return reverse("admin:delivery_deaddelivery_changelist")


@OperatorSite.watches
def waiting_dead_deliveries() -> list[Notice]:
    """Report dead deliveries, counted up to a few."""
    number = len(DeadDelivery.objects.all()[: NOTICED + 1])
    if not number:
        return []
    many = f"More than {NOTICED}" if number > NOTICED else str(number)
    text = f"{many} {'delivery is' if number == 1 else 'deliveries are'} dead: nobody tries again."
    return [Notice(21, text, reverse("admin:delivery_deaddelivery_changelist"), "error")]
