"""Show people their second factors, and let them change them after they have proved to be who they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import segno
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from markupsafe import Markup

from portal import clock
from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import on_get, on_post, signed_in, unlimited
from portal.web.heavy_work import heavy
from tenants.sign_in import attempt_limits, entering_views, factor_secrets, factors, passkey_ceremony, session_lifecycle
from tenants.sign_in.entering_views import site_of
from tenants.sign_in.factors import FactorChange, Factors
from tenants.sign_in.forms import AuthenticatorForm, ConfirmForm
from tenants.sign_in.stored import PasskeyItem
from tenants.tenancy.request import SignedInRequest, actor_of, is_confirmed, note_confirmed

SETUP_SECONDS = 1800  # for which a secret that is shown can be confirmed
_HAS_APP = gettext_noop(
    "Your account has an authenticator app. Its recovery codes were shown once: if you did not keep them, replace them."
)


@unlimited
@signed_in
@on_get(query="second factor", trips=1, reads=2)
def security(request: SignedInRequest) -> HttpResponse:
    """Show what the person has: one Query."""
    return _security(request)


def _security(
    request: SignedInRequest, *, confirm: ConfirmForm | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    found = factors.factors_of(request.user.id)
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
        "next": _next_of(request),
        "demanded_by": "" if found.kinds else _demanded_by(request),
    }
    return render(request, "tenants/security.html", page | more, status=status)


@unlimited
@signed_in
@on_post(get="attempts", query="second factor", write="attempts, second factor", trips=5, reads=3, writes=4)
@heavy
def confirm(request: SignedInRequest) -> HttpResponse:
    """Take the password, or a passkey, of who is signed in; changes are open for some minutes then."""
    if "credential" in request.POST:
        return _confirm_by_passkey(request)
    attempt = attempt_limits.begin(attempt_limits.old_password(request.user.id))
    form = ConfirmForm(request.POST)
    if attempt.wait_minutes is not None:
        return _security(request, confirm=form, status=429, wait_minutes=attempt.wait_minutes)
    if form.is_valid() and not request.user.check_password(form.cleaned_data["password"]):
        form.add_error("password", _("That is not your password."))
    if form.errors:
        return _security(request, confirm=form, status=422)
    attempt_limits.succeeded(attempt)
    note_confirmed(request)
    return _back(request)


def _confirm_by_passkey(request: SignedInRequest) -> HttpResponse:
    answer, token = request.POST.get("credential", ""), request.POST.get("challenge", "")
    try:
        factors.by_passkey(site_of(request), answer, token, of=request.user.id)
    except Invalid as error:
        return _security(request, status=422, problem=error.message)
    note_confirmed(request)
    return _back(request)


_changes_factors: Final = on_post(
    query="second factor, sessions by person", write="account, audit row, second factor", trips=9, reads=6, writes=30
)


@unlimited
@signed_in
@on_get()
@_changes_factors
def authenticator_add(request: SignedInRequest) -> HttpResponse:
    """Show a fresh secret, which is stored once a code of it was entered: until then the page carries it, encrypted."""
    if not is_confirmed(request):
        return ask_first(request)
    if factors.AUTHENTICATOR in request.user.second_factors.split():  # a page that is reloaded, too
        messages.info(request, _(_HAS_APP))
        return _back(request)
    if request.method != "POST":
        return _authenticator(request, factor_secrets.new_secret(), AuthenticatorForm())
    form = AuthenticatorForm(request.POST)
    try:
        secret = factor_secrets.opened(request.POST.get("setup", ""), of=_setup_of(request), seconds=SETUP_SECONDS)
    except Invalid:
        messages.warning(request, _("This secret is too old. Scan the new one."))
        return redirect(_with_next(request, "tenants:authenticator_add"))
    if form.is_valid():
        code = form.cleaned_data["one_time_code"]
        try:
            change = factors.add_authenticator(request.user.id, secret=secret, code=code, by=actor_of(request))
        except (Invalid, Conflict) as error:
            form.add_error(getattr(error, "field", None), error.message)
        else:
            return _changed(request, change, _("The authenticator app is added."))
    return _authenticator(request, secret, form, status=422)


def _authenticator(
    request: SignedInRequest, secret: str, form: AuthenticatorForm, *, status: int = 200
) -> HttpResponse:
    address = factor_secrets.app_address(secret, email=request.user.email)
    page = {
        "form": form,
        "setup": factor_secrets.seal(secret, of=_setup_of(request)),
        "qr_code": _qr_code(address),
        "secret": " ".join(secret[i : i + 4] for i in range(0, len(secret), 4)),
        "address": address,
        "next": _next_of(request),
    }
    return render(request, "tenants/authenticator.html", page, status=status)


def _setup_of(request: SignedInRequest) -> str:
    return f"setup {request.user.id}"


def _qr_code(address: str) -> Markup:
    """Return the SVG of a QR code, dark on light in every scheme, which is what phones read."""
    drawn = segno.make(address, error="m").svg_inline(scale=5, border=3, dark="#000", light="#fff", omitsize=True)
    return Markup(drawn)  # noqa: S704  # made of squares


@unlimited
@signed_in
@on_get(query="second factor", trips=1, reads=2)
@_changes_factors
def authenticator_remove(request: SignedInRequest) -> HttpResponse:
    """Ask first, and remove the app once that is answered."""
    user_id = request.user.id
    return _answer(
        request,
        lambda: _about_app(factors.factors_of(user_id), demanded_by=_demanded_by(request)),
        lambda: factors.remove_authenticator(user_id, by=actor_of(request)),
        _("The authenticator app is removed"),
    )


@unlimited
@signed_in
@on_get(query="second factor", trips=1, reads=2)
def passkey_options(request: SignedInRequest) -> HttpResponse:
    """Give a browser what it makes a passkey of: one Query, for the passkeys that the person has."""
    if not is_confirmed(request):
        return JsonResponse({"problem": _(_FIRST)}, status=403)
    known = [item.credential for item in factors.factors_of(request.user.id).passkeys]
    return JsonResponse(passkey_ceremony.creation(site_of(request), request.user, known))


@unlimited
@signed_in
@on_post(
    query="second factor, sessions by person", write="account, audit row, second factor", trips=9, reads=6, writes=30
)
def passkey_add(request: SignedInRequest) -> HttpResponse:
    if not is_confirmed(request):
        return ask_first(request)
    user, posted = request.user, request.POST
    try:
        made = passkey_ceremony.created(
            site_of(request), user, posted.get("credential", ""), posted.get("challenge", "")
        )
        change = factors.add_passkey(user.id, credential=made, name=posted.get("name", ""), by=actor_of(request))
    except (Invalid, Conflict) as error:
        return _security(request, status=422, problem=error.message)
    return _changed(request, change, _("The passkey is added."))


@unlimited
@signed_in
@on_get(query="second factor", trips=1, reads=2)
@_changes_factors
def passkey_remove(request: SignedInRequest, passkey: str) -> HttpResponse:
    """Ask first, and remove one of the caller's own passkeys; the rule checks the owner."""
    user_id = request.user.id
    return _answer(
        request,
        lambda: _about_passkey(factors.factors_of(user_id), passkey, demanded_by=_demanded_by(request)),
        lambda: factors.remove_passkey(user_id, passkey_id=passkey, by=actor_of(request)),
        _("The passkey is removed"),
    )


