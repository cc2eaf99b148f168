"""Hold what a dashboard lists of people and tags, and says of those whom it does not list, against the truth."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.support.aggregate_table import AggregateTable
from tickets.counting import contributions, stored, stored_counts
from tickets.counting.contributions import Contribution
from tickets.counting.stored import AGGREGATES
from tickets.counting.stored_counts import Stored

UNRESOLVED = ("open", "pending")

Tickets = dict[str, Counter[str]]  # by status, of each person or tag


def read(table: AggregateTable) -> Stored:
    """What a dashboard reads."""
    found = [raw for (_, sk), raw in sorted(table.items.items()) if sk >= stored.LEADERS]
    return stored_counts.shown([AGGREGATES.from_raw_data(raw) for raw in found])


def tickets(counts: Contribution, kind: str) -> Tickets:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, n in contributions.merged(counts).get((kind, ""), Counter()).items():
        if n:
            one, status = name.rpartition(".")[::2] if kind == "PEOPLE" else name.partition(".")[::-2]
            found[one][status] = n
    return dict(found)


def rank(some: Counter[str]) -> tuple[int, int]:
    return sum(some[status] for status in UNRESOLVED), sum(some.values())


def check(table: AggregateTable, truth: Contribution) -> None:
    """Whoever is listed has the true numbers. The others are as many, and have as many tickets, as is said, and none of
    them has a higher rank than is said."""
    seen = read(table)
    for kind, said in (("PEOPLE", seen.recent.outside("P")), ("TAGS", seen.recent.outside("G"))):
        listed, true = tickets(seen.counts, kind), tickets(truth, kind)
        assert listed == {one: true[one] for one in listed}, kind
        others = [some for one, some in true.items() if one not in listed]
        assert said.least <= len(others) <= said.most, (kind, said, others)
        by_status: Counter[str] = Counter()
        for some in others:
            by_status.update({status[0]: n for status, n in some.items()})
        assert by_status == Counter(said.tickets), (kind, said)
        for some in others:
            unresolved, total = rank(some)
            assert unresolved * 10**9 + total <= said.bound
            assert unresolved <= said.unresolved_at_most


def check_leaders(table: AggregateTable, truth: Contribution) -> None:
    """Nobody outside has more unresolved tickets, or among equals more tickets, than anybody listed."""
    seen = read(table)
    for kind in ("PEOPLE", "TAGS"):
        listed, true = tickets(seen.counts, kind), tickets(truth, kind)
        lowest = min((rank(some) for some in listed.values()), default=(0, 0))
        assert max((rank(some) for one, some in true.items() if one not in listed), default=(0, 0)) <= lowest, kind
