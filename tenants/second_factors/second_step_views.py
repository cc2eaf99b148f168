"""Sign people in by more than a password: the second step after it, and passkeys in place of it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.errors import Invalid
from portal.web.access import public, unlimited
from portal.web.client_address import client_address
from portal.web.stash import Stash
from tenants.identity import entering_views, known_browsers, session_lifecycle, throttle
from tenants.identity.forms import SignInForm
from tenants.identity.models import User
from tenants.identity.throttle import CountedAttempt
from tenants.second_factors import factor_checking, factor_store, half_signed_in, passkey_ceremony, recovery_codes
from tenants.second_factors.forms import SecondStepForm
from tenants.second_factors.passkey_ceremony import PasskeySite

COOKIE = "pooldesk_second_step"
_WRONG = "This code is wrong, or was used before. Wait for the next one."
_WRONG_RECOVERY = "This recovery code is wrong, or was used before. Each works once: take another one."
_TOO_LATE = "That took too long, or somebody signed in meanwhile. Enter your password again."


def site_of(request: HttpRequest) -> PasskeySite:
    """Return the site for which passkeys are made: PORTAL_BASE_URL, in development the address that was asked for."""
    return PasskeySite(settings.PORTAL_BASE_URL or f"{request.scheme}://{request.get_host()}")


def ask(request: HttpRequest, user: User, *, stash: Stash | None, next_url: str) -> HttpResponse:
    """Answer a right password where the account has a second factor: nobody is signed in yet."""
    response = _page(request, user, SecondStepForm(initial={"next": next_url}), stash)
    response.set_cookie(
        COOKIE,
        half_signed_in.token(user),
        max_age=half_signed_in.LIFETIME,
        path=reverse("tenants:login"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


@unlimited
@public
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def second_step(request: HttpRequest) -> HttpResponse:
    """Take a code, or a passkey, of somebody who has just entered the right password."""
    stash = entering_views.stash_of(request)
    user = half_signed_in.read(request.COOKIES.get(COOKIE, ""))
    if user is None:
        return _begin_again(request, stash)
    form = SecondStepForm(request.POST or None)
    if request.method != "POST":
        return _page(request, user, SecondStepForm(initial={"next": request.GET.get("next", "")}), stash)
    if "credential" in request.POST:
        return _passkey(request, user, stash)
    if not form.is_valid():
        return _page(request, user, form, stash, status=422)
    known = request.COOKIES.get(known_browsers.COOKIE, "")
    browser = known_browsers.name_since(known, user.email, epoch=user.session_epoch)
    attempt = throttle.begin(throttle.second_step(user.id, browser=browser))
    if attempt.wait_minutes is not None:
        return _page(request, user, form, stash, status=429, wait_minutes=attempt.wait_minutes)
    code = form.cleaned_data["one_time_code"]
    if not factor_checking.by_code(user, code, origin=client_address(request)):
        session_lifecycle.refused(user.email, origin=client_address(request))
        form.add_error("one_time_code", _WRONG_RECOVERY if recovery_codes.is_one(code) else _WRONG)
        return _page(request, user, form, stash, status=422)
    return _let_in(request, user, attempt, stash, form.cleaned_data["next"])


def _passkey(request: HttpRequest, user: User, stash: Stash | None) -> HttpResponse:
    form = SecondStepForm(initial={"next": request.POST.get("next", "")})
    attempt = throttle.begin(throttle.passkey(address=client_address(request)))
    if attempt.wait_minutes is not None:
        return _page(request, user, form, stash, status=429, wait_minutes=attempt.wait_minutes)
    try:
        _signer(request, of=user.id)
    except Invalid as error:
        return _page(request, user, form, stash, status=422, problem=error.message)
    return _let_in(request, user, attempt, stash, request.POST.get("next", ""))


@unlimited
@public
@require_safe
@never_cache
def passkey_challenge(request: HttpRequest) -> HttpResponse:
    """Give a browser something to sign. Nothing is read and nothing is written."""
    return JsonResponse(passkey_ceremony.request(site_of(request)))


@unlimited
@public
@require_POST
def passkey_sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in whoever signed the challenge: who that is, the passkey itself says."""
    stash, next_url = entering_views.stash_of(request), request.POST.get("next", "")
    page = {"form": SignInForm(initial={"next": next_url}), "resume": stash}
    attempt = throttle.begin(throttle.passkey(address=client_address(request)))
    if attempt.wait_minutes is not None:
        return render(request, "tenants/login.html", page | {"wait_minutes": attempt.wait_minutes}, status=429)
    try:
        user = _signer(request)
    except Invalid as error:
        return render(request, "tenants/login.html", page | {"problem": error.message}, status=422)
    return _let_in(request, user, attempt, stash, next_url)


def _signer(request: HttpRequest, *, of: str = "") -> User:
    answer, token = request.POST.get("credential", ""), request.POST.get("challenge", "")
    return factor_checking.by_passkey(site_of(request), answer, token, of=of)


def _let_in(
    request: HttpRequest, user: User, attempt: CountedAttempt, stash: Stash | None, next_url: str
) -> HttpResponse:
    response = entering_views.let_in(request, user, attempts=[attempt], stash=stash, next_url=next_url)
    response.delete_cookie(COOKIE, path=reverse("tenants:login"), samesite="Lax")
    return response


def _begin_again(request: HttpRequest, stash: Stash | None) -> HttpResponse:
    messages.info(request, _TOO_LATE)
    next_url = request.POST.get("next", "")
    if stash is None:
        query = f"?{urlencode({'next': next_url})}" if next_url else ""
        return redirect(reverse("tenants:login") + query)
    page = {"form": SignInForm(initial={"next": next_url}), "resume": stash}
    return render(request, "tenants/login.html", page, status=401)


def _page(
    request: HttpRequest, user: User, form: SecondStepForm, stash: Stash | None, *, status: int = 200, **more: object
) -> HttpResponse:
    kinds = user.second_factors.split()
    page = {
        "form": form,
        "resume": stash,
        "person": user,
        "has_passkey": factor_store.PASSKEY in kinds and site_of(request).has_passkeys,
        "next": form["next"].value() or "",
    }
    return render(request, "tenants/second_step.html", page | more, status=status)
