"""Declare the facade over dead deliveries for the operators' admin, and how they can be read."""

from __future__ import annotations

from typing import Any

from django.db import models

from delivery.queues import dead_deliveries
from delivery.queues.stored import LISTED, DeadDeliveryItem, DeadDeliveryRow
from portal import clock
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import Get, Query
from portal.schema import keys


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
