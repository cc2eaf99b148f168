"""Remember which rows an import has taken before, which in this run, and which numbers it may give."""

from __future__ import annotations

import bisect
from array import array
from types import TracebackType
from typing import Final, Self

from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import TransactionRefused, Unavailable
from tickets.importing import keys as import_keys
from tickets.importing.items import ImportItem, ImportSourceItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import NUMBER_GAP
from tickets.ticket.stored import TICKETS, CounterItem
from tickets.verification.recount import last_number

BLOCK: Final = 25  # ticket numbers reserved by one write; a killed run loses at most as many
WINDOW: Final = 500  # markers read by one Query, some 80 KB
_END = "~"  # sorts after every row id


def list_source(repository: TenantRepository, source: str) -> None:
    """Note that something is imported from this archive, before anything is: by that its rows are found again."""
    item = ImportSourceItem(repository.key(import_keys.import_sources), import_keys.listed_source(source))
    repository.update(item, [ImportSourceItem.source.set(source)])


class Markers:
    """The rows of one archive that are tickets already, read in windows of their sort order.

    An archive in order, up or down, reads each marker once: rows / WINDOW Queries. Any other order costs up to
    one Query per row and is right all the same. Rows taken in this run are not in here: see RowsMet.
    """

    def __init__(self, repository: TenantRepository, source: str) -> None:
        self._repository, self._source = repository, source
        self._known: dict[str, ImportItem] = {}
        self._low = self._high = ""

    def find(self, row_id: str) -> ImportItem | None:
        if not self._low <= row_id <= self._high:
            self._load(row_id, downwards=row_id < self._low)
        return self._known.get(row_id)

    def _load(self, row_id: str, *, downwards: bool) -> None:
        page = self._repository.query(
            TICKETS,
            import_keys.import_source,
            self._source,
            between=("!", row_id) if downwards else (row_id, _END),
            descending=downwards,
            limit=WINDOW,
            consistent=True,
        )
        markers = [ImportItem.from_raw_data(raw) for raw in page.items]
        self._known = {m.sk: m for m in markers}
        edge = markers[-1].sk if page.last_key else ("" if downwards else _END)
        self._low, self._high = (edge, row_id) if downwards else (row_id, edge)


class RowsMet:
    """The rows that this run has met, in 8 bytes each, to refuse one that comes twice."""

    def __init__(self) -> None:
        self._numbers: dict[str, array[int]] = {}

    def again(self, kind: str, number: int) -> bool:
        """Note the row, and tell whether it was met before."""
        numbers = self._numbers.setdefault(kind, array("q"))
        place = bisect.bisect_left(numbers, number)
        if place < len(numbers) and numbers[place] == number:
            return True
        numbers.insert(place, number)
        return False


class NumberBlocks:
    """Ticket numbers, reserved in blocks. At the end, what is left of the last block is given back if nobody
    took a number since; otherwise, and after a kill, those numbers stay unused."""

    def __init__(self, repository: TenantRepository) -> None:
        self._repository = repository
        # The last number handed out and the last one reserved: one value, so that Ctrl-C finds them in step.
        self._block = (0, 0)
        self.epoch = 0  # of aggregates, as it was when the last block was reserved

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, Unavailable):
            self._give_back()

    def next(self, wanted: int = 0) -> int:
        """Return the next number, or the wanted one where nobody has been given it yet and it is near enough."""
        last, end = self._block
        if last == end or end < wanted <= end + NUMBER_GAP:
            last, end = self._reserve(wanted)
        number = wanted if last < wanted <= end else last + 1
        self._block = (number, end)
        return number

    def _reserve(self, wanted: int) -> tuple[int, int]:
        """Return a new block, which holds the wanted number if it can: the number before it, and its last one."""
        given = last_number(self._repository) if wanted else 0
        by = wanted - given - 1 + BLOCK if given < wanted <= given + NUMBER_GAP else BLOCK
        counter = self._repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=by)
        self.epoch = int(counter.epoch)
        return int(counter.last) - by, int(counter.last)

    def _give_back(self) -> None:
        last, end = self._block
        if last == end:
            return
        counter = CounterItem(self._repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET)
        transaction = Transaction()
        transaction.update(counter, [CounterItem.last.set(last)], condition=CounterItem.last == end)
        try:
            self._repository.transact(transaction)
        except TransactionRefused:
            return
