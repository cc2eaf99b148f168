"""Sign, verify and issue certificates: JSON documents that say themselves who signed them.

There is one way to write a certificate: its members sorted, two spaces of indentation, ASCII, a newline at the end. The
signature is over the document without the member `signature`, written in that way. `verify` writes the document again
and compares, so that a file in which anything was changed, even a blank, is refused.

CERTIFICATE_KEY is the private key that signs. When it is replaced, the public key of the former one goes into
CERTIFICATE_FORMER_KEYS, so that what it signed can still be verified. `certificate_keys --new` makes a key.

Certificates are issued one after the other, each with the hash of the one before. The last certificate tells whether
one before it was taken away or replaced.

Source: RFC 8032, Ed25519. `verify` needs the public keys and nothing else: no database, no network.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, NotFound, Throttled, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle.stored import CERTIFICATES, CertificateItem, numbered

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


# --- pages that are signed ---

_PAGE_ENDS: Final = b"\n<!-- signature, which `manage.py verify_certificate` verifies\n"
_SIGNATURE_ENDS: Final = b"-->\n"


def sign_page(page: bytes, facts: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """Return an HTML page with a certificate behind it, in a comment. It holds the facts and the hash of the page.

    So every byte that a reader sees is signed. Raises ValueError for facts that would end the comment.
    """
    certificate = sign({**facts, "sha256": digest(page)}, key)
    if b"--" in certificate:
        raise ValueError("the facts of a signed page have no two dashes in a row")
    return page + _PAGE_ENDS + certificate + _SIGNATURE_ENDS


def is_page(content: bytes) -> bool:
    """Tell whether a file is an HTML page, whose signature stands behind it."""
    return content.lstrip()[:9].lower() == b"<!doctype"


def verify_page(content: bytes, keys: Mapping[str, Ed25519PublicKey]) -> dict[str, Any]:
    """Return what the certificate behind a page says, where every byte of both is as it was signed. Raises Invalid."""
    page, ends, signature = content.rpartition(_PAGE_ENDS)
    if not ends or not signature.endswith(_SIGNATURE_ENDS):
        raise Invalid("This page was changed, or is none of ours: it does not end with a signature.")
    said = verify(signature.removesuffix(_SIGNATURE_ENDS), keys)
    if said.get("sha256") != digest(page):
        raise Invalid("This page was changed: its signature does not fit.")
    return said


def _written(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, sort_keys=True, indent=2, ensure_ascii=True) + "\n").encode("ascii")


def signing_key() -> Ed25519PrivateKey:
    """Return the key that signs. Raises Conflict where there is none."""
    if not settings.CERTIFICATE_KEY:
        raise Conflict("There is no key to sign certificates with: set CERTIFICATE_KEY (certificate_keys --new).")
    return private_key(settings.CERTIFICATE_KEY)


def is_development_key() -> bool:
    """Tell whether this installation signs with the key of development, which is published: so anybody can."""
    return settings.CERTIFICATE_KEY == settings.DEVELOPMENT_CERTIFICATE_KEY


def known_keys() -> dict[str, Ed25519PublicKey]:
    """Return the public keys by their ids, the one that signs first. Raises Invalid for a setting that holds none."""
    present = [signing_key().public_key()] if settings.CERTIFICATE_KEY else []
    former = [public_key(text) for text in settings.CERTIFICATE_FORMER_KEYS]
    return {key_id(key): key for key in [*present, *former]}


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
        keys = [public_key(value) for value in stored.values()]
    except (ValueError, AttributeError, TypeError) as error:
        raise Invalid("This is no file of keys, as certificate_keys prints it.") from error
    return {key_id(key): key for key in keys}


_NEXT: Final = "number of the certificate"  # names a member of a transaction
_ATTEMPTS: Final = 20
LOOKED_THROUGH: Final = 100


def issue(facts: Mapping[str, Any], *, tenant_id: str, title: str, by: Actor, transaction: Transaction) -> bytes:
    """Sign what was done, store it behind the last certificate with the rest of the transaction, and return it.

    `facts` get their number, the hash of the certificate before, and the time. The platform's trail has a row that
    names the certificate and nobody else. Raises Conflict where no key signs, Throttled, TransactionRefused.
    """
    key = signing_key()
    issued: list[CertificateItem] = []

    def attempt() -> None:
        last = _last()
        number, at = int(last.name) + 1 if last else 1, clock.stamp()
        told = {**facts, "number": number, "previous": last.digest if last else "", "issued_at": at}
        content = sign(told, key)
        item = CertificateItem(
            CERTIFICATES,
            numbered(number),
            tenant_id=tenant_id,
            title=title,
            created_at=at,
            content=content.decode("ascii"),
            digest=digest(content),
        )
        whole = transaction.copy()
        whole.put(item, name=_NEXT, condition=CertificateItem.name.does_not_exist())
        entry = AuditEntry(
            recording.PLATFORM, AuditAction.TENANT_PURGED, by, "certificate", item.name, f"certificate {number}"
        )
        recording.commit(whole, [entry])
        issued.append(item)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(_NEXT),
        attempts=_ATTEMPTS,
        given_up=lambda: Throttled("Too many certificates are being issued at the same time."),
    )
    return issued[0].content.encode("ascii")


def numbered_certificate(number: str) -> CertificateItem:
    """Return a certificate by its number as it is stored, digits with zeros in front. Raises NotFound."""
    found = PLATFORM.get(CertificateItem, CERTIFICATES, sort=number)
    if found is None:
        raise NotFound("There is no such certificate.")
    return found


def last_issued(limit: int) -> list[CertificateItem]:
    """Return the last certificates, the newest first: one Query."""
    return list(PLATFORM.query(CertificateItem, CERTIFICATES, descending=True, limit=limit).items)


def last_of_slug(slug: str) -> CertificateItem | None:
    """Return the newest certificate of a tenant that had this slug, among the last LOOKED_THROUGH: one Query."""
    issued = last_issued(LOOKED_THROUGH)
    return next((one for one in issued if json.loads(one.content)["tenant"]["slug"] == slug), None)


def refuse_gap(certificates: Sequence[tuple[bytes, Mapping[str, Any]]]) -> None:
    """Raise Invalid where two certificates, each verified, are neighbours by number and not by hash, or where two that
    differ have one number.

    Each is given as its file and what it says.
    """
    ordered = sorted(certificates, key=lambda pair: int(pair[1]["number"]))
    for (content, before), (other, after) in pairwise(ordered):
        if int(after["number"]) == int(before["number"]) and other != content:
            raise Invalid(f"Two different certificates given here have the number {after['number']}.")
        follows = int(after["number"]) == int(before["number"]) + 1
        if follows and after["previous"] != digest(content):
            raise Invalid(f"Certificate {after['number']} does not name the certificate {before['number']} given here.")


def _last() -> CertificateItem | None:
    return next(iter(last_issued(1)), None)
