"""Find out by the session cookie who calls, and type requests as views see them, so that a view cannot forget what may
be None.

The cookie has ids under one signature, which say what to read and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, login
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.core import signing
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from portal.dynamo.platform import PLATFORM
from portal.errors import PortalError
from portal.load.tenant_limiter import RateAnswer
from portal.nosql import stored as session_keys
from portal.nosql.session_store import TENANT_KEY, SessionStore
from portal.nosql.stored import SessionItem
from portal.schema import keys
from portal.schema.access_patterns import cost
from portal.web import access, desk_prefix, locales
from portal.web.client_address import client_address
from portal.web.locales import Locale
from tenants.audit_trail.recording import Actor
from tenants.sign_in import accounts, impersonation_session, session_lifecycle
from tenants.sign_in.accounts import Profile, User
from tenants.sign_in.impersonation_session import ActingIds, Impersonation
from tenants.sign_in.stored import AccountItem, user_key
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import MembershipItem, TenantItem

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


# --- who calls ---

PINS: Final = 12  # desks in a cookie, which stays below 1.5 KB; one that fell out is looked up when it is opened again


@dataclass(frozen=True)
class Pin:
    """A desk that this session has opened, and the name in the address that it was opened under.

    `slug` is "" where the cookie is one of a former version, which held the id alone.
    """

    slug: str
    tenant_id: str


@dataclass(frozen=True)
class Ids:
    """The ids of a session cookie: session, account and the pinned desks, the last used one first."""

    session_key: str
    user_id: str
    pins: tuple[Pin, ...] = ()

    @property
    def tenant_id(self) -> str:
        """Return the desk that was used last, "" before one is chosen."""
        return self.pins[0].tenant_id if self.pins else ""

    def tenant_at(self, path: str) -> str:
        """Return the pinned desk that an address names, else the one used last."""
        named = first_word(path)
        return next((pin.tenant_id for pin in self.pins if named and pin.slug == named), self.tenant_id)


def first_word(path: str) -> str:
    """Return where an address names its desk, if it names one: no other address begins with a desk's name."""
    return path.lstrip("/").partition("/")[0]


def pinned_first(pins: tuple[Pin, ...], slug: str, tenant_id: str) -> tuple[Pin, ...]:
    """Return the pins with this desk as the last used one. It stays known by a name that it had before."""
    pin = Pin(slug, tenant_id)
    return (pin, *(other for other in pins if other.slug != slug))[:PINS]


def _signer() -> signing.Signer:
    # Made at use: the key may be missing while settings are being checked, and differs between tests.
    return signing.Signer(salt="pooldesk.session-cookie")


def write_cookie(ids: Ids) -> str:
    pins = [f"{pin.slug}~{pin.tenant_id}" for pin in ids.pins]
    return _signer().sign(".".join((ids.session_key, ids.user_id, *pins)))


