"""Form the keys of invitations."""

from __future__ import annotations

from portal.schema import keys
from tenants.identity.keys import folded


def invite_token(token: str) -> str:
    """Partition key of what an invitation's link leads to. Only a hash of the link's secret is stored."""
    return keys.joined("INVITE", keys.digest(token, size=32))


def invited(address: str) -> str:
    """Partition key, in Platform.Memberships, of an address's pending invitations: one per tenant."""
    return keys.labelled("INVITED", folded(address))
