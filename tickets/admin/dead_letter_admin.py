"""List the dead letters of the tickets' stream, replay or drop them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from portal.nosql.admin import Notice, ObjectAction
from tenants.admin import admin_lists
from tenants.admin.admin_lists import DeadItemAdmin
from tenants.operators.operator_site import OperatorSite
from tickets.admin.facades import DeadLetter
from tickets.counting import dead_letters


@admin.register(DeadLetter)
class DeadLetterAdmin(DeadItemAdmin):
    list_display = ("__str__", "at", "tenant", "reason")
    fields = readonly_fields = ("sequence", "at", "tenant", "reason", "record")
    object_actions = (
        ObjectAction("_replay", "Replay", "Counts it by the rules of today and removes it, both or neither."),
        ObjectAction(
            "_drop", "Drop", "Removes it; what it holds is never counted. This cannot be taken back.", asks=True
        ),
    )
    replayed = "It is counted."

    def replay_one(self, obj: Any, *, by: Any) -> None:
        dead_letters.replay(obj.dead_letter, by=by)

    def drop_one(self, obj: Any, *, by: Any) -> None:
        dead_letters.drop(obj.dead_letter, by=by)


@OperatorSite.watches
def waiting_dead_letters() -> list[Notice]:
    """Report dead letters."""
    changes = "changes of tickets that are not in the numbers."
    return admin_lists.notice(DeadLetter, 20, one=f"dead letter: {changes}", many=f"dead letters: {changes}")
