"""Show people where they are signed in, and end sessions. Rules are in session_lifecycle.py."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import NotFound
from portal.nosql import keys
from portal.nosql import session_store as stored
from portal.web.access import signed_in
from tenants.identity import session_lifecycle
from tenants.membership import members
from tenants.tenancy.request import SignedInRequest, actor_of


@signed_in
@require_safe
def sessions_page(request: SignedInRequest) -> HttpResponse:
    """Show the caller's sessions and the names of their desks: two Queries at the same time."""
    asked: list[Any] = [partial(stored.of_user, request.user.id), partial(members.memberships_of, request.user.id)]
    found, mine = fan_out(asked)
    desks = {membership.tenant_id: membership.name for membership in mine}
    here = keys.session(request.session.session_key or "")
    rows = [
        {
            "id": item.session_key,
            "is_here": item.session_key == here,
            "browser": session_lifecycle.browser_of(item.agent or ""),
            "address": item.address,
            "desk": desks.get(item.tenant_id or "", ""),
            "started_at": clock.parse(item.started_at or ""),
            "until": datetime.fromtimestamp(int(item.expires_at), UTC),
        }
        for item in found
    ]
    return render(request, "tenants/sessions.html", {"sessions": rows})


@signed_in
@require_POST
def end(request: SignedInRequest, session: str) -> HttpResponse:
    """End one of the caller's own sessions; whose it is, the rule looks at."""
    try:
        session_lifecycle.end(request.user.id, session_id=session, by=actor_of(request))
    except NotFound as error:
        messages.info(request, error.message)
    else:
        messages.success(request, "That browser is signed out.")
    return redirect("tenants:sessions")
