"""Complete a sign-in: the second step, passkeys, the new session, the first desk, and an interrupted form.

Between the password and the second step, a signed cookie remembers the person for some minutes. It opens nothing but
the second step. A sign-in, a new password, a changed factor and everything else that ends sessions makes it void,
because its signed state is compared with the stored account.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.cache import never_cache

from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.web.access import on_get, on_post, public, unlimited
from portal.web.client_address import client_address
from portal.web.desk_prefix import address, desk_of
from portal.web.stash import Stash
from tenants.audit_trail.recording import Actor
from tenants.membership import members
from tenants.sign_in import accounts, attempt_limits, factor_secrets, factors, passkey_ceremony, session_lifecycle
from tenants.sign_in.accounts import User
from tenants.sign_in.attempt_limits import CountedAttempt
from tenants.sign_in.forms import SecondStepForm, SignInForm
from tenants.sign_in.passkey_ceremony import PasskeySite
from tenants.tenancy import context
from tenants.tenancy.request import enter_desk, set_cookie, start_session


def let_in(
    request: HttpRequest, user: User, *, attempts: Sequence[CountedAttempt], stash: Stash | None, next_url: str
) -> HttpResponse:
    """Sign this person in, who has proved to be who they are: the counted attempts were no guesses."""
    forgiven = [partial(attempt_limits.succeeded, attempt) for attempt in attempts]
    fan_out([*forgiven, partial(accounts.note_sign_in, user.id)])
    start_session(request, user)
    response = _enter(request, user, stash, next_url)
    known = request.COOKIES.get(attempt_limits.KNOWN_COOKIE, "")
    remembered = attempt_limits.remembered_cookie(known, user.email, epoch=user.session_epoch)
    _set_cookie(response, attempt_limits.KNOWN_COOKIE, remembered, max_age=attempt_limits.KNOWN_LIFETIME)
    return response


def _set_cookie(response: HttpResponse, name: str, value: str, *, max_age: int) -> None:
    """Set a cookie that browsers send with attempts to sign in, and nowhere else."""
    set_cookie(response, name, value, max_age=max_age, path=reverse("tenants:login"))


def _enter(request: HttpRequest, user: User, stash: Stash | None, next_url: str) -> HttpResponse:
    """Lead, after signing in, straight into the only tenant, or the one that an interrupted form belongs to, else
    choose."""
    mine = members.memberships_of(user.id)
    interrupted = stash.page_mark if stash else ""
    named = desk_of(next_url)
    chosen = mine[0] if len(mine) == 1 else next((m for m in mine if m.slug == named), None)
    for membership in mine:
        if interrupted and context.is_page_mark(interrupted, user.id, membership.tenant_id):
            chosen = membership
    tenant = context.enter(user, chosen.tenant_id) if chosen else None
    if tenant is not None:
        enter_desk(request, tenant, by=Actor(user.id, user.email, client_address(request)))
    if stash is not None and tenant is not None:
        return resume(request, user, tenant.tenant_id, stash)
    target = safe_next(request, next_url)
    if user.is_operator and not mine:
        # Who only runs the platform has no desk to choose, and no page of one to go back to.
        admin_url = reverse("admin:index")
        if stash is not None and stash.path.startswith(admin_url):
            return resume(request, user, "", stash)
        return redirect(target if target.startswith(admin_url) else admin_url)
    if tenant is None and not next_url:
        return redirect("tenants:pick")
    return redirect(target)  # where a page needs a desk that its address does not name, it asks for one itself


def resume(request: HttpRequest, user: User, tenant_id: str, stash: Stash) -> HttpResponse:
    """Offer an interrupted form again, on a page that belongs to the tenant just entered."""
    tenant = context.enter(user, tenant_id)
    request.user, request.tenant = user, tenant  # type: ignore[attr-defined]  # tenant is ours
    if tenant is not None and (desk := desk_of(stash.path)):
        # The form is the tenant's by its page's mark, whatever desk has the name now that its address had then.
        stash = replace(stash, path=f"/{tenant.slug}/{stash.path.removeprefix(f'/{desk}/')}")
    return render(request, "portal/resume.html", {"stash": stash})


def stash_of(request: HttpRequest) -> Stash | None:
    token = request.POST.get("resume", "")
    if not token:
        return None
    try:
        return Stash.from_token(token)
    except Invalid:
        messages.warning(request, _("What was kept of your form is too old to be sent again."))
        return None


def safe_next(request: HttpRequest, url: str) -> str:
    if url and url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        return url
    return address(settings.LOGIN_REDIRECT_URL)


SECOND_STEP_COOKIE = "pooldesk_second_step"
_WRONG = gettext_noop("This code is wrong, or was used before. Wait for the next one.")
_WRONG_RECOVERY = gettext_noop("This recovery code is wrong, or was used before. Each works once: take another one.")
_TOO_LATE = gettext_noop("That took too long, or somebody signed in meanwhile. Enter your password again.")


def site_of(request: HttpRequest) -> PasskeySite:
    """Return the site for which passkeys are made: PORTAL_BASE_URL, in development the address that was asked for."""
    return PasskeySite(settings.PORTAL_BASE_URL or f"{request.scheme}://{request.get_host()}")


def ask(request: HttpRequest, user: User, *, stash: Stash | None, next_url: str) -> HttpResponse:
    """Answer a right password where the account has a second factor: nobody is signed in yet."""
    response = _page(request, user, SecondStepForm(initial={"next": next_url}), stash)
    token = signing.dumps([user.id, _state(user)], salt=_SALT)
    _set_cookie(response, SECOND_STEP_COOKIE, token, max_age=SECOND_STEP_SECONDS)
    return response


@unlimited
@public
@on_get()
@on_post(
    get="attempts",
    query="membership, second factor",
    write="account, attempts, audit row, second factor",
    trips=12,
    reads=11,
    writes=30,
)
@never_cache
def second_step(request: HttpRequest) -> HttpResponse:
    """Take a code, or a passkey, of somebody who has just entered the right password."""
    stash = stash_of(request)
    user = read_half_signed_in(request.COOKIES.get(SECOND_STEP_COOKIE, ""))
    if user is None:
        return _begin_again(request, stash)
    form = SecondStepForm(request.POST or None)
    if request.method != "POST":
        return _page(request, user, SecondStepForm(initial={"next": request.GET.get("next", "")}), stash)
    if "credential" in request.POST:
        empty = SecondStepForm(initial={"next": request.POST.get("next", "")})
        return _take_passkey(request, partial(_page, request, user, empty, stash), stash, of=user.id)
    if not form.is_valid():
        return _page(request, user, form, stash, status=422)
    known = request.COOKIES.get(attempt_limits.KNOWN_COOKIE, "")
    browser = attempt_limits.browser_name_since(known, user.email, epoch=user.session_epoch)
    attempt = attempt_limits.begin(attempt_limits.second_step(user.id, browser=browser))
    if attempt.wait_minutes is not None:
        return _page(request, user, form, stash, status=429, wait_minutes=attempt.wait_minutes)
    code = form.cleaned_data["one_time_code"]
    if not factors.by_code(user, code, origin=client_address(request)):
        session_lifecycle.refused(user.email, origin=client_address(request))
        form.add_error("one_time_code", _(_WRONG_RECOVERY if factor_secrets.is_recovery_code(code) else _WRONG))
        return _page(request, user, form, stash, status=422)
    return _finish(request, user, attempt, stash, form.cleaned_data["next"])


@unlimited
@public
@on_get()
@never_cache
def passkey_challenge(request: HttpRequest) -> HttpResponse:
    """Give a browser something to sign. Nothing is read and nothing is written."""
    return JsonResponse(passkey_ceremony.request(site_of(request)))


@unlimited
@public
@on_post(
    get="attempts",
    query="membership, second factor",
    write="account, attempts, audit row, second factor",
    trips=8,
    reads=10,
    writes=12,
)
def passkey_sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in whoever signed the challenge: who that is, the passkey itself says."""
    stash = stash_of(request)
    return _take_passkey(request, partial(_sign_in_page, request, stash), stash)


