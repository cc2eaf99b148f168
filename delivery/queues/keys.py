"""Form the keys of what is stored about queues: one partition for each kind."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

GIVEN: Final = "GIVEN"  # how many sets have been given out, by the number of queues
SETS: Final = "SETS"  # who has which, by tenant
DEPTHS: Final = "DEPTHS"  # how full the queues were when a worker looked last
LATEST: Final = "LATEST"


def count_of(queues: int) -> str:
    """Return the sort key of the count of sets given out of so many queues: in numerical order."""
    return keys.part(f"{queues:03}")
