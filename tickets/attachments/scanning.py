"""Keep what a scanner says of files: the one place that knows whether there is a scanner.

With `FILE_SCANNER=guardduty`, Amazon GuardDuty Malware Protection scans each object of the bucket and tells its finding
by a tag. Without a scanner nobody has looked at a file, and that is what its state says: never that it is clean.

Source: AWS, "Monitoring S3 object scans in Malware Protection for S3" (the tag and its values).

A tag is looked at when somebody asks for a file that waits, and before a letter takes the file along: until then nobody
can have it, so nothing is gained by looking earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import Conflict, NotFound, TransactionRefused
from portal.objects.object_store import ObjectStore
from tenants.tenancy.context import TenantContext
from tickets.attachments import stored
from tickets.attachments.stored import FileItem
from tickets.ticket import stored as tickets
from tickets.ticket.stored import ActivityItem, DetailItem

WAITING, CLEAN, REFUSED, UNSCANNED, REMOVED = "waiting", "clean", "refused", "unscanned", "removed"
GUARDDUTY: Final = "guardduty"
LABELS: Final = {
    WAITING: gettext_noop("being scanned"),
    CLEAN: gettext_noop("no malware found"),
    REFUSED: gettext_noop("refused: malware found"),
    UNSCANNED: gettext_noop("not scanned"),
    REMOVED: gettext_noop("removed"),
}
READABLE: Final = (CLEAN, UNSCANNED)  # states in which people can download a file


_TAG: Final = "GuardDutyMalwareScanStatus"
# What the scanner could not look into, such as an archive with a password, nobody has looked at.
_FINDINGS: Final = {
    "NO_THREATS_FOUND": CLEAN,
    "THREATS_FOUND": REFUSED,
    "UNSUPPORTED": UNSCANNED,
    "ACCESS_DENIED": UNSCANNED,
    "FAILED": UNSCANNED,
}


def finding(tags: Mapping[str, str]) -> str | None:
    """Return the state that follows from an object's tags, None while the scanner has found nothing yet."""
    return _FINDINGS.get(tags.get(_TAG, ""))


def has_scanner() -> bool:
    """Tell whether somebody scans files, and tags them."""
    return settings.FILE_SCANNER == GUARDDUTY


def first_state() -> str:
    """Return the state of a file that has just been stored."""
    return WAITING if has_scanner() else UNSCANNED


_ATTEMPTS: Final = 4


def look_at_finding(tenant: TenantContext, file: FileItem) -> str:
    """Return the state of a file that waits: what the scanner has found meanwhile, which is noted, or that it waits.

    One request to the bucket, and where there is a finding one read and one transaction. Raises Conflict where others
    change the comment at the same moment, again and again.
    """
    try:
        found = finding(
            ObjectStore("tenant", tenant.tenant_id).tags(stored.object_key(tenant.tenant_id, stored.object_of(file)))
        )
    except NotFound:
        return file.state
    if found is None:
        return file.state
    note_finding(tenant, file, found)
    return found


def note_finding(
    tenant: TenantContext, file: FileItem, state: str, more: Callable[[Transaction], None] = lambda transaction: None
) -> None:
    """Write the state of a file of a ticket, where it is listed as well, and with `more` what belongs to it. Raises
    Conflict."""

    def attempt() -> None:
        transaction = Transaction()
        item = FileItem(file.pk, file.sk)
        transaction.update(item, [FileItem.state.set(state)], condition=FileItem.state == file.state)
        model: Any = DetailItem if file.entry == tickets.DETAIL else ActivityItem
        entry = tenant.repository.get(model, tickets.ticket, int(file.number or 0), sort=file.entry, consistent=True)
        if entry is not None and entry.files:
            known = list(entry.files)
            transaction.update(
                model(entry.pk, entry.sk),
                [model.files.set([stored.listed(one, state=state) if one.id == file.id else one for one in known])],
                condition=model.files == known,
            )
        more(transaction)
        tenant.repository.transact(transaction)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Conflict(_("This file is being changed by others at this moment. Try again.")),
    )
