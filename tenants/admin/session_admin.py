"""List the sessions of a person and end one. All of them at once: the account's own page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin

from portal.nosql.admin import DynamoAdmin
from tenants.admin.named_columns import NamedColumns, with_id
from tenants.admin.partition_filters import UserInput
from tenants.operators.account_facades import Session
from tenants.operators.operator_site import actor
from tenants.sign_in import session_lifecycle


@admin.register(Session)
class SessionAdmin(NamedColumns, DynamoAdmin):
    may_delete = True
    list_display = ("browser", "address", "tenant", "started_at", "until")
    list_filter = (UserInput,)
    fields = ("account", "browser", "agent", "address", "tenant", "started_at", "until")

    @admin.display(description="browser")
    def browser(self, obj: Any) -> Any:
        return with_id(session_lifecycle.browser_of(obj.agent or ""), obj.session_key)

    def remove(self, request: Any, obj: Any) -> None:
        session_lifecycle.end(obj.user_id, session_id=obj.pk, by=actor(request))

    def consequences(self, obj: Any) -> Iterable[str]:
        origin = f" from {obj.address}" if obj.address else ""
        yield f"This browser, {session_lifecycle.browser_of(obj.agent or '')}{origin}, is signed out."
        yield "It counts at its next click. What is typed into an open form is offered again after signing in."
        yield "The person's other sessions go on, and whoever knows the password can sign in again."
