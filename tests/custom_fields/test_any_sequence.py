"""Whatever admins change of the definitions and agents of tickets, in any order: each value stays readable under its
name, and each filter finds the tickets that have its value, and no others."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from portal.errors import Invalid
from tests.support import defined, embedded
from tests.support.world import World
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import SHOWN
from tickets.desk import changing, creating, lists
from tickets.desk.changing import Wishes
from tickets.desk.filters import TicketFilter
from tickets.ticket.custom_values import FieldType, type_of
from tickets.ticket.fields import Status

CHOICES = ("Desk", "Lamp", "Chair")
VALUES = {
    FieldType.TEXT: ("alpha", "Beta", "10..20"),
    FieldType.NUMBER: ("-3", "0", "12.5", "100"),
    FieldType.CHOICE: CHOICES,
    FieldType.DATE: ("2025-12-31", "2026-01-01", "2026-11-20"),
    FieldType.CHECKBOX: ("yes",),
}
RANGES = {FieldType.NUMBER: ("0..50", "..0", "12.5.."), FieldType.DATE: ("2026-01-01..", "..2025-12-31")}
SMALL = st.integers(0, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(list(FieldType))),
        st.tuples(st.just("archive"), SMALL),
        st.tuples(st.just("restore"), SMALL),
        st.tuples(st.just("rename"), SMALL),
        st.tuples(st.just("choices"), SMALL, st.sets(st.sampled_from(CHOICES), min_size=1)),
        st.tuples(st.just("create"), SMALL, SMALL),
        st.tuples(st.just("set"), SMALL, SMALL, SMALL),
        st.tuples(st.just("empty"), SMALL, SMALL),
        st.tuples(st.just("title"), SMALL),
    ),
    min_size=4,
    max_size=14,
)


class Model:
    """The desk beside what it should hold: values by ticket and field."""

    def __init__(self, world: World) -> None:
        self.world, self.turn = world, 0
        self.tickets: dict[int, dict[str, str]] = {}

    @property
    def fields(self) -> tuple[Any, ...]:
        return defined.defined(self.world).fields

    def field(self, place: int) -> Any:
        return self.fields[place % len(self.fields)] if self.fields else None

    def ticket(self, place: int) -> int:
        return [*self.tickets][place % len(self.tickets)] if self.tickets else 0

    def step(self, name: str, *args: Any) -> None:
        self.turn += 1
        getattr(self, f"do_{name}")(*args)

    def do_add(self, kind: FieldType) -> None:
        defined.add_field(self.world, f"Own {self.turn}", kind, choices=CHOICES)

    def _change(self, place: int, **wishes: Any) -> None:
        if one := self.field(place):
            now = {"choices": one.choices or CHOICES, "is_archived": one.is_archived, "forms": {"": SHOWN}}
            wanted = now | wishes
            defined.change_field(self.world, one.id, wanted.pop("name", one.name), **wanted)

    def do_archive(self, place: int) -> None:
        self._change(place, is_archived=True)

    def do_restore(self, place: int) -> None:
        self._change(place, is_archived=False)

    def do_rename(self, place: int) -> None:
        self._change(place, name=f"Renamed {self.turn}")

    def do_choices(self, place: int, choices: set[str]) -> None:
        self._change(place, choices=sorted(choices))

    def _write(self, number: int, one: Any, value: str) -> None:
        bob = self.world.context("bob", "acme")
        is_new = self.tickets[number].get(one.id, "") != value
        try:
            changing.change(bob, number, Wishes(custom={one.id: value}))
        except Invalid:
            assert is_new
            assert not one.fits(value)
        else:
            assert one.fits(value) or not is_new
            self.tickets[number] = {**self.tickets[number], one.id: value}
            if not value:
                del self.tickets[number][one.id]

    def do_create(self, place: int, value: int) -> None:
        number = creating.create(self.world.context("bob", "acme"), title="x")
        self.tickets[number] = {}
        if one := self.field(place):
            self._write(number, one, VALUES[one.type][value % len(VALUES[one.type])])

    def do_set(self, ticket: int, place: int, value: int) -> None:
        if (number := self.ticket(ticket)) and (one := self.field(place)):
            self._write(number, one, VALUES[one.type][value % len(VALUES[one.type])])

    def do_empty(self, ticket: int, place: int) -> None:
        if (number := self.ticket(ticket)) and (one := self.field(place)):
            self._write(number, one, "")

    def do_title(self, ticket: int) -> None:
        if number := self.ticket(ticket):
            changing.change(self.world.context("bob", "acme"), number, Wishes(title=f"Title {self.turn}"))

    def check(self) -> None:
        bob = self.world.context("bob", "acme")
        known = definitions.of(bob)
        for number, values in self.tickets.items():
            summary = changing.read(bob, number)
            assert summary.custom == values
            shown = {row["label"]: row["value"] for row in known.shown_values(summary.kind, summary.custom)["rows"]}
            assert {known.by_id[one].name: known.by_id[one].shown(text) for one, text in values.items()}.items() <= (
                shown.items()
            )
        for one in known.fields:
            for asked in (*VALUES[one.type], *RANGES.get(one.type, ())):
                only = TicketFilter.parse({one.id: asked})
                rows = lists.page(bob, status=list(Status), only=only, size=100).rows
                found = {int(row.number) for row in rows}
                expected = {n for n, values in self.tickets.items() if has(one.id, values.get(one.id, ""), asked)}
                assert found == expected, (one.id, asked)


def has(field_id: str, value: str, asked: str) -> bool:
    """Tell whether a value is asked for, written without a look at the filters."""
    kind = type_of(field_id)
    if not value:
        return False
    if kind not in RANGES or ".." not in asked:
        return value.casefold() == asked.casefold()
    low, high = asked.split("..")
    key: Any = Decimal if kind is FieldType.NUMBER else str
    return (not low or key(low) <= key(value)) and (not high or key(value) <= key(high))


@given(steps=STEPS)
@profile(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_value_stays_readable_and_each_filter_exact(clean_process: None, steps: list[tuple[Any, ...]]) -> None:
    model = Model(embedded.world(shards=1))
    for step in steps:
        model.step(*step)
    model.check()