@unlimited
@signed_in
@on_get(query="second factor", trips=1, reads=2)
@_changes_factors
def codes_renew(request: SignedInRequest) -> HttpResponse:
    """Ask first, and replace the recovery codes once that is answered."""
    user_id = request.user.id
    return _answer(
        request,
        lambda: _about_codes(factors.factors_of(user_id)),
        lambda: factors.renew_codes(user_id, by=actor_of(request)),
        _("Your former recovery codes are void"),
    )


def _answer(
    request: SignedInRequest, ask: Callable[[], FactorQuestion], change: Callable[[], FactorChange], said: str
) -> HttpResponse:
    """Ask, or make the change that was asked about. `said` is the sentence about it, without its full stop."""
    if not is_confirmed(request):
        return ask_first(request)
    try:
        if request.method != "POST":
            return render(request, "tenants/factor_question.html", {"question": ask()})
        made = change()
    except (NotFound, Conflict) as error:
        messages.warning(request, error.message)
        return _back(request)
    if not made.user.second_factors:
        said = _("%(done)s, and your recovery codes with it. Your password alone signs you in now") % {"done": said}
    return _changed(request, made, f"{said}.")


def _shown(item: PasskeyItem) -> dict[str, Any]:
    passkey_id = passkey_ceremony.passkey_id(item.credential)
    return {"id": passkey_id, "name": item.name, "since": clock.parse(item.created_at), "used": _moment(item.used_at)}


