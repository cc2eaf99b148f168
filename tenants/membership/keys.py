"""Form the keys of invitations."""

from __future__ import annotations

from portal.schema import keys
from tenants.sign_in.stored import folded


def invite_link(hashed_token: str) -> str:
    """Return the partition key of what an invitation's link leads to, formed from the hash of the link's token."""
    return keys.joined("INVITE", hashed_token)


def invited(address: str) -> str:
    """Return the partition key, in Platform.Memberships, of the pending invitations of an address: one per tenant."""
    return keys.labelled("INVITED", folded(address))
