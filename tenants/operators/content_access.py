"""Let an operator see what the people of one desk have written, for a reason that the desk's owners can read.

`is_open` decides, and nothing else does. Without access the operators' pages show figures, ids, sizes and states; what
a facade names as its `content` is hidden, and a form asks for the desk and the reason. Access is to one desk, lasts
fifteen minutes, is kept in the operator's session, and is compared with the clock on each request. It begins with a row
in the desk's audit trail, which is written first: where that fails, nothing is shown.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.impersonation.impersonating import ENTITY
from tenants.membership import members
from tenants.operators.facades import Account, AuditRow, Session
from tenants.sign_in import accounts
from tenants.tenancy.stored import TenantItem

SECONDS: Final = 15 * 60
_KEY: Final = "content_access"  # in an operator's session


@dataclass(frozen=True)
class ContentAccess:
    """Access of one operator to the content of one desk. `until` is in seconds since the epoch."""

    tenant_id: str
    name: str
    reason: str
    until: float

    @property
    def ends_at(self) -> datetime:
        return datetime.fromtimestamp(self.until, UTC)


def current(request: Any) -> ContentAccess | None:
    """Return the access that goes on in this session, None where there is none or its time is over."""
    stored = request.session.get(_KEY)
    access = ContentAccess(**stored) if stored else None
    return access if access and access.until > time.time() else None


def is_open(request: Any, tenant_ids: Collection[str]) -> bool:
    """Tell whether this operator may see the content of one of these desks now.

    Where the answer is no, the page will ask for a reason.
    """
    access = current(request)
    if access is not None and access.tenant_id in tenant_ids:
        return True
    request.hidden_tenants = {*getattr(request, "hidden_tenants", ()), *tenant_ids}
    return False


def begin(request: Any, tenant: TenantItem, *, reason: str, by: Actor) -> ContentAccess:
    """Open the content of a desk for fifteen minutes, in place of that of any other desk.

    Its owners see who did, when, why and until when. Raises what recording a row raises.
    """
    access = ContentAccess(tenant.tenant_id, tenant.name, reason, int(time.time()) + SECONDS)
    after = {"reason": reason, "until": clock.stamp(access.ends_at)}
    entry = AuditEntry(tenant.tenant_id, AuditAction.CONTENT_OPENED, by, *ENTITY, tenant.name, after=after)
    recording.commit(Transaction(), [entry])
    request.session[_KEY] = asdict(access)
    return access


def end(request: Any) -> None:
    """Hide the content again, before the time is over."""
    request.session.pop(_KEY, None)


def panel(request: Any) -> dict[str, Any]:
    """Return what a page says about this: the access that goes on, and of which desks it has hidden content."""
    hidden = sorted(getattr(request, "hidden_tenants", ()))
    return {"access": current(request), "is_hidden": bool(hidden), "of_one": hidden[0] if len(hidden) == 1 else ""}


# --- what is hidden ---


def hide(request: Any, objects: Iterable[Any]) -> None:
    """Hide the content of facades, unless there is access to a desk whose it is.

    Accounts, their sessions and the rows of the platform's trail that name somebody are of the desks that the person is
    in, which costs a Query each, all at once. One's own, an operator's, and that of nobody's member are the platform's.
    """
    with_content = [obj for obj in objects if obj.content]
    named = [_people(obj) - {request.user.pk, request.user.email} for obj in with_content]
    people = sorted(set().union(*named))
    desks = dict(zip(people, fan_out([partial(_desks_of, person) for person in people]), strict=True))
    for obj, persons in zip(with_content, named, strict=True):
        tenant_ids = _own_desk(obj).union(*(desks[person] for person in persons))
        if tenant_ids and not is_open(request, tenant_ids):
            acts_for_the_platform = isinstance(obj, AuditRow) and not _own_desk(obj) and not desks.get(obj.actor_id)
            obj.hide(but=("actor_email", "origin") if acts_for_the_platform else ())


def _own_desk(obj: Any) -> set[str]:
    """Return the desk whose an object is by its key."""
    return set() if isinstance(obj, Session) else {getattr(obj, "tenant_id", "")} - {"", keys.PLATFORM}


def _people(obj: Any) -> set[str]:
    """Return the ids or addresses of the people whose account or session this is, or named by the platform's trail."""
    if isinstance(obj, Account):
        return set() if obj.is_operator else {str(obj.pk)}
    if isinstance(obj, Session):
        return {str(obj.user_id)}
    if not isinstance(obj, AuditRow) or obj.tenant_id != keys.PLATFORM:
        return set()
    name = obj.entity_name if obj.entity_type == "address" else obj.entity_id
    kind = obj.entity_type in ("address", "user")
    return {obj.actor_id if keys.USER_ID.match(obj.actor_id) else "", name if kind else ""} - {""}


def _desks_of(person: str) -> set[str]:
    """Return the desks of somebody by id or address: no desk for an address that is nobody's."""
    if "@" in person:
        user = accounts.find_by_email(person)
        person = user.id if user else ""
    return {one.tenant_id for one in members.memberships_of(person)} if person else set()
