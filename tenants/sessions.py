"""Sign-ins in the audit trail: of a session that enters a tenant in that tenant's, of a refused one in the platform's.

How many refusals there can be is bounded by the throttle, which answers before a password is looked at.
"""

from __future__ import annotations

from portal.dynamo import keys
from tenants import accounts, audit
from tenants.audit import Action, Actor, Entry


def started(tenant_id: str, *, by: Actor) -> None:
    audit.record(Entry(tenant_id, Action.SESSION_STARTED, by, "user", by.id, by.email))


def refused(address: str, *, origin: str) -> None:
    """A wrong password, or an address without an account: the row does not tell which."""
    address = accounts.normal_address(address)
    by = Actor("anonymous", "", origin)
    audit.record(Entry(audit.PLATFORM, Action.SESSION_REFUSED, by, "address", keys.anonymous(address), address))
