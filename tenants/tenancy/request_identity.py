"""Write and read the session cookie: ids under one signature, which say what to read and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.core import signing
from django.utils.crypto import constant_time_compare

from portal.dynamo.platform import PLATFORM
from portal.nosql import session_store
from portal.nosql import stored as session_keys
from portal.nosql.stored import SessionItem
from portal.schema import keys
from tenants.sign_in import accounts, impersonation_session
from tenants.sign_in.accounts import User
from tenants.sign_in.impersonation_session import ActingIds, Impersonation
from tenants.sign_in.stored import AccountItem, user_key
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import MembershipItem, TenantItem

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


def used(pins: tuple[Pin, ...], slug: str, tenant_id: str) -> tuple[Pin, ...]:
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
        session_key, user_id, *pins = _signer().unsign(value).split(".")
    except (signing.BadSignature, ValueError):
        return None
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


def resolve(ids: Ids | None, path: str = "", *, is_whole: bool = False) -> Identity:
    """Read all by one BatchGetItem, eventually consistently: the tenant is the pinned one that the address names, else
    the one used last. `is_whole` says that a whole page is asked for, with what stands on that page alone.

    Where its answer would turn away somebody whose cookie we signed, it may only be a moment behind a write
    (a sign-in, a new password), so that part is read again, consistently, before it counts.
    """
    if ids is None or not keys.USER_ID.match(ids.user_id):
        return Identity(session_store.SessionStore())
    item, user, tenant = _read_items(ids, ids.tenant_at(path), _page(path) if is_whole else "")
    session = session_store.SessionStore.from_item(item, ids.session_key) if item else None
    if session is None:
        session = session_store.SessionStore(ids.session_key)
    if user is None or not _signed_in(session, user):
        user = accounts.find_by_id(ids.user_id) if session.get(SESSION_KEY) == ids.user_id else None
        if user is None or not _signed_in(session, user):
            return Identity(session_store.SessionStore())
    return Identity(session, user, tenant)


def resolve_acting(ids: Ids | None, acting: ActingIds, path: str, *, is_whole: bool = False) -> Identity:
    """Resolve both cookies of an operator who acts as a member: one BatchGetItem of consistent reads.

    Where either is not good any more, what is left is the operator's own cookie.
    """
    if ids is not None and all(map(keys.USER_ID.match, (ids.user_id, acting.member_id))):
        tenant_key = keys.tenant(acting.tenant_id)
        also = context.wanted_items(acting.tenant_id, acting.member_id, _page(path) if is_whole else "")
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
        session = session_store.SessionStore.from_item(own, ids.session_key) if own else None
        impersonation = impersonation_session.of_item(borrowed)
        if operator and session is not None and impersonation and _signed_in(session, operator):
            found = _as_member(impersonation, also, *as_member)
            if found and impersonation.is_good_for(operator, ids.session_key):
                return Identity(session, found[0], found[1], acting=impersonation)
    return replace(resolve(ids, path, is_whole=is_whole), has_ended=True)


def _page(path: str) -> str:
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
