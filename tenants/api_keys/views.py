"""Show the API keys of a desk, and let its admins make and end them. Rules are in key_changes.py."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Conflict
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from tenants.api_keys import key_authentication, key_changes, key_text, scopes
from tenants.api_keys.forms import KeyForm, RollForm
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told

SOON: Final = timedelta(days=7)


def shown_key(key: ApiKeyItem) -> dict[str, Any]:
    """Return a key as the list and its own page show it. Nothing of it helps to use the key."""
    ends = clock.parse(key.expires_at) if key.expires_at else None
    return {
        "prefix": key.api_key_prefix,
        "shown": key_text.shown(key.api_key_prefix),
        "id": key.key_id,
        "name": key.name,
        "scopes": [scope for scope in Scope if scope in scopes.named(key.scopes)],
        "addresses": list(key.addresses),
        "origins": list(key.origins),
        "badge": _badge(key),
        "works": key_changes.works(key),
        "can_change": key_changes.works(key) and not key.replaced_by,
        "replaced_by": key.replaced_by or "",
        "created_at": clock.parse(key.created_at),
        "created_by": key.created_by,
        "ends_at": ends,
        "revoked_at": clock.parse(key.revoked_at) if key.revoked_at else None,
        "last_used_at": clock.parse(key.last_used_at) if key.last_used_at else None,
        "last_used_from": key.last_used_from or "",
        # A use is noted once in so many minutes, so that the last one may be later than what is noted.
        "noted_minutes": key_authentication.NOTED_EVERY // timedelta(minutes=1),
        "used_of_late": key_authentication.is_of_late(key),
        "version": int(key.version),
    }


def _badge(key: ApiKeyItem) -> dict[str, str]:
    """Return a key's state as a word, with the kind of badge and the icon that go with it."""
    if key.revoked_at:
        return {"word": _("Revoked"), "kind": "closed", "icon": "close"}
    if not key_changes.works(key):
        return {"word": _("Replaced") if key.replaced_by else _("Expired"), "kind": "closed", "icon": "close"}
    if key.replaced_by:
        return {"word": _("Being replaced"), "kind": "pending", "icon": "warning"}
    if key.expires_at and key.expires_at < clock.stamp(clock.now() + SOON):
        return {"word": _("Ends soon"), "kind": "pending", "icon": "warning"}
    return {"word": _("Active"), "kind": "resolved", "icon": "check"}


@member(Role.ADMIN)
@on_get(query="API key", trips=1, reads=2)
def api_keys(request: TenantRequest) -> HttpResponse:
    """List the keys that work, and those that ended of late. Costs one Query."""
    found = [shown_key(key) for key in key_changes.listed(request.tenant.repository)]
    page = {
        "keys": [key for key in found if key["works"]],
        "ended": [key for key in found if not key["works"]],
        "most": key_changes.MOST,
        "days": key_changes.KEPT.days,
    }
    return render(request, "api_keys/keys.html", page)


@member(Role.ADMIN)
@on_get()
@on_post(query="API key", write="API key, audit row, membership", trips=5, reads=3, writes=15)
def new(request: TenantRequest) -> HttpResponse:
    """Make a key and show it, once."""
    form = KeyForm(request.POST or None, initial={"request_id": uuid.uuid4().hex})
    if request.method == "POST" and form.is_valid():
        request_id = form.cleaned_data["request_id"] or uuid.uuid4().hex
        with told_in(form):
            key, text = key_changes.create(
                request.tenant, choice=form.choice, request_id=request_id, by=actor_of(request)
            )
            return _secret(request, key, text)
    return render(request, "api_keys/form.html", {"form": form}, status=422 if form.is_bound else 200)


@member(Role.ADMIN)
@on_get(get="API key", trips=1, reads=2)
def api_key(request: TenantRequest, api_key: str) -> HttpResponse:
    """Show what a key may do and when it was used. Costs one GetItem."""
    found = key_changes.find(request.tenant.repository, api_key)
    return render(request, "api_keys/key.html", {"key": shown_key(found)})


@member(Role.ADMIN)
@on_get(get="API key", trips=1, reads=2)
@on_post(get="API key", query="API key", write="API key, audit row, membership", trips=7, reads=6, writes=15)
def edit(request: TenantRequest, api_key: str) -> HttpResponse:
    """Change a key's name, what it may do, from where, and for how long."""
    stored = key_changes.find(request.tenant.repository, api_key)
    form = KeyForm(request.POST, key=stored) if request.method == "POST" else KeyForm.of(stored)
    if request.method == "POST" and form.is_valid():
        version = form.cleaned_data["version"] or 0
        with told_in(form, lambda: KeyForm.of(stored)):
            key_changes.change(
                request.tenant, prefix=api_key, choice=form.choice, version=version, by=actor_of(request)
            )
            messages.success(request, _("Key saved."))
            return redirect("tenants:api_key", api_key)
    return render(request, "api_keys/form.html", {"form": form, "key": shown_key(stored)}, status=status_of(form))


@member(Role.ADMIN)
@on_get(get="API key", trips=1, reads=2)
@on_post(get="API key", query="API key", write="API key, audit row, membership", trips=8, reads=8, writes=20)
def roll(request: TenantRequest, api_key: str) -> HttpResponse:
    """Ask first, on a page of its own, then replace the key and show the new one, once."""
    stored = key_changes.find(request.tenant.repository, api_key)
    form = RollForm(request.POST) if request.method == "POST" else RollForm.of(stored)
    if request.method == "POST" and form.is_valid():
        with told_in(form):
            key, text = key_changes.roll(
                request.tenant,
                prefix=api_key,
                version=form.cleaned_data["version"],
                grace=form.chosen_grace,
                expires_at=form.chosen_end,
                by=actor_of(request),
            )
            return _secret(request, key, text, old=key_changes.find(request.tenant.repository, api_key))
    page = {"form": form, "key": shown_key(stored)}
    return render(request, "api_keys/roll.html", page, status=422 if form.is_bound else 200)


def _secret(request: TenantRequest, key: ApiKeyItem, text: str, *, old: ApiKeyItem | None = None) -> HttpResponse:
    """Show a key in the answer to the form itself: it is in no address, cookie or log."""
    page = {"key": shown_key(key), "secret": text, "old": shown_key(old) if old else None}
    return render(request, "api_keys/secret.html", page)


@member(Role.ADMIN)
@on_get(query="API key", trips=1, reads=2)
@on_post(get="API key", write="API key, audit row, membership", trips=5, reads=3, writes=15)
def revoke(request: TenantRequest, api_key: str) -> HttpResponse:
    """Ask first, on a page of its own that says which other keys of a roll still work, then end the key at once."""
    if request.method != "POST":
        stored, rolled = key_changes.with_rolled(request.tenant.repository, api_key)
        page = {"key": shown_key(stored), "rolled": [shown_key(key) for key in rolled]}
        return render(request, "api_keys/revoke.html", page)
    with refusal_told(request, Conflict):
        revoked = key_changes.revoke(request.tenant, prefix=api_key, by=actor_of(request))
        messages.success(request, _("The key %(name)s was revoked.") % {"name": revoked.name})
        return redirect("tenants:api_keys")
    return redirect("tenants:api_key", api_key)
