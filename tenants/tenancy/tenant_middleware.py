"""Resolve who is calling and for which tenant, and hold the tenant to what it may ask for.

It stands in the place of Django's session and authentication middlewares. A request over the tenant's limits is
answered at once, with 429. It is charged to the pinned tenant that the address names, once it is certain that the
caller is a member. Before that the cookie names the tenant under our signature: a request that would be refused anyway
is refused without a read, so that a flood costs little. An old cookie can cause a refusal, and spends nothing. Ways in
and out, and operators' pages, are never limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import UpdateError
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve, reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _

from portal.dynamo import retry
from portal.errors import LimitReached, PortalError
from portal.load import guest_limits, measurement, tenant_limiter
from portal.load.measurement import NoiseTally
from portal.load.tenant_limiter import RateAnswer, limiter
from portal.nosql.session_store import SessionStore
from portal.schema import keys
from portal.web import access, desk_prefix, locales, middleware
from portal.web.access import SAFE, is_guest_path, is_path_of_open_page, is_unlimited
from portal.web.client_address import client_address
from portal.web.locales import Locale
from tenants.membership import members
from tenants.sign_in import attempt_limits, impersonation_session
from tenants.sign_in.accounts import User
from tenants.sign_in.impersonation_session import ActingIds
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import (
    ACTING,
    ENTERING,
    SAVING_SESSION,
    IdentifiedRequest,
    Ids,
    Pin,
    actor_of,
    enter_desk,
    first_word,
    locale_of,
    pinned_first,
    read_cookie,
    resolve_acting,
    resolve_identity,
    set_cookie,
    write_cookie,
)

GetResponse = Callable[[HttpRequest], HttpResponse]
ADMIN_PATH: Final = "/admin/"


class TenantMiddleware:
    """Sets request.session, request.user and request.tenant in one round trip; saves a changed session afterwards.

    The tenant is the person's desk that the address names. One that is not pinned yet is looked up among the person's
    memberships, once. Where the address names none of theirs, the tenant is the one used last.
    Addresses made during the request are those of the tenant's desk. While an operator acts as a member,
    request.acting says so, and user and tenant are the member's; the operators' admin takes no notice of it.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: IdentifiedRequest) -> HttpResponse:
        if is_guest_path(request.path_info):
            return self._as_guest(request)
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        ids = read_cookie(cookie) if cookie else None
        request.user, request.tenant = AnonymousUser(), None
        request.acting, request.acting_has_ended = None, False
        request.pins = ids.pins if ids else ()
        tenant_id = ids.tenant_at(request.path_info) if ids else ""
        if not keys.TENANT_ID.match(tenant_id):
            return self._identified(request, ids, cookie)
        units = units_of(changes=request.method not in SAFE)
        try:
            with admitted(tenant_id, units, is_limited=lambda: _is_limited(request)):
                return _counted(request, self._identified(request, ids, cookie))
        except NotAdmitted as refused:
            return _refused(request, refused)

    def process_view(
        self, request: IdentifiedRequest, view: Callable[..., HttpResponse], args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        if is_unlimited(view):
            return None
        answer = _charge(request)
        return None if answer is None or answer.allowed else _refused(request, NotAdmitted(answer))

    def _as_guest(self, request: IdentifiedRequest) -> HttpResponse:
        """Pass on the request of somebody outside, whatever cookies it has: the access middleware finds the desk."""
        request.user, request.tenant, request.session = AnonymousUser(), None, SessionStore()
        request.acting, request.acting_has_ended, request.pins = None, False, ()
        with desk_prefix.addresses_of(""), locales.shown_in(_locale(request)):
            try:
                if is_path_of_open_page(request.path_info):  # of a member: a desk's people may share one address
                    return self.get_response(request)
                with guest_limits.admitted(attempt_limits.network_of(client_address(request))):
                    return self.get_response(request)
            except PortalError as error:
                return middleware.error_page(request, error)

    def _identified(self, request: IdentifiedRequest, ids: Ids | None, cookie: str) -> HttpResponse:
        """Find out who calls, pass the request on, and remember session and desks."""
        with desk_prefix.addresses_of(""), locales.shown_in(_locale(request)):
            try:
                acting = _acting_ids(request)
                path, is_whole = request.path_info, request.method != "POST" and not middleware.is_piece(request)
                if acting:
                    access.add_cost(request, ACTING)
                identity = (
                    resolve_acting(ids, acting, path, is_whole=is_whole)
                    if acting
                    else resolve_identity(ids, path, is_whole=is_whole)
                )
                request.session = identity.session
                request.acting, request.acting_has_ended = identity.acting, identity.has_ended
                if identity.user is not None:
                    request.user = identity.user
                if identity.tenant is not None:
                    request.tenant = identity.tenant
                    desk_prefix.use(identity.tenant.slug)
                if identity.user is not None and identity.acting is None:
                    _pin_named(request, identity.user, identity.tenant)
                locales.use(_locale(request))
                return _remember(request, self.get_response(request), cookie, ids)
            except PortalError as error:
                return middleware.error_page(request, error)


def _locale(request: IdentifiedRequest) -> Locale:
    """Return the locale of the person. Operators' pages are in English."""
    locale = locale_of(request)
    return replace(locale, language=locales.ENGLISH) if request.path_info.startswith(ADMIN_PATH) else locale


def _counted(request: IdentifiedRequest, response: HttpResponse) -> HttpResponse:
    """Charge a request that reached no view, and tell the client what is left."""
    match = request.resolver_match
    if not hasattr(request, "rate_answer") and not (match and is_unlimited(match.func)):
        # There is no such address, or the form is not one of ours.
        answer = _charge(request)
        if answer is not None and not answer.allowed:
            return _refused(request, NotAdmitted(answer))
    answer = getattr(request, "rate_answer", None)
    return response if answer is None else _told(response, answer)


def _charge(request: IdentifiedRequest) -> RateAnswer | None:
    tenant = request.tenant
    if tenant is None or tenant.acted_by:  # an operator's help is nothing that the tenant asks for
        return None
    answer = charge(tenant, units_of(changes=request.method not in SAFE))
    request.rate_answer = answer
    return answer


def _is_limited(request: HttpRequest) -> bool:
    try:
        return not is_unlimited(resolve(request.path_info).func)
    except Resolver404:
        return True


def _refused(request: IdentifiedRequest, refused: NotAdmitted) -> HttpResponse:
    with locales.shown_in(_locale(request)):  # refused before or after the identity too
        page = middleware.error_page(request, refused)
    return page if refused.answer is None else _told(page, refused.answer)


def _told(response: HttpResponse, answer: RateAnswer) -> HttpResponse:
    for name, value in answer.headers.items():
        response[name] = value
    return response


def _remember(request: IdentifiedRequest, response: HttpResponse, cookie: str, read: Ids | None) -> HttpResponse:
    session = request.session
    _remember_acting(request, response)
    # Some addresses answer htmx with a part of their page: the browser must not show that for the page.
    patch_vary_headers(response, ("Cookie", "HX-Request"))
    if request.user.is_authenticated:
        # A page of a signed-in person is never another person's, and never tomorrow's.
        response.headers.setdefault("Cache-Control", "private, no-store")
    if session.is_empty():
        if cookie:
            response.delete_cookie(settings.SESSION_COOKIE_NAME, samesite="Lax")
        return response
    if session.modified and response.status_code < 500:
        access.add_cost(request, SAVING_SESSION)
        try:
            session.save()
        except UpdateError:
            # Signed out in another tab while this request ran: signed out it stays.
            response.delete_cookie(settings.SESSION_COOKIE_NAME, samesite="Lax")
            return response
    ids = Ids(session.session_key or "", session.get(SESSION_KEY, ""), request.pins)
    if ids == read and not settings.SECRET_KEY_FALLBACKS:
        return response  # the cookie is as it was; one that was signed by a former key is signed anew
    value = write_cookie(ids)
    if value != cookie:
        set_cookie(response, settings.SESSION_COOKIE_NAME, value, max_age=session.get_expiry_age())
    return response


def _pin_named(request: IdentifiedRequest, user: User, tenant: TenantContext | None) -> None:
    """Let the desk that the address names be the one used last; enter it first where it is another of the person's.

    That costs a Query of the person's memberships, whether the name is one of theirs or not, and then one read more.
    """
    pins = request.pins
    if tenant is not None and not pins[0].slug:  # by the cookie of a former version
        request.pins = pins = (Pin(tenant.slug, tenant.tenant_id),)
    desk = first_word(request.path_info)
    pinned = next((pin for pin in pins if desk and pin.slug == desk), None)
    if tenant is None or tenant.slug != desk:
        if not desk or desk_prefix.desk_of(request.path_info) != desk:
            return
        access.add_cost(request, ENTERING)
        read = tenant.tenant_id if tenant else ""
        mine = members.memberships_of(user.id)
        named = next((m for m in mine if m.slug == desk and m.tenant_id != read), None)
        entered = context.enter(user, named.tenant_id) if named else None
        if entered is not None:
            request.tenant = entered
            enter_desk(request, entered, by=actor_of(request))
            return
    now = Pin(tenant.slug, tenant.tenant_id) if tenant else pinned
    if now is None or (pinned is None and now.slug != desk):
        return
    # Parts that a page in the background fetches do not make its desk the last used one.
    is_page = "HX-Boosted" in request.headers or (
        "HX-Request" not in request.headers and request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    )
    if is_page or now not in pins:
        request.pins = pinned_first(pins, now.slug, now.tenant_id)


def _acting_ids(request: HttpRequest) -> ActingIds | None:
    cookie = request.COOKIES.get(impersonation_session.COOKIE)
    acting = impersonation_session.read_cookie(cookie) if cookie else None
    return None if acting is None or request.path.startswith(reverse("admin:index")) else acting


def _remember_acting(request: IdentifiedRequest, response: HttpResponse) -> None:
    """Set the cookie of an impersonation that begins with this request, and remove that of one which is over."""
    begun: str | None = getattr(request, "acting_cookie", None)
    if begun:
        set_cookie(response, impersonation_session.COOKIE, begun, max_age=settings.IMPERSONATION_MINUTES * 60)
    elif begun == "" or request.acting_has_ended:
        response.delete_cookie(impersonation_session.COOKIE, samesite="Lax")


# --- what a tenant may ask for, whichever way it asks: the API's middleware calls this too ---


class NotAdmitted(LimitReached):
    """The tenant asks for too much. `answer` tells of its rate, None where too much is at work at the same time.

    `code` tells programs which of the two it is: fewer requests, or fewer of them at once.
    """

    def __init__(self, answer: RateAnswer | None = None) -> None:
        if answer is None:
            self.code = tenant_limiter.TOO_MANY
            super().__init__(_("This desk has as many requests at work as it may have at the same time."))
        else:
            self.code = "rate_limited"
            sentence = _("This desk is asking for more than its plan allows.")
            super().__init__(sentence, retry_after=max(1, answer.seconds))
        self.answer = answer


def units_of(*, changes: bool) -> int:
    """Return the units that a request is charged with: one that changes something, or one that only reads."""
    return tenant_limiter.CHANGE_UNITS if changes else tenant_limiter.READ_UNITS


@contextmanager
def admitted(tenant_id: str, units: int, *, is_limited: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Count the request inside as work of the tenant that it claims to be of. Raises NotAdmitted.

    `is_limited` is asked before something is refused: what leads in or out, say, never is.
    """
    foreseen = limiter.foresee(tenant_id, units)
    if foreseen is not None and is_limited():
        _refuse(tenant_id, foreseen)
    has_place = tenant_limiter.requests.enter(tenant_id)
    if not has_place and is_limited():
        _refuse(tenant_id, None)
    try:
        with retry.on_behalf_of(tenant_id):
            yield
    finally:
        if has_place:
            tenant_limiter.requests.leave(tenant_id)


def _refuse(tenant_id: str, answer: RateAnswer | None) -> None:
    measurement.note(tenant_id, NoiseTally(refused=1))
    raise NotAdmitted(answer)


def charge(tenant: TenantContext, units: int) -> RateAnswer | None:
    """Charge the tenant, whose caller is certain now, and return what is left, None for a tenant without a limit."""
    answer = limiter.spend(tenant.tenant_id, units, per_second=tenant.units_per_second)
    allowed = answer is None or answer.allowed
    measurement.note(tenant.tenant_id, NoiseTally(requests=1, units=units) if allowed else NoiseTally(refused=1))
    return answer
