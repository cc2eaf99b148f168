"""Name the partition of the directory in which certificates are, one after the other."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

CERTIFICATES: Final = keys.part("CERTIFICATE")
_DIGITS: Final = 8  # so that they sort by their numbers


def numbered(number: int) -> str:
    """Return the sort key of a certificate by its number, from 1 on."""
    return keys.whole_number(number, "a certificate's number", least=1).zfill(_DIGITS)
