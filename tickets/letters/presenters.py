"""Letters as templates show them."""

from __future__ import annotations

import json
from typing import Any, Final

from django.urls import reverse
from markupsafe import Markup

from portal import clock
from portal.mailing.letters import SIZE_LIMIT, Letter
from portal.plain_text import amount, file_size
from tenants.tenancy.context import TenantContext
from tickets.letters import ledger, stored
from tickets.letters.reconciling import LettersFound
from tickets.letters.stored import LedgerRow, LetterItem, WaitingRow
from tickets.replies import mail_settings

_LABELS: Final = {
    ledger.FILED: "Filed",
    ledger.AUTOMATIC: "Automatic",
    ledger.REFUSED: "Not filed",
    ledger.WAITING: "Waiting",
    ledger.HELD: "Held back",
    ledger.DISCARDED: "Discarded",
}
_VERDICTS: Final = {"spf": "SPF", "dkim": "DKIM", "dmarc": "DMARC", "spam": "Spam check", "virus": "Virus check"}


def row(one: LedgerRow | WaitingRow | LetterItem) -> dict[str, Any]:
    """Return a letter as a list shows it."""
    digest, number = stored.digest_of(one.pk), int(one.number)
    return {
        "url": reverse("tickets:letter", args=[digest]),
        "subject": one.subject or "(no subject)",
        "sender": one.sender or "(no sender)",
        "state": one.state,
        "is_held": one.state == ledger.HELD,
        "label": _LABELS.get(one.state, one.state),
        "reason": one.reason,
        "at": clock.parse(one.received_at),
        "size": file_size(int(one.size)),
        "number": number,
        "ticket_url": reverse("tickets:ticket", args=[number]) if number else "",
    }


def letter(item: LetterItem) -> dict[str, Any]:
    """Return a letter as its own page shows it."""
    digest, verdicts = stored.digest_of(item.pk), json.loads(item.verdicts)
    return row(item) | {
        "id": digest,
        "has_original": bool(item.object),
        "is_open": item.state in ledger.OPEN,
        "cannot_be_filed": _cannot_be_filed(item),
        "can_be_blocked": bool(item.sender) and item.reason != ledger.NO_SENDER,
        "sent_by": item.sent_by,
        "sent_to": list(item.sent_to),
        "verdicts": [
            {"name": label, "status": verdicts[name], "is_good": verdicts[name] == "PASS"}
            for name, label in _VERDICTS.items()
            if name in verdicts
        ],
    }


def _cannot_be_filed(item: LetterItem) -> str:
    """Return what a person can do with a letter that nothing makes a ticket of, "" where that is possible."""
    if item.reason == ledger.VIRUS:
        return "It cannot be filed. Discard it."
    if int(item.size) > SIZE_LIMIT or item.reason == ledger.NO_SENDER:
        return "It cannot be filed. Download it, and open a ticket by hand."
    return ""


def original(read: Letter, html: str) -> dict[str, Any]:
    """Return a letter's own looks: its HTML is sanitised already. One without HTML is shown as text."""
    return {
        "subject": read.subject,
        "from": f"{read.sender.name} <{read.sender.address}>" if read.sender.name else read.sender.address,
        "to": ", ".join(one.address for one in read.to if one.address),
        "cc": ", ".join(one.address for one in read.cc if one.address),
        "html": Markup(html),  # noqa: S704  # sanitised by the reader, in a page that can do nothing
        "text": "\n\n".join(filter(None, (read.text, read.folded))),
        "blocks_images": read.has_remote_images,
        "files": [{"name": part.name or part.type, "size": file_size(part.size)} for part in read.attachments],
        "remarks": read.remarks,
    }


def own_address(tenant: TenantContext) -> str:
    """Return the desk's own mail address, "" where no mail comes in."""
    return mail_settings.own_address(tenant.slug)


def reconciled(found: LettersFound) -> str:
    """Say what a comparison of the bucket with the ledger found."""
    recounted = " The number of letters that wait was put right." if found.recounted else ""
    if not found.asked:
        return f"All {amount(found.letters, 'letter')} in the bucket are in the list.{recounted}"
    return (
        f"{amount(found.asked, 'letter')} in the bucket had been left behind, and will be filed in a moment.{recounted}"
    )


def filing_held(letters: int, *, has_more: bool) -> str:
    """Say how many of the letters are being filed that were held back."""
    if not letters:
        return "No letter is held back any more."
    begun = f"{amount(letters, 'letter')} will be filed in a moment."
    return f"{begun} More wait: press the button again once these are filed." if has_more else begun
