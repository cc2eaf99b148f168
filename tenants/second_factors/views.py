"""Show people their second factors, and let them change them after they have proved to be who they are."""

from __future__ import annotations

from typing import Any

import segno
from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal import clock
from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import signed_in, unlimited
from portal.web.heavy_work import heavy
from tenants.identity import session_lifecycle, throttle
from tenants.second_factors import (
    answer_views,
    authenticator,
    factor_changes,
    factor_checking,
    factor_questions,
    factor_store,
    passkey_ceremony,
    sealing,
)
from tenants.second_factors.forms import AuthenticatorForm, ConfirmForm
from tenants.second_factors.items import PasskeyItem
from tenants.second_factors.second_step_views import site_of
from tenants.tenancy.request import SignedInRequest, actor_of, is_confirmed, note_confirmed

SETUP_SECONDS = 1800  # for which a secret that is shown can be confirmed
_HAS_APP = (
    "Your account has an authenticator app. Its recovery codes were shown once: if you did not keep them, replace them."
)


@unlimited
@signed_in
@require_safe
def security(request: SignedInRequest) -> HttpResponse:
    """Show what the person has: one Query."""
    return _security(request)


def _security(
    request: SignedInRequest, *, confirm: ConfirmForm | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    found = factor_store.factors_of(request.user.id)
    site, agent = site_of(request), request.headers.get("User-Agent", "")
    app = found.authenticator
    page = {
        "app": {"since": clock.parse(app.created_at), "used": _moment(app.used_at)} if app else None,
        "passkeys": [_shown(item) for item in found.passkeys],
        "codes_left": found.codes_left,
        "has_any": bool(found.kinds),
        "is_confirmed": is_confirmed(request),
        "confirm_form": confirm or ConfirmForm(),
        "has_site_passkeys": site.has_passkeys,
        "site": site,
        "suggested_name": session_lifecycle.browser_of(agent),
        "next": answer_views.next_of(request),
        "demanded_by": "" if found.kinds else answer_views.demanded_by(request),
    }
    return render(request, "tenants/security.html", page | more, status=status)


@unlimited
@signed_in
@require_POST
@heavy
def confirm(request: SignedInRequest) -> HttpResponse:
    """Take the password, or a passkey, of who is signed in; changes are open for some minutes then."""
    if "credential" in request.POST:
        return _confirm_by_passkey(request)
    attempt = throttle.begin(throttle.old_password(request.user.id))
    form = ConfirmForm(request.POST)
    if attempt.wait_minutes is not None:
        return _security(request, confirm=form, status=429, wait_minutes=attempt.wait_minutes)
    if form.is_valid() and not request.user.check_password(form.cleaned_data["password"]):
        form.add_error("password", "That is not your password.")
    if form.errors:
        return _security(request, confirm=form, status=422)
    throttle.succeeded(attempt)
    note_confirmed(request)
    return answer_views.back(request)


def _confirm_by_passkey(request: SignedInRequest) -> HttpResponse:
    answer, token = request.POST.get("credential", ""), request.POST.get("challenge", "")
    try:
        factor_checking.by_passkey(site_of(request), answer, token, of=request.user.id)
    except Invalid as error:
        return _security(request, status=422, problem=error.message)
    note_confirmed(request)
    return answer_views.back(request)


@unlimited
@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def authenticator_add(request: SignedInRequest) -> HttpResponse:
    """Show a fresh secret, which is stored once a code of it was entered: until then the page carries it, encrypted."""
    if not is_confirmed(request):
        return answer_views.ask_first(request)
    if factor_store.AUTHENTICATOR in request.user.second_factors.split():  # a page that is reloaded, too
        messages.info(request, _HAS_APP)
        return answer_views.back(request)
    if request.method != "POST":
        return _authenticator(request, authenticator.new_secret(), AuthenticatorForm())
    form = AuthenticatorForm(request.POST)
    try:
        secret = sealing.opened(request.POST.get("setup", ""), of=_setup_of(request), seconds=SETUP_SECONDS)
    except Invalid:
        messages.warning(request, "This secret is too old. Scan the new one.")
        return redirect(answer_views.with_next(request, "tenants:authenticator_add"))
    if form.is_valid():
        code = form.cleaned_data["one_time_code"]
        try:
            change = factor_changes.add_authenticator(request.user.id, secret=secret, code=code, by=actor_of(request))
        except (Invalid, Conflict) as error:
            form.add_error(getattr(error, "field", None), error.message)
        else:
            return answer_views.changed(request, change, "The authenticator app is added.")
    return _authenticator(request, secret, form, status=422)


def _authenticator(
    request: SignedInRequest, secret: str, form: AuthenticatorForm, *, status: int = 200
) -> HttpResponse:
    address = authenticator.address(secret, email=request.user.email)
    page = {
        "form": form,
        "setup": sealing.seal(secret, of=_setup_of(request)),
        "qr_code": _qr_code(address),
        "secret": " ".join(secret[i : i + 4] for i in range(0, len(secret), 4)),
        "address": address,
        "next": answer_views.next_of(request),
    }
    return render(request, "tenants/authenticator.html", page, status=status)


def _setup_of(request: SignedInRequest) -> str:
    return f"setup {request.user.id}"


def _qr_code(address: str) -> SafeString:
    """Return the SVG of a QR code, dark on light in every scheme, which is what phones read."""
    drawn = segno.make(address, error="m").svg_inline(scale=5, border=3, dark="#000", light="#fff", omitsize=True)
    return mark_safe(drawn)  # noqa: S308  # made of squares


@unlimited
@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def authenticator_remove(request: SignedInRequest) -> HttpResponse:
    """Say what follows, and remove the app once that is answered."""
    if not is_confirmed(request):
        return answer_views.ask_first(request)
    if request.method != "POST":
        return _app_question(request)
    try:
        change = factor_changes.remove_authenticator(request.user.id, by=actor_of(request))
    except (NotFound, Conflict) as error:
        return answer_views.no(request, error)
    return answer_views.removed(request, change, "The authenticator app is removed")


@unlimited
@signed_in
@require_safe
def passkey_options(request: SignedInRequest) -> HttpResponse:
    """Give a browser what it makes a passkey of: one Query, for the passkeys that the person has."""
    if not is_confirmed(request):
        return JsonResponse({"problem": answer_views.FIRST}, status=403)
    known = [item.credential for item in factor_store.factors_of(request.user.id).passkeys]
    return JsonResponse(passkey_ceremony.creation(site_of(request), request.user, known))


@unlimited
@signed_in
@require_POST
def passkey_add(request: SignedInRequest) -> HttpResponse:
    if not is_confirmed(request):
        return answer_views.ask_first(request)
    user, posted = request.user, request.POST
    try:
        made = passkey_ceremony.created(
            site_of(request), user, posted.get("credential", ""), posted.get("challenge", "")
        )
        change = factor_changes.add_passkey(user.id, credential=made, name=posted.get("name", ""), by=actor_of(request))
    except (Invalid, Conflict) as error:
        return _security(request, status=422, problem=error.message)
    return answer_views.changed(request, change, "The passkey is added.")


@unlimited
@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def passkey_remove(request: SignedInRequest, passkey: str) -> HttpResponse:
    """Say what follows, and remove one of the caller's own passkeys; whose it is, the rule looks at."""
    if not is_confirmed(request):
        return answer_views.ask_first(request)
    if request.method != "POST":
        return _passkey_question(request, passkey)
    try:
        change = factor_changes.remove_passkey(request.user.id, passkey_id=passkey, by=actor_of(request))
    except (NotFound, Conflict) as error:
        return answer_views.no(request, error)
    return answer_views.removed(request, change, "The passkey is removed")


@unlimited
@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def codes_renew(request: SignedInRequest) -> HttpResponse:
    """Say what follows, and replace the recovery codes once that is answered."""
    if not is_confirmed(request):
        return answer_views.ask_first(request)
    if request.method != "POST":
        return answer_views.question(request, factor_questions.about_codes(factor_store.factors_of(request.user.id)))
    try:
        change = factor_changes.renew_codes(request.user.id, by=actor_of(request))
    except Conflict as error:
        return answer_views.no(request, error)
    return answer_views.changed(request, change, "Your former recovery codes are void.")


def _app_question(request: SignedInRequest) -> HttpResponse:
    found = factor_store.factors_of(request.user.id)
    if found.authenticator is None:
        return answer_views.no(request, NotFound(factor_changes.NO_APP))
    demanded_by = answer_views.demanded_by(request)
    return answer_views.question(request, factor_questions.about_app(found, demanded_by=demanded_by))


def _passkey_question(request: SignedInRequest, passkey: str) -> HttpResponse:
    found = factor_store.factors_of(request.user.id)
    item = next((one for one in found.passkeys if passkey_ceremony.passkey_id(one.credential) == passkey), None)
    if item is None:
        return answer_views.no(request, NotFound(factor_changes.NO_PASSKEY))
    demanded_by = answer_views.demanded_by(request)
    return answer_views.question(request, factor_questions.about_passkey(found, item, demanded_by=demanded_by))


def _shown(item: PasskeyItem) -> dict[str, Any]:
    passkey_id = passkey_ceremony.passkey_id(item.credential)
    return {"id": passkey_id, "name": item.name, "since": clock.parse(item.created_at), "used": _moment(item.used_at)}


def _moment(stamp: str | None) -> Any:
    return clock.parse(stamp) if stamp else None
