"""Answer who changes second factors: with a question, with what was done, or with the page Security again."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from portal.errors import PortalError
from tenants.identity import entering_views
from tenants.second_factors.factor_changes import FactorChange
from tenants.second_factors.factor_questions import OUT, FactorQuestion
from tenants.tenancy.request import SignedInRequest

FIRST: Final = "Confirm that it is you, then try again."


def changed(request: SignedInRequest, change: FactorChange, said: str) -> HttpResponse:
    """Keep this session, alone of all, and show the new recovery codes where there are some."""
    update_session_auth_hash(request, change.user)
    messages.success(request, f"{said} {OUT}")
    if not change.codes:
        return back(request)
    return render(request, "tenants/recovery_codes.html", {"codes": change.codes, "next": next_of(request)})


def removed(request: SignedInRequest, change: FactorChange, said: str) -> HttpResponse:
    """Say what was removed, a sentence without its full stop, and what went with it where it was the last factor."""
    if not change.user.second_factors:
        said += ", and your recovery codes with it. Your password alone signs you in now"
    return changed(request, change, f"{said}.")


def question(request: SignedInRequest, asked: FactorQuestion) -> HttpResponse:
    """Ask before something is done; the form goes to the same address."""
    return render(request, "tenants/factor_question.html", {"question": asked})


def ask_first(request: SignedInRequest) -> HttpResponse:
    """Lead to where a person confirms to be who they are."""
    messages.info(request, FIRST)
    return back(request)


def no(request: SignedInRequest, error: PortalError) -> HttpResponse:
    """Say why nothing was done."""
    messages.warning(request, error.message)
    return back(request)


def back(request: SignedInRequest) -> HttpResponse:
    """Lead to the page Security, on the same way."""
    return redirect(with_next(request, "tenants:security"))


def with_next(request: SignedInRequest, name: str) -> str:
    """Return the address of a page that keeps where the person was on the way to."""
    target = next_of(request)
    return reverse(name) + (f"?{urlencode({'next': target})}" if target else "")


def next_of(request: SignedInRequest) -> str:
    """Return the address that the person was on the way to, "" for none."""
    asked = request.POST.get("next", "") or request.GET.get("next", "")
    return entering_views.safe_next(request, asked) if asked else ""


def demanded_by(request: SignedInRequest) -> str:
    """Name what asks this person for a second factor, where they are or are on the way to; "" for nothing."""
    is_bound_for_admin = next_of(request).startswith(reverse("admin:index")) or request.tenant is None
    if request.user.is_operator and settings.OPERATOR_SECOND_FACTOR and is_bound_for_admin:
        return "The operators' admin"
    return request.tenant.name if request.tenant and request.tenant.needs_second_factor else ""
