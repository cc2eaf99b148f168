"""Each route and command declares which keys it reads and writes and what that costs, and what it does not keep shows.

That requests keep to it is held by every test that makes one: see tests/support/held_costs.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as portal_settings
from django.core.checks import run_checks
from django.core.management.base import CommandError
from django.test import RequestFactory
from django.urls import path, resolve

from portal.dynamo import meter
from portal.errors import Unavailable
from portal.load import excess_costs, reporting
from portal.management import command
from portal.management.command import PortalCommand
from portal.schema import access_patterns, registry
from portal.schema.access_patterns import Cost, KeyShape, cost
from portal.web import checks, costs
from portal.web.access import public
from tests.support import held_costs
from tests.support.operators import Operator, make_operator
from tests.support.world import World
from tickets.ticket.stored import TICKETS

DOCUMENT = Path(portal_settings.BASE_DIR) / "docs" / "access-patterns.md"


# --- declarations ---


def view(request: Any) -> None: ...


@pytest.fixture
def own_routes(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Routes of a configuration that has these alone."""
    patterns: list[Any] = []
    monkeypatch.setattr(checks, "get_resolver", lambda: type("Resolver", (), {"url_patterns": patterns}))
    return patterns


def messages() -> list[str]:
    return [str(message.msg) for message in run_checks(tags=["urls"]) if str(message.id).startswith("pooldesk.")]


def test_a_route_without_a_declaration_is_an_error_of_the_system_check(own_routes: list[Any]) -> None:
    own_routes.append(path("new/", public(view)))
    assert messages() == ["The route /new/ does not declare what it costs."]


def test_a_declaration_names_keys_of_a_table(own_routes: list[Any]) -> None:
    own_routes.append(path("new/", costs.costs(query="tickte")(lambda request: None)))
    assert messages() == ["The route /new/: no table declares keys named 'tickte'."]


def test_every_route_declares_its_costs() -> None:
    assert messages() == []


@pytest.mark.parametrize("declared", [{}, {"costs": cost(get="tickte", trips=1)}], ids=["none", "unknown keys"])
def test_a_command_without_a_declaration_does_not_start(declared: dict[str, Any]) -> None:
    made = type("Command", (PortalCommand,), declared)()
    with pytest.raises(CommandError, match="access patterns of this command are not declared"):
        made.handle()


def test_only_proofs_do_whatever_people_do() -> None:
    from django.core.management import get_commands

    assert {get_commands()[name] for name, what in command.declared().items() if what is None} <= {"proofs"}


def test_each_table_and_index_has_keys_with_a_name() -> None:
    places = {shape.place for shape in access_patterns.shapes()}
    tables = registry.tables()
    assert places == {t.name for t in tables} | {f"{t.name}/{i.label}" for t in tables for i in t.indexes}


# What threads of a process read and write beside requests and commands.
OF_THREADS = {"heat", "sent letter", "share of rates"}


def shapes() -> list[access_patterns.KeyShape]:
    """The product's own: the example of docs/admin.md declares one, too, where a test before has run it."""
    return [shape for shape in access_patterns.shapes() if shape.name != "announcement"]


def test_each_name_of_keys_is_used_by_a_route_a_command_or_a_thread() -> None:
    declared = [what for _, _, _, what in checks.declared_costs()] + [
        *costs.levels().values(),
        *command.declared().values(),
    ]
    used = {name for what in declared if what for _, name in what.patterns}
    assert {shape.name for shape in shapes()} - used == OF_THREADS


def test_no_view_repeats_what_its_level_declares() -> None:
    twice = [
        (route, pattern)
        for route, _, view, what in checks.declared_costs()
        for pattern in what.patterns & costs.level_of(view).patterns
    ]
    assert twice == []


# --- truth, as tests hold it ---


