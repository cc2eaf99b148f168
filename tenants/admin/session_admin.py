"""Sessions of a person: where they are signed in, and the end of one. All of them at once: the account's own page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from portal.nosql.admin import DynamoAdmin
from tenants.admin.partition_filters import UserInput
from tenants.identity import sessions
from tenants.operators.facades import Session
from tenants.operators.operator_site import actor


@admin.register(Session)
class SessionAdmin(DynamoAdmin):
    may_delete = True
    list_display = ("started_at", "address", "agent", "in_tenant", "until", "session_key")
    list_filter = (UserInput,)
    fields = ("user_id", "started_at", "address", "agent", "in_tenant", "until", "session_key")

    @admin.display(description="in tenant", empty_value="none chosen")
    def in_tenant(self, obj: Any) -> Any:
        if not obj.tenant_id:
            return None
        url = reverse("admin:tenants_tenant_change", args=[obj.tenant_id])
        return format_html('<a href="{}">{}</a>', url, obj.tenant_id)

    def remove(self, request: Any, obj: Any) -> None:
        sessions.end(obj.user_id, session_id=obj.pk, by=actor(request))

    def consequences(self, obj: Any) -> Iterable[str]:
        yield f"This browser, {obj.agent or 'an unknown one'} from {obj.address or 'nowhere known'}, is signed out."
        yield "It counts at its next click. What is typed into an open form is offered again after signing in."
        yield "The person's other sessions go on, and whoever knows the password can sign in again."
