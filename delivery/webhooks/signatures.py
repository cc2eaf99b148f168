"""Sign deliveries, so that a receiver can tell ours from those of somebody else.

`v1,` and the HMAC-SHA256 over `<id>.<timestamp>.<body>`, in base64. While a secret is being replaced there are two, and
a delivery carries a signature by each of them, separated by a blank.

Source: Standard Webhooks, specification 1.0, "Signature scheme" and "Zero downtime secret rotation".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32  # the specification: from 24 to 64


def new_secret() -> str:
    """Make a secret, in the form that receivers' libraries take."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def is_secret(text: str) -> bool:
    """Tell whether a text is a secret that can be signed with. Raises ValueError where it is none."""
    return bool(base64.b64decode(text.removeprefix(PREFIX), validate=True))


def headers(signing: Sequence[str], *, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a delivery. `timestamp` is of the attempt, in seconds since 1970."""
    signed = [_signature(secret, event_id, timestamp, body) for secret in signing]
    return {"webhook-id": event_id, "webhook-timestamp": str(timestamp), "webhook-signature": " ".join(signed)}


def verifies(secret: str, *, event_id: str, timestamp: str, body: bytes, signature: str) -> bool:
    """Tell whether one of the signatures in a header was made with this secret. Any text may be handed in."""
    try:
        expected = _signature(secret, event_id, int(timestamp), body)
    except (ValueError, binascii.Error):
        return False
    return any(hmac.compare_digest(expected.encode(), given.encode()) for given in signature.split(" "))


def _signature(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    signed = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
