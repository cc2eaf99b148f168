"""Which ticket numbers of a filled tenant serve which page. The measured writes must not change what the reads see.

Lists read the pending tickets; every measured write touches open and closed ones. So each run, and each of several
runs on kept data, lists the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

MINE: Final = 8
COMMENTS: Final = 20
BULK: Final = 40
# With more than 2,048 different comments no process finds them in its cache of rendered Markdown: seen for the first
# time. The tickets that are seen again and again are the first few of them.
TALKED: Final = 120
AGAIN: Final = 6
ON_TOP: Final = 400  # the newest tickets are all pending, so that a small tenant too has its second page
SMALLEST: Final = 310  # tickets: fewer, spread over four shards, fill no second page of a list


@dataclass(frozen=True)
class Layout:
    """The numbers of a tenant with `size` tickets, the oldest first: mine, discussed, to be commented, in groups
    that are closed together, and all others."""

    size: int

    @cached_property
    def mine(self) -> range:
        return range(1, 1 + MINE)

    @cached_property
    def talked(self) -> range:
        return range(self.mine.stop, self.mine.stop + min(TALKED, self.size // 10))

    @cached_property
    def commented(self) -> range:
        return range(self.talked.stop, self.talked.stop + min(48, self.size // 10))

    @cached_property
    def groups(self) -> list[range]:
        first = self.commented.stop
        return [range(first + i * BULK, first + (i + 1) * BULK) for i in range(min(8, self.size // 100))]

    @cached_property
    def others(self) -> range:
        return range(self.groups[-1].stop, self.size + 1)

    def pending(self, number: int) -> bool:
        """Tell whether a ticket is pending: `mine`, and of `others` all near the top, every second further down."""
        if number in self.others:
            return self.size - number < ON_TOP or number % 2 == 0
        return number in self.mine
