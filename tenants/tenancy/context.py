"""Who is calling and for which tenant: resolved from the signed cookie in one round trip.

The session cookie holds three ids under one signature: session, account, tenant. They are the keys of a
single BatchGetItem that brings session, account, membership and tenant together. The ids only say what to
read; what may be done follows from the items alone. A removed membership or a changed role counts at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from portal.dynamo import platform
from portal.dynamo.repository import TenantRepository
from portal.nosql import keys as session_keys
from portal.nosql import session_store
from portal.nosql.items import SessionItem
from portal.schema import keys
from tenants.identity import accounts
from tenants.identity import keys as identity_keys
from tenants.identity.items import AccountItem
from tenants.identity.models import User
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import MembershipItem, TenantItem
from tenants.tenancy.roles import Role

TENANT_KEY = session_store.TENANT_KEY


@dataclass(frozen=True)
class TenantContext:
    """One person at work in one tenant, for one request. Immutable; all data of the tenant is reached through it."""

    tenant_id: str
    name: str
    slug: str
    role: Role
    user_id: str
    user_name: str
    shards: int = 1
    shard_epoch: int = 0
    suspended: bool = False
    defaults: str | None = None  # as stored; tenants/provisioning/defaults.py reads it

    @cached_property
    def repository(self) -> TenantRepository:
        return TenantRepository(self.tenant_id)

    @property
    def role_label(self) -> str:
        return self.role.label

    @property
    def is_agent(self) -> bool:
        return self.role.at_least(Role.AGENT)

    @property
    def is_admin(self) -> bool:
        return self.role.at_least(Role.ADMIN)

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER

    @cached_property
    def page_mark(self) -> str:
        return page_mark(self.user_id, self.tenant_id)


@dataclass(frozen=True)
class Ids:
    """The three ids of a session cookie. `tenant_id` is "" before a tenant is chosen."""

    session_key: str
    user_id: str
    tenant_id: str = ""


@dataclass(frozen=True)
class Identity:
    """What the cookie resolved to. Without a user, nobody is signed in."""

    session: SessionBase
    user: User | None = None
    tenant: TenantContext | None = None


def page_mark(user_id: str, tenant_id: str) -> str:
    """What a page carries to say for whom and for which tenant it was made. It can be compared, not read back."""
    return salted_hmac("tenants.page-mark", f"{user_id}|{tenant_id}", algorithm="sha256").hexdigest()[:24]


def _signer() -> signing.Signer:
    # Made at use: the key may be missing while settings are being checked, and differs between tests.
    return signing.Signer(salt="pooldesk.session-cookie")


def write_cookie(ids: Ids) -> str:
    return _signer().sign(f"{ids.session_key}.{ids.user_id}.{ids.tenant_id}")


def read_cookie(value: str) -> Ids | None:
    """The ids, or None for a cookie that we did not sign."""
    if len(value) > 300:
        return None
    try:
        session_key, user_id, tenant_id = _signer().unsign(value).split(".")
    except (signing.BadSignature, ValueError):
        return None
    return Ids(session_key, user_id, tenant_id)


def resolve(ids: Ids | None) -> Identity:
    """One BatchGetItem of eventually consistent reads.

    Where its answer would turn away somebody whose cookie we signed, it may only be a moment behind a write
    (a sign-in, a switch, a new password), so that part is read again, consistently, before it counts.
    """
    nobody = Identity(session_store.SessionStore())
    if ids is None or not keys.USER_ID.match(ids.user_id):
        return nobody
    item, account, tenant = _read(ids)
    session = session_store.SessionStore.from_item(item, ids.session_key) if item else None
    if session is None or session.get(TENANT_KEY, "") != ids.tenant_id:
        session = session_store.SessionStore(ids.session_key)
        pinned = session.get(TENANT_KEY, "")
        if pinned != ids.tenant_id:
            _, _, tenant = _read(Ids(ids.session_key, ids.user_id, pinned))
    user = User.from_item(account) if account else None
    if user is None or not _signed_in(session, user):
        user = accounts.find_by_id(ids.user_id) if session.get(SESSION_KEY) == ids.user_id else None
        if user is None or not _signed_in(session, user):
            return nobody
    return Identity(session, user, tenant)


def _signed_in(session: SessionBase, user: User) -> bool:
    if session.get(SESSION_KEY) != user.id or not user.is_active:
        return False
    stored = session.get(HASH_SESSION_KEY, "")
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(stored, h) for h in hashes)


def _read(ids: Ids) -> tuple[SessionItem | None, AccountItem | None, TenantContext | None]:
    wanted: list[Any] = [
        (SessionItem, session_keys.session(ids.session_key), None),
        (AccountItem, identity_keys.user(ids.user_id), None),
    ]
    if ids.tenant_id:
        tenant_key = keys.tenant(ids.tenant_id)
        wanted += [(MembershipItem, ids.user_id, tenant_key), (TenantItem, tenant_key, None)]
    session, account, *rest = platform.get_all(wanted)
    tenant = _context(User.from_item(account), *rest) if rest and account else None
    return session, account, tenant


def _context(user: User, membership: Any, tenant: Any) -> TenantContext | None:
    if membership is None or tenant is None:
        return None
    return TenantContext(
        tenant_id=tenant.tenant_id,
        name=tenant.name,
        slug=tenant.slug,
        role=Role(membership.role),
        user_id=user.id,
        user_name=user.name,
        shards=int(tenant.shards),
        shard_epoch=int(tenant.shard_epoch),
        suspended=tenant.status != tenant_directory.ACTIVE,
        defaults=tenant.defaults,
    )


def enter(user: User, tenant_id: str) -> TenantContext | None:
    """The context of this person in this tenant, or None: membership and tenant by one consistent BatchGetItem."""
    if not keys.TENANT_ID.match(tenant_id):
        return None
    wanted: list[Any] = [(MembershipItem, user.id, tenant_id), (TenantItem, keys.tenant(tenant_id), None)]
    membership, tenant = platform.get_all(wanted, consistent=True)
    return _context(user, membership, tenant)


def for_system(tenant: TenantItem, *, name: str = "Pooldesk") -> TenantContext:
    """The context in which a command writes: no person, the tenant as stored."""
    return TenantContext(
        tenant_id=tenant.tenant_id,
        name=tenant.name,
        slug=tenant.slug,
        role=Role.OWNER,
        user_id="",
        user_name=name,
        shards=int(tenant.shards),
        shard_epoch=int(tenant.shard_epoch),
        defaults=tenant.defaults,
    )
