"""Issue certificates one after the other, each with the hash of the one before, and read them.

Whoever keeps the last certificate can tell whether one before it was taken away or replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.dynamo.retry import retrying
from portal.errors import Invalid, NotFound, Throttled, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.certificates import keys, signed_certificate, signing_keys
from tenants.certificates.items import CertificateItem

_NEXT: Final = "number of the certificate"  # names a member of a transaction
_ATTEMPTS: Final = 20
LOOKED_THROUGH: Final = 100


def issue(facts: Mapping[str, Any], *, tenant_id: str, title: str, by: Actor, transaction: Transaction) -> bytes:
    """Sign what was done, store it behind the last certificate with the rest of the transaction, and return it.

    `facts` get their number, the hash of the certificate before, and the time. The platform's trail has a row that
    names the certificate and nobody else. Raises Conflict where no key signs, Throttled, TransactionRefused.
    """
    key = signing_keys.signing_key()
    issued: list[CertificateItem] = []

    def attempt() -> None:
        last = _last()
        number, at = int(last.name) + 1 if last else 1, clock.stamp()
        numbered = {**facts, "number": number, "previous": last.digest if last else "", "issued_at": at}
        content = signed_certificate.sign(numbered, key)
        item = CertificateItem(
            keys.CERTIFICATES,
            keys.numbered(number),
            tenant_id=tenant_id,
            title=title,
            created_at=at,
            content=content.decode("ascii"),
            digest=signed_certificate.digest(content),
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
        given_up=Throttled("Too many certificates are being issued at the same time."),
    )
    return issued[0].content.encode("ascii")


def get(number: str) -> CertificateItem:
    """Return a certificate by its number as it is stored, digits with zeros in front. Raises NotFound."""
    found = platform.get(CertificateItem, keys.CERTIFICATES, number)
    if found is None:
        raise NotFound("There is no such certificate.")
    return found


def last_issued(limit: int) -> list[CertificateItem]:
    """Return the last certificates, the newest first: one Query."""
    page = platform.query(CertificateItem.table, keys.CERTIFICATES, descending=True, limit=limit)
    return [CertificateItem.from_raw_data(raw) for raw in page.items]


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
        if follows and after["previous"] != signed_certificate.digest(content):
            raise Invalid(f"Certificate {after['number']} does not name the certificate {before['number']} given here.")


def _last() -> CertificateItem | None:
    return next(iter(last_issued(1)), None)
