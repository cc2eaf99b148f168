"""Letters as templates show them."""

from __future__ import annotations

import json
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from markupsafe import Markup

from portal import clock
from portal.mailing import charsets, letter_body, letter_process
from portal.mailing.letters import SIZE_LIMIT, Letter
from portal.plain_text import file_size
from portal.web.jinja import grouped
from portal.web.locales import declare_stored, stored_text
from tenants.audit_trail import browsing
from tenants.tenancy.context import TenantContext
from tickets.letters import ledger, stored
from tickets.letters.reconciling import LettersFound
from tickets.letters.stored import LedgerRow, LetterItem, WaitingRow
from tickets.replies import mail_settings

_LABELS: Final = {
    ledger.FILED: gettext_noop("Filed"),
    ledger.AUTOMATIC: gettext_noop("Automatic"),
    ledger.REFUSED: gettext_noop("Not filed"),
    ledger.WAITING: gettext_noop("Waiting"),
    ledger.HELD: gettext_noop("Held back"),
    ledger.DISCARDED: gettext_noop("Discarded"),
}
browsing.declare_values(browsing.codes(_LABELS), "state", about="letter")
for message in (
    *(charsets.UNNAMED, charsets.MISNAMED, letter_body.MANY_FILES),
    *(letter_process.SLOW, letter_process.UNREADABLE),
):
    declare_stored(message)
_VERDICTS: Final = {
    "spf": "SPF",
    "dkim": "DKIM",
    "dmarc": "DMARC",
    "spam": gettext_noop("Spam check"),
    "virus": gettext_noop("Virus check"),
}


def row(one: LedgerRow | WaitingRow | LetterItem) -> dict[str, Any]:
    digest, number = stored.digest_of(one.pk), int(one.number)
    return {
        "url": reverse("tickets:letter", args=[digest]),
        "subject": one.subject or _("(no subject)"),
        "sender": one.sender or _("(no sender)"),
        "state": one.state,
        "is_held": one.state == ledger.HELD,
        "label": _(_LABELS.get(one.state, one.state)),
        "reason": stored_text(one.reason),
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
            {"name": _(label), "status": verdicts[name], "is_good": verdicts[name] == "PASS"}
            for name, label in _VERDICTS.items()
            if name in verdicts
        ],
    }


def _cannot_be_filed(item: LetterItem) -> str:
    """Return what a person can do with a letter that nothing makes a ticket of, "" where that is possible."""
    if item.reason == ledger.VIRUS:
        return _("It cannot be filed. Discard it.")
    if int(item.size) > SIZE_LIMIT or item.reason == ledger.NO_SENDER:
        return _("It cannot be filed. Download it, and open a ticket by hand.")
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
        "remarks": [stored_text(remark) for remark in read.remarks],
    }


def own_address(tenant: TenantContext) -> str:
    """Return the desk's own mail address, "" where no mail comes in."""
    return mail_settings.own_address(tenant.slug)


def reconciled(found: LettersFound) -> str:
    """Say what a comparison of the bucket with the ledger found."""
    if found.asked:
        said = ngettext(
            "%(num)s letter in the bucket had been left behind, and will be filed in a moment.",
            "%(num)s letters in the bucket had been left behind, and will be filed in a moment.",
            found.asked,
        ) % {"num": grouped(found.asked)}
    else:
        said = ngettext(
            "All %(num)s letter in the bucket are in the list.",
            "All %(num)s letters in the bucket are in the list.",
            found.letters,
        ) % {"num": grouped(found.letters)}
    return f"{said} {_('The number of letters that wait was put right.')}" if found.recounted else said


def filing_held(letters: int, *, has_more: bool) -> str:
    """Say how many of the letters are being filed that were held back."""
    if not letters:
        return _("No letter is held back any more.")
    begun = ngettext("%(num)s letter will be filed in a moment.", "%(num)s letters will be filed in a moment.", letters)
    more = _("More wait: press the button again once these are filed.")
    return f"{begun} {more}" % {"num": grouped(letters)} if has_more else begun % {"num": grouped(letters)}
