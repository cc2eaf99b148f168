"""Type requests as views see them after the middlewares, so that a view cannot forget what may be None."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from portal.errors import PortalError
from portal.load.tenant_limiter import RateAnswer
from portal.nosql.session_store import TENANT_KEY, SessionStore
from portal.schema.access_patterns import cost
from portal.web import access, desk_prefix, locales
from portal.web.client_address import client_address
from portal.web.locales import Locale
from tenants.audit_trail.recording import Actor
from tenants.sign_in import session_lifecycle
from tenants.sign_in.accounts import Profile, User
from tenants.sign_in.impersonation_session import Impersonation
from tenants.tenancy import request_identity
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request_identity import Pin

CONFIRMED_SECONDS: Final = 600  # for which it holds that the person has just proved to be who they are
_CONFIRMED_KEY: Final = "confirmed_at"  # in a session
WAITING_KEY: Final = "enters_later"  # in a session: the tenants that were opened and do not let the person in by now

# What a request takes before its view: the identity, whoever it is, and now and then more.
IDENTITY: Final = cost(get="session, account, membership, tenant, setup, inbox, waiting letters", trips=1, reads=3.5)
for level in ("public", "signed_in", "member", "operator"):
    access.declare_level_cost(level, IDENTITY)
access.declare_level_cost("guest", cost(get="tenant", trips=1, reads=1))
SAVING_SESSION: Final = access.cost_now_and_then("a session that changed", cost(write="session", trips=1, writes=6))
ENTERING: Final = access.cost_now_and_then(
    "a desk that is entered, or left by an operator",
    cost(get="session", query="membership", write="session, audit row", trips=6, reads=10, writes=14),
)
ACTING: Final = access.cost_now_and_then(
    "an operator who acts as a member", cost(get="session, account, membership", trips=1, reads=9)
)


class IdentifiedRequest(HttpRequest):
    """A request as the middlewares make it. `acting_cookie` is set where an impersonation begins or ends."""

    user: User | AnonymousUser
    tenant: TenantContext | None
    pins: tuple[Pin, ...]
    acting: Impersonation | None
    acting_has_ended: bool
    acting_cookie: str
    rate_answer: RateAnswer | None
    desk: TenantContext


@contextmanager
def refusal_told(request: HttpRequest, *refusals: type[PortalError]) -> Iterator[None]:
    """Do what a page is for. An error of these kinds ends that, and is a message on the page that follows."""
    try:
        yield
    except refusals as error:
        messages.error(request, error.message)


class GuestRequest(IdentifiedRequest):
    """Somebody outside, at the page of one desk. `desk` has its data; no person is at work in it."""


class SignedInRequest(IdentifiedRequest):
    """Somebody is signed in; a tenant may be pinned."""

    user: User


class TenantRequest(SignedInRequest):
    """A member of the pinned tenant, with at least the role that the view declares."""

    tenant: TenantContext


def locale_of(
    request: IdentifiedRequest, *, profile: Profile | None = None, desk_language: str | None = None
) -> Locale:
    """Return the locale of the person, as far as is known by now who that is.

    `profile` and `desk_language` are what the request itself has just stored in place of what it came with.
    """
    person = Profile.parse(getattr(request.user, "profile", "")) if profile is None else profile
    desk = request.tenant
    chosen = desk_language if desk_language in locales.LANGUAGES else ""
    if desk_language is None and desk:
        chosen = desk.chosen_language
    asked = chosen or locales.asked_language(request.headers.get("Accept-Language", ""))
    return person.locale(desk.chosen_zone if desk else "", asked)


def set_cookie(response: HttpResponse, name: str, value: str, *, max_age: int, path: str = "/") -> None:
    """Set a cookie that no script reads and no other site's form sends."""
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(name, value, max_age=max_age, path=path, secure=secure, httponly=True, samesite="Lax")


def absolute_url(request: HttpRequest, path: str) -> str:
    """Return the address of a page for a mail: PORTAL_BASE_URL and the path.

    A Host header comes from whoever sends the request. Only development may leave the setting empty: links then lead to
    the port that took the request, on this machine. Raises ImproperlyConfigured elsewhere.
    """
    base: str = settings.PORTAL_BASE_URL
    if not base:
        if not settings.DEBUG:
            raise ImproperlyConfigured("PORTAL_BASE_URL is empty: mails cannot say where the portal is.")
        base = f"{request.scheme}://127.0.0.1:{request.META['SERVER_PORT']}"
    return base + path


