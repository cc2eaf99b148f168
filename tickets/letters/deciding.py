"""Decide about letters that wait, as a person or an API key of the desk wants it: file one, file many, or discard one.

Each decision has a row in the audit trail, which is written first: no letter is filed or discarded by hand without one.
So the row says what was asked for; what came of it is in the letter's own row.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

from portal.errors import Conflict
from portal.web.locales import stored_text
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.letters import arrival, filing, ledger, stored
from tickets.letters.stored import LetterItem

HELD_AT_ONCE: Final = 500  # letters that one press of the button files


def file(tenant: TenantContext, digest: str, *, by: Actor) -> LetterItem:
    """File a letter that waits, whatever kept it from that before, and return its row.

    Raises NotFound, and Conflict where it waits no more, was deleted, or still cannot be filed.
    """
    item = _waiting(tenant, digest)
    _record(tenant, AuditAction.LETTER_FILED, item, by)
    filed = filing.file(tenant.tenant_id, item.object, approved=True) if item.object else None
    if filed is None:
        raise Conflict(_("The letter itself is not there any more. Discard its line."))
    if filed.state != ledger.FILED:
        raise Conflict(_("It still cannot be filed. %(reason)s") % {"reason": stored_text(filed.reason)})
    return filed


def discard(tenant: TenantContext, digest: str, *, by: Actor) -> LetterItem:
    """Let a letter that waits become no ticket, and return its row. Raises NotFound, and Conflict where it waits no
    more."""
    item = _waiting(tenant, digest)
    _record(tenant, AuditAction.LETTER_DISCARDED, item, by)
    ledger.discard(tenant.repository, item)
    return item


def file_held(tenant: TenantContext, *, by: Actor) -> tuple[int, bool]:
    """Let letters be filed that were held back, HELD_AT_ONCE at a time. Return how many, and whether there are more."""
    held = ledger.held(tenant.repository, most=HELD_AT_ONCE + 1)
    begun = held[:HELD_AT_ONCE]
    if begun:
        told = {"letters": len(begun)}
        recording.record(
            AuditEntry(
                tenant.tenant_id, AuditAction.LETTERS_FILED, by, "letters", "held", "letters held back", {}, told
            )
        )
        arrival.ask_for_held(tenant_directory.get(tenant.tenant_id), begun)
    return len(begun), len(held) > len(begun)


def _waiting(tenant: TenantContext, digest: str) -> LetterItem:
    item = ledger.get(tenant.repository, digest)
    if item.state not in ledger.OPEN:
        raise Conflict(_(ledger.CLOSED))
    return item


def _record(tenant: TenantContext, action: AuditAction, item: LetterItem, by: Actor) -> None:
    digest = stored.digest_of(item.pk)
    name = f"letter-{digest[:12]}"  # as it is downloaded: the trail outlives what its sender may have erased
    recording.record(AuditEntry(tenant.tenant_id, action, by, "letter", digest, name, {"state": item.state}))
