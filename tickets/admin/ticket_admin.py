"""Show the tickets of one tenant, read only, and the dead letters of the tickets' stream, to replay or drop them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from portal import plain_text
from portal.nosql.admin import DynamoAdmin, Notice, ObjectAction
from portal.nosql.planner.planning import Unplannable
from portal.schema.access_patterns import cost
from tenants.admin import admin_lists
from tenants.admin.admin_lists import DeadItemAdmin, NamedColumns, TenantInput
from tenants.operators.operator_site import OperatorSite
from tickets.admin.facades import DeadLetter, Ticket
from tickets.counting import dead_letters
from tickets.ticket.fields import ASSIGNEE, CUSTOM, FIELDS, TAGS

_LISTED = (
    "number",
    *(field.name for field in FIELDS if field.is_listed and field not in (TAGS, CUSTOM, ASSIGNEE)),
    "resolver_name",
    "requester_name",
    "updated_at",
)
NUMBER_DIGITS = 15  # a number with more digits is no ticket's


@admin.register(Ticket)
class TicketAdmin(NamedColumns, DynamoAdmin):
    get_costs = cost(
        get="slug, ticket", query="audit rows by object, tenant by name, tickets by status", trips=3, reads=10
    )
    post_costs = cost(get="ticket", trips=2, reads=10)
    # A laptop has no width for more.
    list_display = ("number", "title", "status", "priority", "resolver_name", "requester_name", "updated_at")
    list_display_links = ("number", "title")
    list_filter = (TenantInput, "status")
    search_fields = ("=number",)
    search_help_text = "The number of a ticket of the chosen tenant, whatever its status."
    fields = (*_LISTED[:-1], "created_at", "updated_at", "comment_count", "version", "tenant")

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Find one ticket by its number, with or without "#". The status beside the list does not count then."""
        number = search_term.strip().removeprefix("#")
        if not number:
            return queryset, False
        if plain_text.whole_number(number, digits=NUMBER_DIGITS) is None:
            raise Unplannable(f"“{number[:40]}” is no number of a ticket.", incomplete=True)
        chosen = {name: value for name, value in queryset.spec.exact.items() if name == "tenant_id"}
        return self.get_queryset(request).filter(number=number, **chosen), False


# --- dead letters of the tickets' stream ---


@admin.register(DeadLetter)
class DeadLetterAdmin(DeadItemAdmin):
    get_costs = cost(
        get="dead letter, slug", query="audit rows by object, dead letter, tenant by name", trips=4, reads=10
    )
    post_costs = cost(
        get="counter, dead letter",
        query="dead letter",
        write="aggregate, audit row, dead letter",
        trips=9,
        reads=10,
        writes=40,
    )
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
    changes = "changes of tickets that are not in the numbers."
    return admin_lists.notice(DeadLetter, 20, one=f"dead letter: {changes}", many=f"dead letters: {changes}")
