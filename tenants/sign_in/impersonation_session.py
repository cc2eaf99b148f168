"""Keep what an operator may do in the place of a member: a session of its own, good beside the operator's alone.

The session is an item among the sessions of the member, who sees it there and can end it. Its cookie names it, the
member and the tenant under our signature. It lets nobody in by itself: the operator's own session in the same browser
has to be the one in which it was begun.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.core import signing

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.nosql import stored
from portal.nosql.session_store import AGENT_LIMIT, TENANT_KEY, SessionStore
from portal.nosql.stored import SessionItem
from tenants.audit_trail.recording import Actor
from tenants.sign_in.accounts import User

COOKIE: Final = "pooldesk_acting"
VISIT: Final = "visit"  # in the operator's own session: the Impersonation that was begun in it last
_ACTING: Final = "acting"  # in a session: what follows is an Impersonation


@dataclass(frozen=True)
class ActingIds:
    """The three ids of the cookie: they say what to read, and what was read says what may be done."""

    session_key: str
    member_id: str
    tenant_id: str


@dataclass(frozen=True)
class Impersonation:
    """An operator who acts as a member of one tenant. `until` is in seconds since the epoch.

    `visit` is what its rows in the audit trail have in common, and `operator_session` the hash of the session that it
    was begun in.
    """

    visit: str
    operator_session: str
    operator_id: str
    operator_email: str
    operator_name: str
    member_id: str
    member_email: str
    member_name: str
    tenant_id: str
    until: int
    may_write: bool

    @property
    def ends_at(self) -> datetime:
        return datetime.fromtimestamp(self.until, UTC)

    def actor(self, origin: str) -> Actor:
        """Return who acts, for the audit trail: the operator, and in whose place."""
        return Actor(self.operator_id, f"{self.operator_email} as {self.member_email}", origin)

    def of_operator(self, origin: str) -> Actor:
        """Return the operator alone, for the rows of the beginning and the end."""
        return Actor(self.operator_id, self.operator_email, origin)

    def is_good_for(self, operator: User, session_key: str) -> bool:
        """Tell whether it is still good, for this operator in this session."""
        is_same = self.operator_id == operator.id and self.operator_session == stored.session(session_key)
        return is_same and operator.is_operator and self.until > time.time()


def item_of(session_key: str, impersonation: Impersonation) -> SessionItem:
    """Return the session as it is stored, to be put."""
    data = {
        SESSION_KEY: impersonation.member_id,  # without a hash beside it: nobody is signed in by it
        TENANT_KEY: impersonation.tenant_id,
        _ACTING: asdict(impersonation),
    }
    return SessionItem(
        stored.session(session_key),
        data=SessionStore().encode(data),
        expires_at=impersonation.until,
        user_id=impersonation.member_id,
        tenant_id=impersonation.tenant_id,
        started_at=clock.stamp(),
        agent=f"Pooldesk: {impersonation.operator_email}"[:AGENT_LIMIT],
    )


def of_item(item: SessionItem | None) -> Impersonation | None:
    """Return what a session of this kind holds, None for any other; whether it is still good is not looked at."""
    stored: dict[str, Any] | None = SessionStore().decode(item.data).get(_ACTING) if item is not None else None
    return Impersonation(**stored) if stored else None


def read(ids: ActingIds) -> Impersonation | None:
    """Return the impersonation that a cookie names, None where it is over: one consistent read."""
    return of_item(PLATFORM.get(SessionItem, stored.session(ids.session_key), consistent=True))


def _signer() -> signing.Signer:
    # Made at use, as that of the session's cookie.
    return signing.Signer(salt="pooldesk.acting-cookie")


def write_cookie(ids: ActingIds) -> str:
    return _signer().sign(f"{ids.session_key}.{ids.member_id}.{ids.tenant_id}")


def read_cookie(value: str) -> ActingIds | None:
    """Return the ids, or None for a cookie that we did not sign."""
    if not value or len(value) > 300:
        return None
    try:
        return ActingIds(*_signer().unsign(value).split("."))
    except (signing.BadSignature, TypeError):
        return None