def asked(path: str, world: World, bound: Cost, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The faults of a request whose route declares this beside its identity."""
    browser = world.browser("alice", "acme")
    browser.get(path)
    held_costs.taken_faults()
    monkeypatch.setattr(costs, "bound_of", lambda request, method: bound + costs.level_of(request.resolver_match.func))
    browser.get(path)
    return held_costs.taken_faults()


TICKET_PAGE = cost(query="ticket", trips=1, reads=4)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (TICKET_PAGE, []),
        (cost(trips=1, reads=4), ["does not declare: query ticket"]),
        (cost(query="member", trips=1, reads=4), ["does not declare: query ticket"]),
        (cost(query="ticket", reads=4), ["took 2 trips, 4 RCU, and declares 1 trip, 7.5 RCU"]),
        (cost(query="ticket", trips=1), ["took 2 trips, 4 RCU, and declares 2 trips, 3.5 RCU"]),
    ],
    ids=["as declared", "nothing", "another table", "fewer trips", "fewer units"],
)
def test_a_request_is_held_against_the_declaration_of_its_route(
    world: World, monkeypatch: pytest.MonkeyPatch, bound: Cost, said: list[str]
) -> None:
    world.tickets("acme", 1)
    faults = asked("/tickets/1/", world, bound, monkeypatch)
    assert [fault.partition("/tickets/<ticket_number:number>/ ")[2].rstrip(".") for fault in faults] == said


def test_what_is_declared_and_never_asked_for_is_told() -> None:
    everything = {
        (f"{method or 'GET'} {route}", *pattern)
        for route, method, view, what in checks.declared_costs()
        for pattern in (what + costs.level_of(view)).patterns
    }
    everything |= {("GET /", *pattern) for what in costs.levels().values() for pattern in what.patterns}
    everything |= {(f"manage.py {n}", *p) for n, what in command.declared().items() if what for p in what.patterns}
    assert held_costs.never_seen(everything) == []
    route = "/<slug:desk>/tickets/<ticket_number:number>/"
    gone = (f"GET {route}", "query", "ticket")
    assert held_costs.never_seen(everything - {gone}) == [f"{route} declares what no test saw: query ticket."]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ({"pk": "TENANT#" + "a" * 32 + "|TICKET#7", "sk": "SUMMARY"}, "ticket"),
        ({"pk": "TENANT#" + "a" * 32 + "|COUNTER", "sk": "TICKET"}, "counter"),
        ({"pk": "TENANT#" + "a" * 32 + "|UNKNOWN#7", "sk": "X"}, f"Support.Tickets TENANT#{'a' * 32}|UNKNOWN#7, X"),
    ],
)
def test_a_key_is_told_by_its_shape(key: dict[str, str], name: str) -> None:
    typed = {part: {"S": value} for part, value in key.items()}
    request = {"TableName": TICKETS.full_name, "Key": typed}
    assert list(held_costs.patterns_of("GetItem", request)) == [("get", name)]


# --- what costs more than declared, in production ---


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    excess_costs.take()
    return Operator.signed_in()


ROUTE = "GET /<slug:desk>/tickets/"
BOUND = cost(trips=2, reads=8)


def test_a_request_that_took_too_much_shows_on_the_operators_pages(root: Operator) -> None:
    assert "No request took more" in root.get("/admin/access-patterns/").content.decode()
    for trips, reads in ((3, 8.0), (4, 10.0), (2, 9.0)):
        excess_costs.note(ROUTE, BOUND, trips, reads, 0)
    assert excess_costs.write("platform") == 1
    excess_costs.note(ROUTE, BOUND, 2, 20.0, 0)
    assert excess_costs.write("platform") == 1
    excess_costs.note(ROUTE, BOUND, 2, 12.0, 0)
    with meter.measure() as bill:
        excess_costs.write("platform")
    assert len(bill.calls) == 2  # another process has seen worse
    (row,) = root.get("/admin/access-patterns/").context["excesses"]
    assert (row["route"], row["bound"], row["times"]) == (ROUTE, "2 trips, 8 RCU", 5)
    assert (row["worst"], row["factor"]) == ("2 trips, 20 RCU", "2.5")
    assert "1 route costs more than it declares." in root.get("/admin/").content.decode()


def test_what_cannot_be_written_is_kept(root: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    excess_costs.note(ROUTE, BOUND, 3, 8, 0)
    with monkeypatch.context() as away:
        away.setattr("portal.dynamo.store.Store.update", lambda *args, **how: (_ for _ in ()).throw(Unavailable()))
        with pytest.raises(Unavailable):
            excess_costs.write("platform")
    excess_costs.note(ROUTE, BOUND, 9, 8, 0)
    assert (excess_costs.write("platform"), excess_costs.latest()[0].times) == (1, 2)


def test_the_middleware_notes_each_request_over_its_bound(root: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    request = RequestFactory().get("/login/")
    request.resolver_match = resolve("/login/")
    most = costs.of(request.resolver_match.func, "GET")
    assert most is not None
    costs.note(request, ("GET", "/login/"), most.trips, most.reads, most.writes)
    assert excess_costs.take() == {}
    for over in ((most.trips + 1, 0, 0), (0, most.reads + 0.5, 0), (0, 0, most.writes + 1)):
        costs.note(request, ("GET", "/login/"), *over)
    costs.beside(request, cost(trips=1))
    costs.note(request, ("GET", "/login/"), most.trips + 1, 0, 0)
    assert excess_costs.take()["GET /login/"].count == 3


def test_the_reporter_carries_it(root: Operator) -> None:
    excess_costs.note(ROUTE, BOUND, 3, 8, 0)
    reporting.LoadReporter(reporting.measurement.TenantNotes(), kind="web", role="platform").tell_excesses()
    assert [item.fingerprint for item in excess_costs.latest()] == [ROUTE]


def test_the_page_tells_who_uses_an_index(root: Operator) -> None:
    page = root.get("/admin/access-patterns/", {"place": "Support.Tickets/gsi-requester"})
    rows = {row["name"] for _, rows in page.context["groups"] for row in rows}
    assert "/<slug:desk>/requesters/<str:requester>/" in rows
    assert "/<slug:desk>/tickets/dashboard/" not in rows
    everything = root.get("/admin/access-patterns/", {"place": "no such table"})
    assert sum(len(rows) for _, rows in everything.context["groups"]) > 400


# --- the document ---


def document() -> str:
    declared = sorted(
        (f"{method} {route}".strip(), view, what) for route, method, view, what in checks.declared_costs()
    )
    by_level: dict[str, list[str]] = {}
    for name, view, what in declared:
        by_level.setdefault(view.access.level, []).append(row(name, what))  # type: ignore[attr-defined]
    lines = [*HEAD, "| name | table | partition key | sort key |", "|---|---|---|---|"]
    lines += [keys_row(shape) for shape in shapes()]
    lines += ["", "## Before the route, and now and then", "", *TABLE]
    lines += [row(name, what) for name, what in costs.levels().items()]
    for level, rows in sorted(by_level.items()):
        lines += ["", f"## Routes: {level.replace('_', ' ')}", "", *TABLE, *rows]
    lines += ["", "## Commands", "", *TABLE]
    lines += [row(name, what) for name, what in command.declared().items()]
    return "\n".join(lines) + "\n"


HEAD = """# Access patterns

Generated from the declarations beside the code (`test_access_patterns.py`; `WRITE_DOCS=1` writes it anew). `get` is
GetItem or BatchGetItem, `query` is Query, and `write` is PutItem, UpdateItem or DeleteItem, alone or in a transaction.
`*` stands for the keys of all that a tenant has. The bound is the most that one request takes beside
what its access level takes.

## Keys

An index's keys are attributes of its rows; [data-model.md](data-model.md) has examples of all items.
""".splitlines()
TABLE = ["| name | access patterns | bound |", "|---|---|---|"]


def keys_row(shape: KeyShape) -> str:
    keys = [f"`{part}`".replace("|", r"\|") if part else "" for part in (shape.partition, shape.sort)]
    return f"| {shape.name} | {shape.place} | {' | '.join(keys)} |"


def row(name: str, what: Cost | None) -> str:
    if what is None:
        return f"| {name} | any | whatever it proves |"
    by_operation: dict[str, list[str]] = {}
    for operation, name_of_keys, _ in what.lines():
        by_operation.setdefault(operation, []).append(name_of_keys)
    told = "; ".join(f"{operation} {', '.join(names)}" for operation, names in by_operation.items())
    return f"| {name.replace('|', chr(92) + '|')} | {told or 'none'} | {what.bound()} |"


def test_the_document_says_what_is_declared() -> None:
    if os.environ.get("WRITE_DOCS") == "1":
        DOCUMENT.write_text(document())
    assert DOCUMENT.read_text() == document()
