"""Show the API keys of a desk, and let its admins make and end them. Rules are in key_changes.py and key_rolling.py."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from portal.errors import Conflict, Invalid
from portal.web.access import get_or_post, member
from tenants.api_keys import key_changes, key_rolling, presenters
from tenants.api_keys.forms import KeyForm, RollForm
from tenants.api_keys.items import ApiKeyItem
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role


@member(Role.ADMIN)
@require_safe
def api_keys(request: TenantRequest) -> HttpResponse:
    """List the keys that work, and those that ended of late. Costs one Query."""
    found = [presenters.api_key(key) for key in key_changes.listed(request.tenant.repository)]
    page = {
        "keys": [key for key in found if key["works"]],
        "ended": [key for key in found if not key["works"]],
        "most": key_changes.MOST,
        "days": key_changes.KEPT.days,
    }
    return render(request, "api_keys/keys.html", page)


@member(Role.ADMIN)
@get_or_post
def new(request: TenantRequest) -> HttpResponse:
    """Make a key and show it, once."""
    form = KeyForm(request.POST or None, initial={"request_id": uuid.uuid4().hex})
    if request.method == "POST" and form.is_valid():
        request_id = form.cleaned_data["request_id"] or uuid.uuid4().hex
        try:
            key, text = key_changes.create(
                request.tenant, choice=form.choice, request_id=request_id, by=actor_of(request)
            )
        except Conflict as error:
            form.add_error(error.field, error.message)
        else:
            return _secret(request, key, text)
    return render(request, "api_keys/form.html", {"form": form}, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@require_safe
def api_key(request: TenantRequest, api_key: str) -> HttpResponse:
    """Show what a key may do and when it was used. Costs one GetItem."""
    found = key_changes.find(request.tenant.repository, api_key)
    return render(request, "api_keys/key.html", {"key": presenters.api_key(found)})


@member(Role.ADMIN)
@get_or_post
def edit(request: TenantRequest, api_key: str) -> HttpResponse:
    """Change a key's name, what it may do, from where, and for how long."""
    stored = key_changes.find(request.tenant.repository, api_key)
    form = KeyForm(request.POST, key=stored) if request.method == "POST" else KeyForm.of(stored)
    if request.method == "POST" and form.is_valid():
        version = form.cleaned_data["version"] or 0
        try:
            key_changes.change(
                request.tenant, prefix=api_key, choice=form.choice, version=version, by=actor_of(request)
            )
        except Conflict as error:
            form.add_error(error.field, error.message)
        else:
            messages.success(request, "Key saved.")
            return redirect("tenants:api_key", api_key)
    page = {"form": form, "key": presenters.api_key(stored)}
    return render(request, "api_keys/form.html", page, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@get_or_post
def roll(request: TenantRequest, api_key: str) -> HttpResponse:
    """Ask first, on a page of its own, then replace the key and show the new one, once."""
    stored = key_changes.find(request.tenant.repository, api_key)
    form = RollForm(request.POST) if request.method == "POST" else RollForm.of(stored)
    if request.method == "POST" and form.is_valid():
        try:
            key, text = key_rolling.roll(
                request.tenant,
                prefix=api_key,
                version=form.cleaned_data["version"],
                grace=form.chosen_grace,
                expires_at=form.chosen_end,
                by=actor_of(request),
            )
        except (Conflict, Invalid) as error:
            form.add_error(error.field, error.message)
        else:
            return _secret(request, key, text, old=key_changes.find(request.tenant.repository, api_key))
    page = {"form": form, "key": presenters.api_key(stored)}
    return render(request, "api_keys/roll.html", page, status=422 if form.is_bound else 200)


def _secret(request: TenantRequest, key: ApiKeyItem, text: str, *, old: ApiKeyItem | None = None) -> HttpResponse:
    """Show a key in the answer to the form itself: it is in no address, cookie or log."""
    page = {"key": presenters.api_key(key), "secret": text, "old": presenters.api_key(old) if old else None}
    return render(request, "api_keys/secret.html", page)


@member(Role.ADMIN)
@get_or_post
def revoke(request: TenantRequest, api_key: str) -> HttpResponse:
    """Ask first, on a page of its own that says which other keys of a roll still work, then end the key at once."""
    if request.method != "POST":
        stored, rolled = key_rolling.with_rolled(request.tenant.repository, api_key)
        page = {"key": presenters.api_key(stored), "rolled": [presenters.api_key(key) for key in rolled]}
        return render(request, "api_keys/revoke.html", page)
    try:
        revoked = key_changes.revoke(request.tenant, prefix=api_key, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tenants:api_key", api_key)
    messages.success(request, f"The key {revoked.name} was revoked.")
    return redirect("tenants:api_keys")
