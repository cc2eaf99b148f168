"""List the dead letters of the tickets' stream, replay or drop them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.urls import reverse

from portal.errors import PortalError, Unavailable
from portal.nosql.admin import DynamoAdmin, Notice, ObjectAction
from tenants.admin.named_columns import NamedColumns
from tenants.admin.partition_filters import TenantInput
from tenants.operators.operator_site import OperatorSite, actor
from tickets.admin.facades import DeadLetter
from tickets.counting import dead_letters

NOTICED = 10  # dead letters that the front page counts


@admin.register(DeadLetter)
class DeadLetterAdmin(NamedColumns, DynamoAdmin):
    may_change = True
    list_display = ("__str__", "at", "tenant", "reason")
    list_filter = (TenantInput,)
    fields = readonly_fields = ("sequence", "at", "tenant", "reason", "record")
    actions = ("replay", "drop")
    object_actions = (
        ObjectAction("_replay", "Replay", "Counts it by the rules of today and removes it, both or neither."),
        ObjectAction("_drop", "Drop", "Removes it; what it holds is not counted."),
    )

    @admin.action(description="Replay: count them after all")
    def replay(self, request: Any, queryset: Any) -> None:
        self._each(request, queryset, replay=True)

    @admin.action(description="Drop: they are not counted")
    def drop(self, request: Any, queryset: Any) -> None:
        self._each(request, queryset, replay=False)

    def _each(self, request: Any, queryset: Any, *, replay: bool) -> None:
        done = 0
        for obj in queryset:
            try:
                (dead_letters.replay if replay else dead_letters.drop)(obj.dead_letter, by=actor(request))
                done += 1
            except Unavailable:
                raise
            except PortalError as error:
                messages.error(request, f"{obj}: {error.message}")
        messages.success(request, f"{done} {'replayed' if replay else 'dropped'}.")

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        if action == "_replay":
            dead_letters.replay(obj.dead_letter, by=actor(request))
            return "It is counted."
        dead_letters.drop(obj.dead_letter, by=actor(request))
        return "It is dropped."

    def performed_url(self, request: Any) -> str:
        return reverse("admin:tickets_deadletter_changelist")


@OperatorSite.watches
def waiting_dead_letters() -> list[Notice]:
    """Report dead letters, counted up to a few."""
    number = len(DeadLetter.objects.all()[: NOTICED + 1])
    if not number:
        return []
    many = f"More than {NOTICED}" if number > NOTICED else str(number)
    text = f"{many} dead letter{'s' * (number != 1)}: changes of tickets that are not in the numbers."
    return [Notice(20, text, reverse("admin:tickets_deadletter_changelist"), "error")]