def read_cookie(value: str) -> Ids | None:
    """Return the ids, or None for a cookie that we did not sign."""
    if len(value) > 1500:
        return None
    try:
        return _ids(value, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    except (signing.BadSignature, ValueError):
        return None


@lru_cache(maxsize=2048)
def _ids(value: str, *_keys: str) -> Ids:
    """Check a cookie and take it apart, once for each that we signed: a browser sends it with every request. What
    raises, such as a forged one, is not kept."""
    session_key, user_id, *pins = _signer().unsign(value).split(".")
    slugs_and_ids = (pin.rpartition("~") for pin in pins if pin)
    return Ids(session_key, user_id, tuple(Pin(slug, tenant_id) for slug, _, tenant_id in slugs_and_ids))


@dataclass(frozen=True)
class Identity:
    """The session, person and tenant of a cookie. Without a user, nobody is signed in.

    While an operator acts as a member, the session is the operator's, person and tenant are the member's. `has_ended`
    says that this was so until now.
    """

    session: SessionBase
    user: User | None = None
    tenant: TenantContext | None = None
    acting: Impersonation | None = None
    has_ended: bool = False


def resolve_identity(ids: Ids | None, path: str = "", *, is_whole: bool = False) -> Identity:
    """Read all by one BatchGetItem, eventually consistently: the tenant is the pinned one that the address names, else
    the one used last. `is_whole` says that a whole page is asked for, with what stands on that page alone.

    Where its answer would turn away somebody whose cookie we signed, it may only be a moment behind a write
    (a sign-in, a new password), so that part is read again, consistently, before it counts.
    """
    if ids is None or not keys.USER_ID.match(ids.user_id):
        return Identity(SessionStore())
    item, user, tenant = _read_items(ids, ids.tenant_at(path), _page_of(path) if is_whole else "")
    session = SessionStore.from_item(item, ids.session_key) if item else None
    if session is None:
        session = SessionStore(ids.session_key)
    if user is None or not _signed_in(session, user):
        user = accounts.find_by_id(ids.user_id) if session.get(SESSION_KEY) == ids.user_id else None
        if user is None or not _signed_in(session, user):
            return Identity(SessionStore())
    return Identity(session, user, tenant)


def resolve_acting(ids: Ids | None, acting: ActingIds, path: str, *, is_whole: bool = False) -> Identity:
    """Resolve both cookies of an operator who acts as a member: one BatchGetItem of consistent reads.

    Where either is not good any more, what is left is the operator's own cookie.
    """
    if ids is not None and all(map(keys.USER_ID.match, (ids.user_id, acting.member_id))):
        tenant_key = keys.tenant(acting.tenant_id)
        also = context.wanted_items(acting.tenant_id, acting.member_id, _page_of(path) if is_whole else "")
        wanted: list[Any] = [
            (SessionItem, session_keys.session(ids.session_key), None),
            (AccountItem, user_key(ids.user_id), None),
            (SessionItem, session_keys.session(acting.session_key), None),
            (AccountItem, user_key(acting.member_id), None),
            (MembershipItem, acting.member_id, tenant_key),
            (TenantItem, tenant_key, None),
            *also.values(),
        ]
        own, account, borrowed, *as_member = PLATFORM.get_all(wanted, consistent=True)
        operator = User.from_item(account) if account else None
        session = SessionStore.from_item(own, ids.session_key) if own else None
        impersonation = impersonation_session.of_item(borrowed)
        if operator and session is not None and impersonation and _signed_in(session, operator):
            found = _as_member(impersonation, also, *as_member)
            if found and impersonation.is_good_for(operator, ids.session_key):
                return Identity(session, found[0], found[1], acting=impersonation)
    return replace(resolve_identity(ids, path, is_whole=is_whole), has_ended=True)


def _page_of(path: str) -> str:
    """Return the address of a page behind the name of its desk."""
    return path.removeprefix(f"/{first_word(path)}/")


def _as_member(
    impersonation: Impersonation, also: Iterable[str], account: Any, membership: Any, tenant: Any, *items: Any
) -> Any:
    """Return the person and the tenant in whose place somebody acts, None where that is not possible any more."""
    user = User.from_item(account) if account else None
    if user is None or not user.is_active or user.is_operator or user.id != impersonation.member_id:
        return None
    found = context.of_items(
        user, membership, tenant, dict(zip(also, items, strict=True)), acted_by=impersonation.operator_name
    )
    if found is None or found.tenant_id != impersonation.tenant_id or found.is_auditor:  # nobody acts as an auditor
        return None
    return user, found


def _signed_in(session: SessionBase, user: User) -> bool:
    if session.get(SESSION_KEY) != user.id or not user.is_active:
        return False
    stored = session.get(HASH_SESSION_KEY, "")
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(stored, h) for h in hashes)


def _read_items(ids: Ids, tenant_id: str, page: str) -> tuple[SessionItem | None, User | None, TenantContext | None]:
    wanted: list[Any] = [
        (SessionItem, session_keys.session(ids.session_key), None),
        (AccountItem, user_key(ids.user_id), None),
    ]
    if tenant_id:
        tenant_key = keys.tenant(tenant_id)
        wanted += [(MembershipItem, ids.user_id, tenant_key), (TenantItem, tenant_key, None)]
        also = context.wanted_items(tenant_id, ids.user_id, page)
        wanted += also.values()
    session, account, *rest = PLATFORM.get_all(wanted)
    user = User.from_item(account) if account else None
    if not rest or user is None:
        return session, user, None
    membership, tenant, *items = rest
    return session, user, context.of_items(user, membership, tenant, dict(zip(also, items, strict=True)))


# --- requests as views see them ---


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


class refusal_told:
    """Do what a page is for. An error of these kinds ends that, and is a message on the page that follows."""

    def __init__(self, request: HttpRequest, *refusals: type[PortalError]) -> None:
        self._request, self._refusals = request, refusals

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not (isinstance(error, PortalError) and isinstance(error, self._refusals)):
            return False
        messages.error(self._request, error.message)
        return True


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
    request.pins = pinned_first(pins, tenant.slug, tenant.tenant_id)  # type: ignore[attr-defined]  # ours
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
