"""Visit the portal during the proof as different people: a member of each tenant, and somebody who is a member no more.

Sessions are real and end with the run. The one account that is made, and its memberships, are removed again; where a
killed run left them, the next one finds them by their address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password

from portal.errors import Conflict
from portal.nosql.session_store import TENANT_KEY, SessionStore
from proofs import cleanup
from proofs.isolation import keys as proof_keys
from proofs.isolation.targets import SCRATCH_ADDRESS, Target, person_of
from tenants.membership import member_changes, members
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.sign_in.stored import AccountItem, email_key, user_key
from tenants.tenancy.context import Role
from tenants.tenancy.request import Ids, Pin
from tickets.ticket.stored import DetailItem

_SESSION = 3600  # seconds; what a killed run leaves expires by itself


@dataclass(frozen=True)
class Visitor:
    """Somebody with a session in a tenant. `homes` are the tenants that this person may see."""

    target: Target
    user: User
    session_key: str
    homes: frozenset[str]

    @property
    def ids(self) -> Ids:
        return Ids(self.session_key, self.user.id, (Pin(self.target.tenant.slug, self.target.id),))


@dataclass(frozen=True)
class Visitors:
    """`stale` are sessions pinned to tenants that their owner was taken out of."""

    members: dict[str, Visitor]
    stale: list[Visitor]


@contextmanager
def visiting(targets: Sequence[Target]) -> Iterator[Visitors]:
    """Mint the sessions, and take everything away in the end."""
    remove_scratch(targets)
    minted: list[SessionStore] = []
    try:
        found = {t.id: _visitor(t, user, minted) for t in targets if (user := person_of(t))}
        yield Visitors(found, _taken_out(targets, minted))
    finally:
        for session in minted:
            session.delete()
        remove_scratch(targets)


def mint(user: User, tenant_id: str, minted: list[SessionStore] | None = None) -> Ids:
    """Return a session as signing in starts one, without a password and without a trace in the audit trail.

    It is added to `minted` before it is written: whoever is interrupted meanwhile knows its key.
    """
    session = SessionStore()
    if minted is not None:
        minted.append(session)
    session[SESSION_KEY] = user.id
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session[TENANT_KEY] = tenant_id
    session.begin(address="", agent="")
    session.set_expiry(_SESSION)
    session.create()
    pins = (Pin("", tenant_id),) if tenant_id else ()
    return Ids(session.session_key or "", user.id, pins)


def _visitor(target: Target, user: User, minted: list[SessionStore], homes: frozenset[str] | None = None) -> Visitor:
    ids = mint(user, target.id, minted)
    if homes is None:
        homes = frozenset(m.tenant_id for m in members.memberships_of(user.id))
    return Visitor(target, user, ids.session_key, homes)


def _taken_out(targets: Sequence[Target], minted: list[SessionStore]) -> list[Visitor]:
    """Return somebody who was an owner in each tenant, with a session there, until a moment ago."""
    unusable = make_password(None)  # nobody can sign in with it
    user = accounts.seed(email=SCRATCH_ADDRESS, name="Isolation Proof", password_hash=unusable)
    for target in targets:
        member_changes.seed_member(user, target.tenant, Role.OWNER)
    stale = [_visitor(target, user, minted, frozenset()) for target in targets]
    for target in targets:
        member_changes.unseed_member(user.id, target.id)
    return stale


def remove_scratch(targets: Sequence[Target]) -> None:
    """Remove the account of this run or of a killed one, its memberships, and every scratch item of these tenants."""
    user = accounts.find_by_email(SCRATCH_ADDRESS)
    if user is not None:
        for membership in members.memberships_of(user.id):
            with suppress(Conflict):
                member_changes.unseed_member(user.id, membership.tenant_id)
        AccountItem(user_key(user.id)).delete()
        AccountItem(email_key(SCRATCH_ADDRESS)).delete()
    for target in targets:
        left = target.tenant.repository.query_all(DetailItem, proof_keys.proof, consistent=True)
        cleanup.delete_scratch(target.tenant.repository, [item.sk for item in left])


def scratch_left(targets: Sequence[Target]) -> int:
    return sum(len(t.tenant.repository.query(DetailItem, proof_keys.proof, consistent=True).items) for t in targets)
