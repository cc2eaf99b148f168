"""Show the audit trail, read only: of one tenant, of one person in it, of one thing."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from portal.nosql.admin import DynamoAdmin
from tenants.admin.named_columns import NamedColumns, with_id
from tenants.admin.partition_filters import ActionInput, ActorInput, TrailInput
from tenants.operators.facades import AuditRow


@admin.register(AuditRow)
class AuditRowAdmin(NamedColumns, DynamoAdmin):
    list_display = ("at", "actor", "done", "what", "changes")
    list_filter = (TrailInput, ActorInput, ActionInput)
    fields = ("at", "actor", "done", "entity_type", "entity_id", "entity_name", "before", "after", "tenant")

    @admin.display(description="action")
    def done(self, obj: Any) -> str:
        return with_id(obj.words, obj.action)

    @admin.display(description="object")
    def what(self, obj: Any) -> str:
        """Lead to all rows about the same object."""
        about = {"tenant_id": obj.tenant_id, "entity_type": obj.entity_type, "entity_id": obj.entity_id}
        url = f"{reverse('admin:tenants_auditrow_changelist')}?{urlencode(about)}"
        return format_html('<a href="{}">{} {}</a>', url, obj.entity_type, obj.entity_name or obj.entity_id)

    @admin.display(description="before → after")
    def changes(self, obj: Any) -> str:
        return f"{obj.before} → {obj.after}" if obj.before and obj.after else str(obj.before or obj.after)
