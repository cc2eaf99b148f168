"""Write and verify a certificate: a JSON document that says itself who signed it, and of which each byte counts.

There is one way to write a certificate: its members sorted, two spaces of indentation, ASCII, a newline at the end. The
signature is over the document without the member `signature`, written in that way. Whoever verifies writes the document
again and compares, so that a file in which anything was changed, even a blank, is refused.

Source: RFC 8032, Ed25519. `verify` needs the public keys and nothing else: no database, no network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from portal.errors import Invalid

VERSION: Final = 1
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")
_RAW_KEY: Final = re.compile(r"[0-9a-f]{64}")


def key_id(public: Ed25519PublicKey) -> str:
    """Return what a certificate calls the key that signed it: the first 16 hex digits of its hash."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16]


def public_key(text: str) -> Ed25519PublicKey:
    """Read a public key from 64 hex digits. Raises Invalid."""
    if not _RAW_KEY.fullmatch(text):
        raise Invalid("A public key has 64 lower-case hex digits.")
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(text))


def private_key(text: str) -> Ed25519PrivateKey:
    """Read a private key from 64 hex digits. Raises Invalid."""
    if not _RAW_KEY.fullmatch(text):
        raise Invalid("A private key has 64 lower-case hex digits.")
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def sign(facts: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """Return the certificate of these facts, signed, as the bytes of its file."""
    unsigned = {**facts, "version": VERSION, "key": key_id(key.public_key())}
    return _written({**unsigned, "signature": key.sign(_written(unsigned)).hex()})


def digest(content: bytes) -> str:
    """Return the hash by which the next certificate names this one."""
    return hashlib.sha256(content).hexdigest()


def verify(content: bytes, keys: Mapping[str, Ed25519PublicKey]) -> dict[str, Any]:
    """Return what a certificate says, where every byte of it is as it was signed by one of these keys, by their ids.

    Raises Invalid with a sentence that says what is wrong.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Invalid("This is no certificate: it cannot be read.") from error
    if not isinstance(document, dict) or not isinstance(document.get("signature"), str):
        raise Invalid("This is no certificate: it has no signature.")
    if _written(document) != content:
        raise Invalid("This certificate was changed: it is not written as it was signed.")
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    named = document.get("key")
    key = keys.get(named) if isinstance(named, str) else None
    if key is None:
        raise Invalid(
            f"The key {named!r}, which this certificate names, is not among the known ones. Give its public key with "
            "--keys, or in CERTIFICATE_FORMER_KEYS; for a certificate of a development installation set DEBUG=1."
        )
    if not _SIGNATURE.fullmatch(document["signature"]):
        raise Invalid("This certificate was changed: its signature is none.")
    try:
        key.verify(bytes.fromhex(document["signature"]), _written(unsigned))
    except InvalidSignature as error:
        raise Invalid("This certificate was changed: its signature does not fit.") from error
    if document.get("version") != VERSION:
        raise Invalid("This certificate is of another version of Pooldesk.")
    return document


def _written(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, sort_keys=True, indent=2, ensure_ascii=True) + "\n").encode("ascii")
