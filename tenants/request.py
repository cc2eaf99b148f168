"""Requests as views see them after the middleware: typed, so that a view cannot forget what may be None."""

from __future__ import annotations

from django.http import HttpRequest

from tenants.context import TenantContext
from tenants.models import User


class SignedInRequest(HttpRequest):
    """Somebody is signed in; a tenant may be pinned."""

    user: User
    tenant: TenantContext | None


class TenantRequest(SignedInRequest):
    """A member of the pinned tenant, with at least the role that the view declares."""

    tenant: TenantContext
