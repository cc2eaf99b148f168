"""Make the secret tokens of invitation links, and hash them: a token itself is not stored. Say how long they hold."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Final

from portal.schema import keys
from tenants.membership.keys import invite_link

LIFETIME: Final = timedelta(days=7)  # of an invitation and its link
_TOKEN_BYTES: Final = 32


def new() -> str:
    """Make a token: 43 characters that fit into an address."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def link_key(token: str) -> str:
    """Hash a token into the partition key of what its link leads to."""
    return invite_link(keys.digest(token, size=32))