def _take_passkey(
    request: HttpRequest, page: Callable[..., HttpResponse], stash: Stash | None, *, of: str = ""
) -> HttpResponse:
    """Sign in by a passkey, of the person `of` or of anybody, or show the page again with the reason why not."""
    attempt = attempt_limits.begin(attempt_limits.passkey(address=client_address(request)))
    if attempt.wait_minutes is not None:
        return page(status=429, wait_minutes=attempt.wait_minutes)
    answer, token = request.POST.get("credential", ""), request.POST.get("challenge", "")
    try:
        user = factors.by_passkey(site_of(request), answer, token, of=of)
    except Invalid as error:
        return page(status=422, problem=error.message)
    return _finish(request, user, attempt, stash, request.POST.get("next", ""))


def _sign_in_page(request: HttpRequest, stash: Stash | None, *, status: int, **more: object) -> HttpResponse:
    page = {"form": SignInForm(initial={"next": request.POST.get("next", "")}), "resume": stash}
    return render(request, "tenants/login.html", page | more, status=status)


def _finish(
    request: HttpRequest, user: User, attempt: CountedAttempt, stash: Stash | None, next_url: str
) -> HttpResponse:
    response = let_in(request, user, attempts=[attempt], stash=stash, next_url=next_url)
    response.delete_cookie(SECOND_STEP_COOKIE, path=reverse("tenants:login"), samesite="Lax")
    return response


def _begin_again(request: HttpRequest, stash: Stash | None) -> HttpResponse:
    messages.info(request, _(_TOO_LATE))
    if stash is None:
        next_url = request.POST.get("next", "")
        query = f"?{urlencode({'next': next_url})}" if next_url else ""
        return redirect(reverse("tenants:login") + query)
    return _sign_in_page(request, stash, status=401)


def _page(
    request: HttpRequest, user: User, form: SecondStepForm, stash: Stash | None, *, status: int = 200, **more: object
) -> HttpResponse:
    kinds = user.second_factors.split()
    page = {
        "form": form,
        "resume": stash,
        "person": user,
        "has_passkey": factors.PASSKEY in kinds and site_of(request).has_passkeys,
        "next": form["next"].value() or "",
    }
    return render(request, "tenants/second_step.html", page | more, status=status)


SECOND_STEP_SECONDS: Final = 600  # seconds
_SALT: Final = "tenants.second-factors.half-signed-in"


def read_half_signed_in(text: str) -> User | None:
    """Return who knew the password, or None where that is not so or not so any more: one GetItem."""
    if not text or len(text) > 500:
        return None
    try:
        user_id, state = signing.loads(text, salt=_SALT, max_age=SECOND_STEP_SECONDS)
    except (signing.BadSignature, ValueError):
        return None
    user = accounts.find_by_id(user_id)
    if user is None or not user.is_active or not constant_time_compare(state, _state(user)):
        return None
    return user


def _state(user: User) -> str:
    parts = (user.id, user.password, str(user.session_epoch), user.signed_in_at)
    return salted_hmac(_SALT, "|".join(parts), algorithm="sha256").hexdigest()
