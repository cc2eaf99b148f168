"""Show the tickets of one tenant, read only: by status, or one by its number."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from portal.nosql.admin import DynamoAdmin
from tenants.admin.admin_lists import NamedColumns, TenantInput
from tickets.admin.facades import Ticket
from tickets.ticket.fields import ASSIGNEE, FIELDS, TAGS

_LISTED = (
    "number",
    *(field.name for field in FIELDS if field.is_listed and field not in (TAGS, ASSIGNEE)),
    "resolver_name",
    "requester_name",
    "updated_at",
)
NUMBER_DIGITS = 15  # a number with more digits is no ticket's


@admin.register(Ticket)
class TicketAdmin(NamedColumns, DynamoAdmin):
    list_display = _LISTED
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
        if not (number.isascii() and number.isdigit() and len(number) <= NUMBER_DIGITS):
            return queryset.none(), False
        chosen = {name: value for name, value in queryset.spec.exact.items() if name == "tenant_id"}
        return self.get_queryset(request).filter(number=number, **chosen), False
