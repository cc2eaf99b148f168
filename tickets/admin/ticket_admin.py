"""Tickets of one tenant, read only: by status, or one by its number."""

from __future__ import annotations

from django.contrib import admin

from portal.nosql.admin import DynamoAdmin, InputFilter
from tenants.admin.named_columns import NamedColumns
from tenants.admin.partition_filters import TenantInput
from tickets.admin.facades import Ticket


class NumberInput(InputFilter):
    title, parameter_name = "number", "number"

    def clean(self, value: str) -> str | None:
        return value if value.isascii() and value.isdigit() and len(value) < 16 else None


@admin.register(Ticket)
class TicketAdmin(NamedColumns, DynamoAdmin):
    list_display = ("number", "title", "status", "priority", "resolver_name", "requester_name", "updated_at")
    list_display_links = ("number", "title")
    list_filter = (TenantInput, NumberInput, "status")
    fields = (
        "number", "title", "status", "priority", "resolver_name", "requester_name", "created_at", "updated_at",
        "comment_count", "version", "tenant",
    )  # fmt: skip
