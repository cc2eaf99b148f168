"""Know the keys of this installation: the one that signs certificates, and those that signed before.

CERTIFICATE_KEY is the private key that signs. When it is replaced, the public key of the former one goes into
CERTIFICATE_FORMER_KEYS, so that what it signed can still be verified. `certificate_keys --new` makes a key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings

from portal.errors import Conflict, Invalid
from tenants.certificates import signed_certificate


def signing_key() -> Ed25519PrivateKey:
    """Return the key that signs. Raises Conflict where there is none."""
    if not settings.CERTIFICATE_KEY:
        raise Conflict("There is no key to sign certificates with: set CERTIFICATE_KEY (certificate_keys --new).")
    return signed_certificate.private_key(settings.CERTIFICATE_KEY)


def known_keys() -> dict[str, Ed25519PublicKey]:
    """Return the public keys by their ids, the one that signs first. Raises Invalid for a setting that holds none."""
    present = [signing_key().public_key()] if settings.CERTIFICATE_KEY else []
    former = [signed_certificate.public_key(text) for text in settings.CERTIFICATE_FORMER_KEYS]
    return {signed_certificate.key_id(key): key for key in [*present, *former]}


def new_key() -> str:
    """Make a private key and return it as 64 hex digits."""
    return Ed25519PrivateKey.generate().private_bytes_raw().hex()


def write_keys(keys: Mapping[str, Ed25519PublicKey]) -> str:
    """Return public keys as the JSON that `read_keys` takes: whoever verifies elsewhere is given this."""
    return json.dumps({name: key.public_bytes_raw().hex() for name, key in keys.items()}, indent=2)


def read_keys(text: str) -> dict[str, Ed25519PublicKey]:
    """Read what `write_keys` wrote. Raises Invalid."""
    try:
        stored = json.loads(text)
        keys = [signed_certificate.public_key(value) for value in stored.values()]
    except (ValueError, AttributeError, TypeError) as error:
        raise Invalid("This is no file of keys, as certificate_keys prints it.") from error
    return {signed_certificate.key_id(key): key for key in keys}
