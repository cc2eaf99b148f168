"""Tell whoever waits for a mail that it did not get through. So far that is an invitation."""

from __future__ import annotations

from typing import Final

from portal.dynamo.repository import TenantRepository
from tenants.membership import invitations

INVITATION: Final = "invitation/"  # what the mail of an invitation says that it is about, before the invitation's id


def tell(tenant_id: str, about: str, *, why: str, sent_at: str) -> None:
    """Write down, as its tenant, why the mail that was written at `sent_at` did not get through: one UpdateItem."""
    if about.startswith(INVITATION):
        invite_id = about.removeprefix(INVITATION)
        invitations.note_unreached(TenantRepository(tenant_id), invite_id, why=why, sent_at=sent_at)
