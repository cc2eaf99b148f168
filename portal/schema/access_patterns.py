"""Declare how items are reached: the keys of each table by name, and what a piece of work costs by those names.

An access pattern is an operation on keys of one shape, such as `query ticket`. Shapes are declared once, beside their
table. A route (portal/web/access.py) and a command (portal/management/command.py) declare the patterns that they use,
with the most that one call takes. Tests fail where a call asks for more; with `--costs` also where none asks for so
much: tests/support/held_costs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from portal.plain_text import amount
from portal.schema.registry import Index, Table

# GetItem and BatchGetItem; Query; PutItem, UpdateItem and DeleteItem, alone or in a transaction.
OPERATIONS: Final = ("get", "query", "write")
ALL: Final = "*"  # stands for the keys of all that a tenant has: see portal/schema/holdings.py
Pattern = tuple[str, str]  # an operation of OPERATIONS, and the name of a shape or ALL
Bill = tuple[int, float, float]  # round trips, read units, write units


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

    @property
    def keys(self) -> str:
        """The attributes of the key with their shapes; an index's keys are attributes of its rows."""
        names = (self.index.hash, self.index.range) if self.index else self.table.key_names
        shapes = zip(names, (self.partition, self.sort), strict=False)
        return ", ".join(name if self.index else f"{name} = {shape}" for name, shape in shapes if name)


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


_along: dict[Pattern, frozenset[Pattern]] = {}


def declare_along(name: str, *others: Pattern) -> None:
    """Declare what else whoever writes keys of this name does, so that no declaration of a cost has to say it."""
    _along["write", name] = frozenset(others)


def shapes() -> tuple[KeyShape, ...]:
    """Return all declared shapes in the order of their declaration."""
    return tuple(_shapes.values())


def in_words(bill: Bill) -> str:
    """Return a bill as `3 trips, 12.5 RCU, 4 WCU`, without what is 0."""
    trips, reads, writes = bill
    units = [f"{count:g} {unit}" for count, unit in ((reads, "RCU"), (writes, "WCU")) if count]
    return ", ".join([*([amount(trips, "trip")] if trips else []), *units])


@dataclass(frozen=True)
class Cost:
    """Declare access patterns, and the most that one call takes: round trips, read units and write units.

    Where one call works on any number of things, `per` names one, such as "ticket", and `each` is the most that each
    of them takes beside that. `room` says why the bound is far above what tests see. Trips of commands are not counted.
    """

    patterns: frozenset[Pattern] = frozenset()
    trips: int = 0
    reads: float = 0
    writes: float = 0
    per: str = ""
    each: Bill | None = None
    room: str = ""

    @property
    def bill(self) -> Bill:
        return self.trips, self.reads, self.writes

    def __add__(self, other: Cost) -> Cost:
        """Return what both take together; only the left one may be for each of something."""
        sums = (self.trips + other.trips, self.reads + other.reads, self.writes + other.writes)
        return Cost(self.patterns | other.patterns, *sums, self.per, self.each, self.room)

    def of(self, count: int) -> Cost:
        """Return the bound where there are so many of what `per` names."""
        trips, reads, writes = self.each or (0, 0, 0)
        return replace(
            self,
            trips=self.trips + count * trips,
            reads=self.reads + count * reads,
            writes=self.writes + count * writes,
            per="",
            each=None,
        )

    def has_room_for(self, bill: Bill) -> bool:
        """Tell whether a bill is within the bound."""
        return all(took <= most for took, most in zip(bill, self.bill, strict=True))

    def faults(self) -> list[str]:
        """Return what is wrong with the declaration by itself."""
        unknown = sorted({name for _, name in self.patterns} - {ALL, *_shapes})
        found = [f"no table declares keys named {name!r}" for name in unknown]
        takes = any(self.bill) or any(self.each or ())
        if takes and not self.patterns:
            found.append(f"{in_words(self.bill)} for no keys: name those that it reads and writes")
        if self.each and not self.per:
            found.append("say by `per` for what `each` is")
        return found

    def allows(self, pattern: Pattern) -> bool:
        """Tell whether an access pattern is declared."""
        return pattern in self.patterns or (pattern[0], ALL) in self.patterns

    def by_operation(self) -> list[tuple[str, list[KeyShape]]]:
        """Return the shapes of the patterns by operation, in the order of names; none for ALL."""
        return [
            (one, [_shapes[name] for operation, name in sorted(self.patterns) if operation == one and name != ALL])
            for one in OPERATIONS
            if any(operation == one for operation, _ in self.patterns)
        ]

    def bound(self) -> str:
        """Return the bound in words: `3 trips, 12.5 RCU, and 4 WCU for each ticket`."""
        fixed = in_words(self.bill)
        if not self.per:
            return fixed or "nothing"
        each = f"{in_words(self.each) if self.each else 'any units'} for each {self.per}"
        return f"{fixed}, and {each}" if fixed else each


def cost(
    *,
    get: str = "",
    query: str = "",
    write: str = "",
    trips: int = 0,
    reads: float = 0,
    writes: float = 0,
    per: str = "",
    each: Bill | None = None,
    room: str = "",
) -> Cost:
    """Make a declaration of names of shapes with commas between them: `cost(query="ticket, member", trips=1, reads=8)`.

    Reads and writes are capacity units; `each` has trips, reads and writes. Those of `declare_along` are added.
    """
    named = zip(OPERATIONS, (get, query, write), strict=True)
    patterns = {(operation, name.strip()) for operation, names in named for name in names.split(",") if name}
    return Cost(
        frozenset(patterns).union(*(_along.get(one, ()) for one in patterns)), trips, reads, writes, per, each, room
    )


def words(patterns: Iterable[Pattern]) -> str:
    """Return patterns as `get ticket, query member`."""
    return ", ".join(" ".join(pattern) for pattern in sorted(patterns))
