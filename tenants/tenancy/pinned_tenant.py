"""Resolve the ids of the session cookie to their person and one of the pinned tenants, anew at each request.

The cookie holds session, account and the pinned tenants under one signature. The address chooses among these: its name
is compared with theirs, and never makes a key. The chosen ids are the keys of a single BatchGetItem that brings
session, account, membership and tenant together. The ids only say what to read; what may be done follows from the
items alone. A removed membership or a changed role counts at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.utils.crypto import constant_time_compare

from portal.dynamo import platform
from portal.nosql import keys as session_keys
from portal.nosql import session_store
from portal.nosql.items import SessionItem
from portal.schema import keys
from tenants.sign_in import accounts, impersonation_session
from tenants.sign_in.accounts import User
from tenants.sign_in.impersonation_session import ActingIds, Impersonation
from tenants.sign_in.stored import AccountItem, user_key
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import MembershipItem, TenantItem
from tenants.tenancy.session_cookie import Ids


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


def resolve(ids: Ids | None, path: str = "") -> Identity:
    """Read all by one BatchGetItem, eventually consistently: the tenant is the pinned one that the address names, else
    the one used last.

    Where its answer would turn away somebody whose cookie we signed, it may only be a moment behind a write
    (a sign-in, a new password), so that part is read again, consistently, before it counts.
    """
    nobody = Identity(session_store.SessionStore())
    if ids is None or not keys.USER_ID.match(ids.user_id):
        return nobody
    item, account, tenant = _read(ids, ids.tenant_at(path))
    session = session_store.SessionStore.from_item(item, ids.session_key) if item else None
    if session is None:
        session = session_store.SessionStore(ids.session_key)
    user = User.from_item(account) if account else None
    if user is None or not _signed_in(session, user):
        user = accounts.find_by_id(ids.user_id) if session.get(SESSION_KEY) == ids.user_id else None
        if user is None or not _signed_in(session, user):
            return nobody
    return Identity(session, user, tenant)


def resolve_acting(ids: Ids | None, acting: ActingIds, path: str) -> Identity:
    """Resolve both cookies of an operator who acts as a member: one BatchGetItem of consistent reads.

    Where either is not good any more, what is left is the operator's own cookie.
    """
    if ids is not None and all(map(keys.USER_ID.match, (ids.user_id, acting.member_id))):
        tenant_key = keys.tenant(acting.tenant_id)
        wanted: list[Any] = [
            (SessionItem, session_keys.session(ids.session_key), None),
            (AccountItem, user_key(ids.user_id), None),
            (SessionItem, session_keys.session(acting.session_key), None),
            (AccountItem, user_key(acting.member_id), None),
            (MembershipItem, acting.member_id, tenant_key),
            (TenantItem, tenant_key, None),
        ]
        own, account, borrowed, *as_member = platform.get_all(wanted, consistent=True)
        operator = User.from_item(account) if account else None
        session = session_store.SessionStore.from_item(own, ids.session_key) if own else None
        impersonation = impersonation_session.of_item(borrowed)
        if operator and session is not None and impersonation and _signed_in(session, operator):
            found = _as_member(impersonation, *as_member)
            if found and impersonation.is_good_for(operator, ids.session_key):
                return Identity(session, found[0], found[1], acting=impersonation)
    return replace(resolve(ids, path), has_ended=True)


def _as_member(impersonation: Impersonation, account: Any, membership: Any, tenant: Any) -> Any:
    """Return the person and the tenant in whose place somebody acts, None where that is not possible any more."""
    user = User.from_item(account) if account else None
    if user is None or not user.is_active or user.is_operator or user.id != impersonation.member_id:
        return None
    found = context.of_items(user, membership, tenant, acted_by=impersonation.operator_name)
    return (user, found) if found and found.tenant_id == impersonation.tenant_id else None


def _signed_in(session: SessionBase, user: User) -> bool:
    if session.get(SESSION_KEY) != user.id or not user.is_active:
        return False
    stored = session.get(HASH_SESSION_KEY, "")
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(stored, h) for h in hashes)


def _read(ids: Ids, tenant_id: str) -> tuple[SessionItem | None, AccountItem | None, TenantContext | None]:
    wanted: list[Any] = [
        (SessionItem, session_keys.session(ids.session_key), None),
        (AccountItem, user_key(ids.user_id), None),
    ]
    if tenant_id:
        tenant_key = keys.tenant(tenant_id)
        wanted += [(MembershipItem, ids.user_id, tenant_key), (TenantItem, tenant_key, None)]
    session, account, *rest = platform.get_all(wanted)
    tenant = context.of_items(User.from_item(account), *rest) if rest and account else None
    return session, account, tenant
