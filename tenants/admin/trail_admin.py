"""Show the audit trail, read only: of one tenant, of one person in it, of one thing."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from portal.nosql.admin import DynamoAdmin
from tenants.admin.named_columns import NamedColumns
from tenants.admin.partition_filters import ActorInput, TrailInput
from tenants.operators.facades import AuditRow


@admin.register(AuditRow)
class AuditRowAdmin(NamedColumns, DynamoAdmin):
    list_display = ("at", "actor", "action", "what", "changes")
    list_filter = (TrailInput, ActorInput, "action")
    fields = ("at", "actor", "action", "entity_type", "entity_id", "entity_name", "before", "after", "tenant")

    @admin.display(description="object")
    def what(self, obj: Any) -> str:
        return f"{obj.entity_type} {obj.entity_name or obj.entity_id}"

    @admin.display(description="before → after")
    def changes(self, obj: Any) -> str:
        return f"{obj.before} → {obj.after}" if obj.before and obj.after else str(obj.before or obj.after)
