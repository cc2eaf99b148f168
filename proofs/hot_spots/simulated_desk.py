"""One desk under simulated load: its open tickets, where they stand, and what a change or a page takes from partitions.

A change is one transaction that writes the summary and an entry of the history: two units for each KB of each, in the
ticket's own partition. The summary's sort key changes in both indexes, so each of them deletes a row and writes one.
"""

from __future__ import annotations

import math
from typing import Final

from portal.streams.batch import Record
from proofs.hot_spots.key_designs import KeyDesign
from proofs.hot_spots.partition_buckets import PartitionBuckets, Place, Units
from tickets.desk.lists import PAGE_SIZE
from tickets.ticket.keys import SUMMARY
from tickets.ticket.tables import STATUS_RESOLVER, STATUS_UPDATED, TICKETS

_INDEXES: Final = (STATUS_UPDATED.name, STATUS_RESOLVER.name)
_ITEMS: Final = 2  # of a change
_TRANSACTIONAL: Final = 2  # times the units of a plain write
_LIST_ROW_KB: Final = 0.5
# Each shard is asked for the whole page, which is more than lists ask for.
_PAGE_UNITS: Final = 0.5 * math.ceil((PAGE_SIZE + 1) * _LIST_ROW_KB / 4)


class SimulatedDesk:
    """A tenant with so many open tickets. `readers` and `writers` are its layout as processes know it.

    `row_kb` is the size of summary, entry and index row, in KB.
    """

    def __init__(self, tenant_id: str, design: KeyDesign, *, tickets: int, row_kb: int = 1) -> None:
        self.tenant_id, self.tickets, self._kb = tenant_id, tickets, row_kb
        self._design = design
        self._pks = [design.base(tenant_id, number) for number in range(1, tickets + 1)]
        self._stream_pks = [KeyDesign.base(tenant_id, number) for number in range(1, tickets + 1)]
        self._shelves: list[str] = []
        self.readers = self.writers = design.shards
        self.write_to(design.shards)
        self.stands = list(self._places)  # the shard of each ticket

    def write_to(self, writers: int) -> None:
        """Let changes bring tickets to their places among so many shards."""
        self.writers = writers
        self._places = [self._design.suffix(number, writers) for number in range(1, self.tickets + 1)]
        self._shelf(writers - 1)

    def misplaced(self) -> list[int]:
        """Return the tickets, counted from 0, that stand elsewhere than where changes go."""
        return [ticket for ticket, shard in enumerate(self.stands) if shard != self._places[ticket]]

    def change(self, buckets: PartitionBuckets, at: float, ticket: int) -> Record | None:
        """Change a ticket, and return the record of it; None where that is throttled. `at` is in seconds."""
        return self._write(buckets, at, ticket, _ITEMS * _TRANSACTIONAL * self._kb)

    def move(self, buckets: PartitionBuckets, at: float, ticket: int) -> Record | None:
        """Write a ticket's partition anew and nothing else, as the mover does."""
        return self._write(buckets, at, ticket, self._kb)

    def read_page(self, buckets: PartitionBuckets, at: float) -> bool:
        """Read a page of open tickets. False where a partition throttles that."""
        return all(
            buckets.read(at, [((STATUS_UPDATED.name, self._shelf(shard)), _PAGE_UNITS)])
            for shard in range(self.readers)
        )

    def _write(self, buckets: PartitionBuckets, at: float, ticket: int, base_units: float) -> Record | None:
        old, new = self.stands[ticket], self._places[ticket]
        if not buckets.write(at, self._units(ticket, base_units, self._shelf(old), self._shelf(new))):
            return None
        self.stands[ticket] = new
        return self._record(at, ticket, old, new)

    def _units(self, ticket: int, base_units: float, old: str, new: str) -> Units:
        units: list[tuple[Place, float]] = [((TICKETS.name, self._pks[ticket]), base_units)]
        for index in _INDEXES:
            units += [((index, old), self._kb), ((index, new), self._kb)]
        return units

    def _record(self, at: float, ticket: int, old: int, new: int) -> Record:
        raw = {
            "dynamodb": {
                "OldImage": {"tenant_status": {"S": self._shelf(old)}},
                "NewImage": {"tenant_status": {"S": self._shelf(new)}},
                "SizeBytes": 2 * 1024 * self._kb,
            }
        }
        return Record("", "MODIFY", {"pk": self._stream_pks[ticket], "sk": SUMMARY}, _stamp(at), raw)

    def _shelf(self, shard: int) -> str:
        while len(self._shelves) <= shard:
            self._shelves.append(self._design.shelf(self.tenant_id, len(self._shelves)))
        return self._shelves[shard]


def _stamp(at: float) -> str:
    minutes, seconds = divmod(int(at), 60)
    hours, minutes = divmod(minutes, 60)
    return f"2026-01-01T{hours:02}:{minutes:02}:{seconds:02}.000000Z"