def _moment(stamp: str | None) -> Any:
    return clock.parse(stamp) if stamp else None


_FIRST: Final = gettext_noop("Confirm that it is you, then try again.")


def _changed(request: SignedInRequest, change: FactorChange, said: str) -> HttpResponse:
    """Keep this session, alone of all, and show the new recovery codes where there are some."""
    update_session_auth_hash(request, change.user)
    messages.success(request, f"{said} {_(_SIGNED_OUT)}")
    if not change.codes:
        return _back(request)
    return render(request, "tenants/recovery_codes.html", {"codes": change.codes, "next": _next_of(request)})


def ask_first(request: SignedInRequest) -> HttpResponse:
    """Lead to where a person confirms to be who they are."""
    messages.info(request, _(_FIRST))
    return _back(request)


def _back(request: SignedInRequest) -> HttpResponse:
    """Lead to the page Security, on the same way."""
    return redirect(_with_next(request, "tenants:security"))


def _with_next(request: SignedInRequest, name: str) -> str:
    """Return the address of a page that keeps where the person was on the way to."""
    target = _next_of(request)
    return reverse(name) + (f"?{urlencode({'next': target})}" if target else "")


def _next_of(request: SignedInRequest) -> str:
    """Return the address that the person was on the way to, "" for none."""
    asked = request.POST.get("next", "") or request.GET.get("next", "")
    return entering_views.safe_next(request, asked) if asked else ""


def _demanded_by(request: SignedInRequest) -> str:
    """Name what asks this person for a second factor, where they are or are on the way to; "" for nothing."""
    is_bound_for_admin = _next_of(request).startswith(reverse("admin:index")) or request.tenant is None
    if request.user.is_operator and settings.OPERATOR_SECOND_FACTOR and is_bound_for_admin:
        return _("The operators' admin")
    return request.tenant.name if request.tenant and request.tenant.needs_second_factor else ""


_SIGNED_OUT: Final = gettext_noop("You are signed out on your other devices.")


@dataclass(frozen=True)
class FactorQuestion:
    """Hold a question, the label of the button that answers it, and what follows, in sentences."""

    title: str
    button: str
    follows: Sequence[str]
    is_removal: bool = True


def _about_app(found: Factors, *, demanded_by: str) -> FactorQuestion:
    """Ask about removing the authenticator app. `demanded_by` names what demands a second factor, "" for nothing."""
    if found.authenticator is None:
        raise NotFound(_(factors.NO_APP))
    first = _("The codes that it shows no longer work. You can delete its entry in the app.")
    rest = _rest(bool(found.passkeys), demanded_by=demanded_by)
    return FactorQuestion(_("Remove the authenticator app?"), _("Remove the app"), (first, *rest, _(_SIGNED_OUT)))


def _about_passkey(found: Factors, passkey_id: str, *, demanded_by: str) -> FactorQuestion:
    """Ask about removing this passkey. Raises NotFound where the person has none of this id."""
    passkey = found.passkey(passkey_id)
    if passkey is None:
        raise NotFound(_(factors.NO_PASSKEY))
    first = _("It no longer signs you in. The device on which it was made keeps it until you delete it there.")
    rest = _rest(found.authenticator is not None or len(found.passkeys) > 1, demanded_by=demanded_by)
    return FactorQuestion(
        _("Remove the passkey “%(name)s”?") % {"name": passkey.name},
        _("Remove the passkey"),
        (first, *rest, _(_SIGNED_OUT)),
    )


def _about_codes(found: Factors) -> FactorQuestion:
    """Ask about replacing the recovery codes."""
    left = found.codes_left
    void = ngettext(
        "The one code that is left stops working.", "The %(num)s codes that are left stop working.", left
    ) % {"num": left}
    follows = (*([void] if left else []), _("New ones are shown to you once."), _(_SIGNED_OUT))
    return FactorQuestion(_("Replace your recovery codes?"), _("Replace the codes"), follows, is_removal=False)


def _rest(has_others: bool, *, demanded_by: str) -> Sequence[str]:
    if has_others:
        return (_("Your other second factors stay, and so do your recovery codes."),)
    alone = _("It is your only second factor: your recovery codes go with it, and your password alone signs you in.")
    if demanded_by:
        return (
            alone,
            _("%(where)s asks for a second factor: you get in there again once you have added one.")
            % {"where": demanded_by},
        )
    return (alone,)
