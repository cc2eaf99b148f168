"""Name the partition of the directory in which tenants are that are being brought in, by their slugs."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

ARRIVING: Final = keys.part("ARRIVING")
