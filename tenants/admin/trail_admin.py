"""The audit trail, read only: of one tenant, of one person in it, of one thing."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from portal.nosql.admin import DynamoAdmin
from tenants.admin.partition_filters import ActorInput, TrailInput
from tenants.operators.facades import AuditRow


@admin.register(AuditRow)
class AuditRowAdmin(DynamoAdmin):
    list_display = ("at", "actor", "action", "entity_type", "what", "before", "after")
    list_filter = (TrailInput, ActorInput, "action")
    fields = ("at", "actor", "action", "entity_type", "entity_id", "entity_name", "before", "after", "tenant_id")

    @admin.display(description="what")
    def what(self, obj: Any) -> str:
        return str(obj.entity_name or obj.entity_id)
