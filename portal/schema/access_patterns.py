"""Declare how items are reached: the keys of each table by name, and what a piece of work costs by those names.

An access pattern is an operation on keys of one shape, such as `query ticket`. Shapes are declared once, beside their
table. A route (portal/web/costs.py) and a command (portal/management/command.py) declare the patterns that they use,
with the most that one call takes: tests compare that with what it asks for (tests/support/held_costs.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from portal.plain_text import amount
from portal.schema.tables import Index, Table

# GetItem and BatchGetItem; Query; PutItem, UpdateItem and DeleteItem, alone or in a transaction.
OPERATIONS: Final = ("get", "query", "write")


@dataclass(frozen=True)
class KeyShape:
    """Name the keys of one kind of item, or of an index's rows. `<words>` in a shape stand for what varies."""

    name: str
    table: Table
    partition: str
    sort: str
    index: Index | None = None

    @property
    def place(self) -> str:
        """The table, and the index by its label: its full name has a digest."""
        return f"{self.table.name}/{self.index.label}" if self.index else self.table.name


_shapes: dict[str, KeyShape] = {}


def declare_keys(table: Table, shapes: Mapping[str, str], *, indexes: Mapping[str, str] | None = None) -> None:
    """Add the shapes of a table's keys by name, as `<partition key>, <sort key>`, and its indexes' labels by name.

    The first shape that a key fits is its own. An empty shape stands for one with nothing literal in it. Raises
    ValueError for a name that another declaration has taken.
    """
    found = []
    for name, text in shapes.items():
        partition, _, sort = (text or ", ".join(f"<{part}>" for part in table.key_names)).partition(", ")
        found.append(KeyShape(name, table, partition, sort))
    for name, label in (indexes or {}).items():
        index = next(index for index in table.indexes if index.label == label)
        found.append(KeyShape(name, table, f"<{index.hash}>", f"<{index.range}>", index))
    for shape in found:
        if _shapes.setdefault(shape.name, shape) != shape:
            raise ValueError(f"keys named {shape.name} are declared twice")


def shapes() -> tuple[KeyShape, ...]:
    """Return all declared shapes in the order of their declaration."""
    return tuple(_shapes.values())


ALL: Final = "*"  # stands for the keys of all that a tenant has: see portal/schema/holdings.py
Pattern = tuple[str, str]  # an operation of OPERATIONS, and the name of a shape or ALL


@dataclass(frozen=True)
class Cost:
    """Declare access patterns, and the most that one call takes: round trips, read units and write units.

    `per` names the thing that the bound is for where one call works on any number of them, such as "ticket"; such a
    bound counts no trips, and has no units where those depend on what the thing holds.
    """

    patterns: frozenset[Pattern] = frozenset()
    trips: int = 0
    reads: float = 0
    writes: float = 0
    per: str = ""

    def __add__(self, other: Cost) -> Cost:
        sums = (self.trips + other.trips, self.reads + other.reads, self.writes + other.writes)
        return Cost(self.patterns | other.patterns, *sums, self.per or other.per)

    def has_room_for(self, trips: int, reads: float, writes: float) -> bool:
        """Tell whether a bill is within the bound: any is, where the bound is for each of any number of things."""
        return bool(self.per) or (trips <= self.trips and reads <= self.reads and writes <= self.writes)

    def faults(self) -> list[str]:
        """Return what is wrong with the declaration: names that no table declares."""
        unknown = sorted({name for _, name in self.patterns} - {ALL, *_shapes})
        return [f"no table declares keys named {name!r}" for name in unknown]

    def allows(self, pattern: Pattern) -> bool:
        """Tell whether an access pattern is declared."""
        return pattern in self.patterns or (pattern[0], ALL) in self.patterns

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the patterns as operation, name and place of the keys, in the order of the operations and of names."""
        by_operation = sorted(self.patterns, key=lambda pattern: (OPERATIONS.index(pattern[0]), pattern[1]))
        return [(operation, name, _shapes[name].place if name != ALL else ALL) for operation, name in by_operation]

    def bound(self) -> str:
        """Return the bound in words: `3 trips, 12.5 RCU, 4 WCU`."""
        units = [f"{count:g} {unit}" for count, unit in ((self.reads, "RCU"), (self.writes, "WCU")) if count]
        if self.per:
            return f"{', '.join(units) or 'any units'} for each {self.per}"
        return ", ".join([amount(self.trips, "trip"), *units])


def cost(
    *,
    get: str = "",
    query: str = "",
    write: str = "",
    trips: int = 0,
    reads: float = 0,
    writes: float = 0,
    per: str = "",
) -> Cost:
    """Make a declaration of names of shapes with commas between them: `cost(query="ticket, member", trips=1, reads=8)`.

    Reads and writes are capacity units.
    """
    named = zip(OPERATIONS, (get, query, write), strict=True)
    patterns = {(operation, name.strip()) for operation, names in named for name in names.split(",") if name}
    return Cost(frozenset(patterns), trips, reads, writes, per)
