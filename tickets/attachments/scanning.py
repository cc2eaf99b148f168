"""Keep what a scanner says of files: the one place that knows whether there is a scanner.

With `FILE_SCANNER=guardduty`, Amazon GuardDuty Malware Protection scans each object of the bucket and tells its finding
by a tag. Without a scanner nobody has looked at a file, and that is what its state says: never that it is clean.

Source: AWS, "Monitoring S3 object scans in Malware Protection for S3" (the tag and its values).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.utils.translation import gettext_noop

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
