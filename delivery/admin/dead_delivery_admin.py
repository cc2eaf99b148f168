"""List the deliveries that are dead, replay or drop them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models

from delivery.queues import dead_deliveries
from delivery.queues.stored import LISTED, DeadDeliveryItem, DeadDeliveryRow
from portal import clock
from portal.nosql.admin import Notice, ObjectAction
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import Get, Query
from portal.schema import keys
from portal.schema.access_patterns import cost
from tenants.admin import admin_lists
from tenants.admin.admin_lists import DeadItemAdmin, with_id
from tenants.operators.operator_site import OperatorSite


class DeadDelivery(Facade):
    """A delivery that was given up."""

    id = models.CharField(primary_key=True, max_length=200)
    tenant_id = models.CharField("tenant", max_length=32)
    letter_id = models.CharField(max_length=80)
    at = models.DateTimeField("given up")
    event_type = models.CharField("event", max_length=60)
    subject = models.CharField("about", max_length=100)
    destination = models.CharField(max_length=100)
    reason = models.TextField()
    event_id = models.CharField("row of the outbox", max_length=80)
    timestamp = models.DateTimeField("told at")
    dead_delivery: DeadDeliveryItem  # what replaying and dropping take

    patterns = (
        Get(DeadDeliveryItem, ("tenant_id", "letter_id"), keys.tenant),
        Query("by tenant", DeadDeliveryItem, ("tenant_id",), keys.tenant, order="letter_id", newest_first=True),
        Query(
            "of all tenants",
            DeadDeliveryItem,
            (),
            lambda: LISTED,
            order="at",
            index=DeadDeliveryRow.gsi,
            newest_first=True,
            tenant=False,
        ),
    )
    content = ("reason",)

    class Meta(Facade.Meta):
        app_label = "delivery"
        verbose_name_plural = "dead deliveries"

    @classmethod
    def from_item(cls, item: Any) -> Any:
        dead_delivery = super().from_item(item)
        dead_delivery.at, dead_delivery.timestamp = clock.parse(item.at), clock.parse(item.timestamp)
        dead_delivery.dead_delivery = item
        return dead_delivery

    def __str__(self) -> str:
        return dead_deliveries.name_of(self.dead_delivery)

    def entity(self) -> tuple[str, str, str]:
        return self.tenant_id, "dead_delivery", keys.anonymous(self.letter_id)


@admin.register(DeadDelivery)
class DeadDeliveryAdmin(DeadItemAdmin):
    get_costs = cost(
        get="dead delivery, slug",
        query="audit rows by object, dead deliveries by time, dead delivery",
        trips=4,
        reads=10,
    )
    post_costs = cost(
        get="dead delivery",
        query="dead deliveries by time",
        write="audit row, dead delivery, outbox row",
        trips=12,
        reads=10,
        writes=40,
    )
    list_display = ("__str__", "at", "tenant", "event", "reason")
    fields = readonly_fields = (
        "at", "tenant", "event", "destination", "reason", "event_id", "timestamp",
    )  # fmt: skip
    object_actions = (
        ObjectAction("_replay", "Replay", "Sends it again, with all its attempts before it, and removes it here."),
        ObjectAction("_drop", "Drop", "Removes it; it is never delivered. This cannot be taken back.", asks=True),
    )
    replayed = "It is sent again. An endpoint that is paused skips it; its desk can send it from the endpoint's page."

    @admin.display(description="event")
    def event(self, obj: Any) -> Any:
        return with_id(obj.event_type, f"{obj.subject.replace('/', ' ')} to {obj.destination}")

    def replay_one(self, obj: Any, *, by: Any) -> None:
        dead_deliveries.replay(obj.dead_delivery, by=by)

    def drop_one(self, obj: Any, *, by: Any) -> None:
        dead_deliveries.drop(obj.dead_delivery, by=by)


@OperatorSite.watches
def waiting_dead_deliveries() -> list[Notice]:
    nobody = "nobody tries again."
    return admin_lists.notice(
        DeadDelivery, 21, one=f"delivery is dead: {nobody}", many=f"deliveries are dead: {nobody}"
    )
