"""Dead letters of the tickets' stream: shown, counted after all, or thrown away.

Replaying is a transaction of the stream worker's role, which may not write the audit trail; the row follows it.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.urls import reverse

from portal.errors import PortalError, Unavailable
from portal.nosql.admin import DynamoAdmin, Notice
from tenants import audit
from tenants.admin.filters import TenantInput
from tenants.audit import Action, Entry
from tenants.operators import OperatorSite, actor
from tickets import dead_letters
from tickets.facades import DeadLetter

NOTICED = 10  # dead letters that the front page counts


def deal_with(request: Any, obj: Any, *, replay: bool) -> None:
    """Replay or drop one letter and write who did it. Raises Conflict, NotFound, Throttled, Unavailable."""
    (dead_letters.replay if replay else dead_letters.drop)(obj.letter)
    action = Action.DEAD_LETTER_REPLAYED if replay else Action.DEAD_LETTER_DROPPED
    tenant_id, kind, entity_id = obj.entity()
    audit.record(Entry(tenant_id, action, actor(request), kind, entity_id, str(obj), {"reason": obj.reason}))


@admin.register(DeadLetter)
class DeadLetterAdmin(DynamoAdmin):
    may_change = True
    list_display = ("__str__", "at", "tenant_id", "aggregate", "reason")
    list_filter = (TenantInput,)
    fields = readonly_fields = ("sequence", "at", "tenant_id", "aggregate", "reason", "record")
    actions = ("replay", "drop")
    buttons = (
        ("_replay", "Replay", "Counts it by the rules of today and removes it, both or neither."),
        ("_drop", "Drop", "Removes it; what it holds is not counted."),
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
                deal_with(request, obj, replay=replay)
                done += 1
            except Unavailable:
                raise
            except PortalError as error:
                messages.error(request, f"{obj}: {error.message}")
        messages.success(request, f"{done} {'replayed' if replay else 'dropped'}.")

    def press(self, request: Any, obj: Any, button: str) -> str:
        deal_with(request, obj, replay=button == "_replay")
        return "It is counted." if button == "_replay" else "It is dropped."

    def pressed_url(self, request: Any) -> str:
        return reverse("admin:tickets_deadletter_changelist")


@OperatorSite.watches
def waiting_letters() -> list[Notice]:
    """Whether there are any, and how many up to a few: one Query."""
    found = len(DeadLetter.objects.all()[: NOTICED + 1])
    if not found:
        return []
    many = f"More than {NOTICED}" if found > NOTICED else str(found)
    text = f"{many} dead letter{'s' * (found != 1)}: changes of tickets that are not in the numbers."
    return [Notice(20, text, reverse("admin:tickets_deadletter_changelist"), "error")]
