"""Tell every template who is signed in, for which tenant, and in which section."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

_SECTIONS = {
    "tickets:queue": "queue",
    "tickets:new": "new",
    "tickets:dashboard": "dashboard",
    "tenants:account": "account",
    "tenants:password_change": "account",
    "tenants:security": "account",
    "tenants:authenticator_add": "account",
    "tenants:recovery_codes": "account",
    "tenants:pick": "pick",
    "tenants:members": "members",
    "tenants:member_role": "members",
    "tenants:member_remove": "members",
    "tenants:invitations": "invitations",
    "tenants:invitation_revoke": "invitations",
    "tenants:audit": "audit",
    "tenants:settings": "settings",
    "tenants:settings_defaults": "settings",
    "tenants:platform_access": "settings",
    "tenants:close": "settings",
    "tenants:settings_sign_in": "settings",
    "tenants:usage": "usage",
    "tenants:api_keys": "api_keys",
    "tenants:api_key": "api_keys",
    "tenants:api_key_new": "api_keys",
    "tenants:api_key_edit": "api_keys",
    "tenants:api_key_roll": "api_keys",
    "tenants:api_key_revoke": "api_keys",
    "delivery:webhooks": "webhooks",
    "delivery:webhook": "webhooks",
    "delivery:webhook_delivery": "webhooks",
    "delivery:webhook_events": "webhooks",
    "delivery:webhook_new": "webhooks",
    "delivery:webhook_edit": "webhooks",
    "tickets:past": "past",
    "tickets:past_restore": "past",
    "tenants:past_members": "past",
    "tenants:past_members_restore": "past",
    "tickets:handover": "members",
    "tickets:handovers": "members",
    "tickets:person": "settings",
    "tickets:person_erase": "settings",
}


def page(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    match = request.resolver_match
    return {
        "user": user if user is not None and user.is_authenticated else None,
        "tenant": getattr(request, "tenant", None),
        "acting": getattr(request, "acting", None),
        "nav": _SECTIONS.get(match.view_name, "") if match else "",
    }
