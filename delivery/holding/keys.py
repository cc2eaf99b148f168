"""Name the partition of the directory in which holds are, all of them in one."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

HOLDS: Final = keys.part("DELIVERYHOLD")
EVERYTHING: Final = "0"  # sorts before every stamp, so all events are later
