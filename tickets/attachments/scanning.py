"""Keep what a scanner says of files: the one place that knows whether there is a scanner.

With `FILE_SCANNER=guardduty`, Amazon GuardDuty Malware Protection scans each object of the bucket and tells its
findings. Without a scanner nobody has looked at a file, and that is what its state says: never that it is clean.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

WAITING, CLEAN, REFUSED, UNSCANNED, REMOVED = "waiting", "clean", "refused", "unscanned", "removed"
GUARDDUTY: Final = "guardduty"
LABELS: Final = {
    WAITING: "being scanned",
    CLEAN: "no malware found",
    REFUSED: "refused: malware found",
    UNSCANNED: "not scanned",
    REMOVED: "removed",
}
READABLE: Final = (CLEAN, UNSCANNED)  # states in which people can download a file


def first_state() -> str:
    """Return the state of a file that has just been stored."""
    return WAITING if settings.FILE_SCANNER else UNSCANNED
