"""Lead from one page of a list to the next and to the previous one, by signed cursors.

A list is read in one direction or the other, and each of its pages has a row at which reading began and one at which
it ended. The way on leads from the end, where there is more; the way back leads from the beginning, where a page came
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from portal.dynamo import cursor
from portal.dynamo.cursor import BadCursor


@dataclass(frozen=True)
class Place:
    """Where a page begins: behind a position of the list or, read backwards, before it."""

    position: list[Any]
    backwards: bool


@dataclass(frozen=True)
class Links:
    """The cursors of the neighbouring pages, None where there is none."""

    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True)
class Pager:
    """The cursors of one list, bound to its tenant ("" for lists of operators) and to `query`; see `cursor`."""

    tenant_id: str
    query: tuple[object, ...]

    def place(self, text: str, *, size: int) -> Place:
        """Read a cursor whose position has `size` values. Raises Invalid for what is not a cursor of this list."""
        backwards, *position = cursor.load(text, tenant_id=self.tenant_id, query=self.query) or [None]
        if backwards not in (0, 1) or len(position) != size:
            raise BadCursor("This page link is damaged.")
        return Place(position, bool(backwards))

    def links(self, place: Place | None, *, begin: Sequence[Any], end: Sequence[Any], more: bool) -> Links:
        """Link a page that was read from `place`, None for the first, to its neighbours.

        `begin` and `end` are the positions at which reading began and ended; `more` says that the list goes on there.
        """
        backwards = place is not None and place.backwards
        onwards = self._cursor(end, backwards) if more else None
        back = self._cursor(begin, not backwards) if place is not None else None
        return Links(back, onwards) if backwards else Links(onwards, back)

    def _cursor(self, position: Sequence[Any], backwards: bool) -> str:
        return cursor.dump([int(backwards), *position], tenant_id=self.tenant_id, query=self.query)