def page_for_mail(path: str, request: HttpRequest | None = None) -> str:
    """Return where a page is, for a mail: its address, as `absolute_url` gives it.

    A command has no request: where PORTAL_BASE_URL is empty too, it is the path, in words that say what it is.
    """
    if request is not None:
        return absolute_url(request, path)
    base: str = settings.PORTAL_BASE_URL
    return base + path if base else _("On the page %(path)s, at the address where you open Pooldesk.") % {"path": path}


def actor_of(request: HttpRequest) -> Actor:
    """Return who acts and from where, for the audit trail. Somebody is signed in."""
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    acting: Impersonation | None = getattr(request, "acting", None)
    if acting is not None:
        return acting.actor(client_address(request))
    return Actor(user.id, user.email, client_address(request))


def start_session(request: HttpRequest, user: User) -> None:
    """Sign this person in here, in a session of its own, noted with where it comes from."""
    session: SessionStore = request.session  # type: ignore[assignment]  # the middleware's
    if not session.is_empty():
        # Django keeps the key where the same person signs in again; a key never survives a sign-in here.
        session.flush()
    request.pins = ()  # type: ignore[attr-defined]  # those of another session
    desk_prefix.use("")
    login(request, user, settings.AUTHENTICATION_BACKENDS[0])
    note_confirmed(request)
    session.begin(address=client_address(request), agent=request.headers.get("User-Agent", ""))


def note_confirmed(request: HttpRequest) -> None:
    """Note in the session that the person has just proved to be who they are."""
    request.session[_CONFIRMED_KEY] = int(time.time())


def is_confirmed(request: HttpRequest) -> bool:
    """Tell whether the person has proved that a moment ago, at sign-in or since."""
    return int(request.session.get(_CONFIRMED_KEY, 0)) > time.time() - CONFIRMED_SECONDS


def pin_tenant(request: HttpRequest, tenant: TenantContext) -> None:
    """Pin a tenant to the session, as the last used one. The caller has looked the membership up."""
    pins: tuple[Pin, ...] = request.pins  # type: ignore[attr-defined]  # ours
    request.pins = request_identity.used(pins, tenant.slug, tenant.tenant_id)  # type: ignore[attr-defined]  # ours
    request.session[TENANT_KEY] = tenant.tenant_id  # for the person's list of sessions
    desk_prefix.use(tenant.slug)


def unpin_tenant(request: HttpRequest, tenant: TenantContext) -> None:
    """Let the session forget a tenant that the person has left."""
    pins: tuple[Pin, ...] = request.pins  # type: ignore[attr-defined]  # ours
    request.pins = tuple(p for p in pins if p.tenant_id != tenant.tenant_id)  # type: ignore[attr-defined]  # ours
    request.session.pop(TENANT_KEY, None)
    desk_prefix.use("")


def enter_desk(request: HttpRequest, tenant: TenantContext, *, by: Actor) -> None:
    """Pin a desk of the person's to the session, and have its audit trail say so: now, or where it keeps them out
    until they have a second factor or it is resumed, once it has let them in."""
    pin_tenant(request, tenant)
    access.add_cost(request, ENTERING)
    user: User = request.user  # type: ignore[assignment]  # signed in: our User
    if tenant.where.purged or tenant.suspended or (tenant.needs_second_factor and not user.second_factors):
        request.session[WAITING_KEY] = [*_waiting(request, but=tenant), tenant.tenant_id]
    else:
        session_lifecycle.started(tenant.tenant_id, by=by)


def note_let_in(request: HttpRequest, tenant: TenantContext) -> None:
    """Have the audit trail say that the person is in, where it was to wait for that."""
    if tenant.tenant_id in request.session.get(WAITING_KEY, ()) and not tenant.acted_by:
        request.session[WAITING_KEY] = _waiting(request, but=tenant)
        access.add_cost(request, ENTERING)
        session_lifecycle.started(tenant.tenant_id, by=actor_of(request))


def _waiting(request: HttpRequest, *, but: TenantContext) -> list[str]:
    stored: list[str] | str = request.session.get(WAITING_KEY, [])
    # A former version stored one id.
    return [waits for waits in ([stored] if isinstance(stored, str) else stored) if waits != but.tenant_id]
