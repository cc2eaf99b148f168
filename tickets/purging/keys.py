"""Name the partition of the directory in which purges are that have begun or are to begin."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

PURGES: Final = keys.part("PURGE")
