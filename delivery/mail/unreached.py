"""Tell whoever waits for a mail that it did not get through. So far that is an invitation."""

from __future__ import annotations

from typing import Final

from tenants.membership import invite_mails

INVITATION: Final = "invitation/"  # what the mail of an invitation says that it is about, before the invitation's id


def tell(tenant_id: str, about: str, *, why: str, sent_at: str) -> None:
    """Write down why the mail did not get through, where its invitation was not sent again since: one UpdateItem."""
    if about.startswith(INVITATION):
        invite_mails.note_unreached(tenant_id, about.removeprefix(INVITATION), why=why, sent_at=sent_at)
