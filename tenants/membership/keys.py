"""Form the keys of invitations."""

from __future__ import annotations

from portal.schema import keys
from tenants.identity.keys import folded


def invite_token(token: str) -> str:
    """Return the partition key of the target of an invitation's link. Only a hash of the link's secret is stored."""
    return keys.joined("INVITE", keys.digest(token, size=32))


def invited(address: str) -> str:
    """Return the partition key, in Platform.Memberships, of the pending invitations of an address: one per tenant."""
    return keys.labelled("INVITED", folded(address))
