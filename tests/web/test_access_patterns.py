"""Each route and command declares which keys it reads and writes and what that costs, and what it does not keep shows.

That requests keep to it is held by every test that makes one: see tests/support/held_costs.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as portal_settings
from django.core.checks import run_checks
from django.core.management.base import CommandError
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path, resolve

from portal.dynamo import meter
from portal.errors import Unavailable
from portal.load import excess_costs, reporting
from portal.management import command
from portal.management.command import PortalCommand
from portal.schema import access_patterns, registry
from portal.schema.access_patterns import Cost, KeyShape, cost
from portal.web import access, checks
from portal.web.access import costs, declare_cost, on_get, on_post, public
from tenants.tenancy.request import IDENTITY
from tests.support import held_costs
from tests.support.operators import Operator, make_operator
from tests.support.world import World
from tickets.ticket.stored import TICKETS

DOCUMENT = Path(portal_settings.BASE_DIR) / "docs" / "access-patterns.md"


# --- declarations ---


def shapes() -> list[KeyShape]:
    """The product's own: the example of docs/admin.md declares one, too, where a test before has run it."""
    return [shape for shape in access_patterns.shapes() if shape.name != "announcement"]


def view(request: Any) -> None: ...


@pytest.fixture
def own_routes(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Routes of a configuration that has these alone."""
    patterns: list[Any] = []
    monkeypatch.setattr(checks, "get_resolver", lambda: type("Resolver", (), {"url_patterns": patterns}))
    return patterns


def messages() -> list[str]:
    return [str(message.msg) for message in run_checks(tags=["urls"]) if str(message.id).startswith("pooldesk.")]


def declaring(*declared: Callable[[Any], Any]) -> Any:
    made = public(lambda request: None)
    for declare in declared:
        made = declare(made)
    return made


ONE = {"query": "ticket", "trips": 1, "reads": 4}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (public(view), "does not declare what it costs."),
        (declaring(declare_cost(cost(**ONE), on="GET")), "does not declare what POST costs."),
        (
            declaring(on_get(**ONE), declare_cost(cost(**ONE), on="POST")),
            "it declares what POST costs, and refuses it.",
        ),
        (declaring(costs(**ONE), on_get(**ONE)), "it declares what any method costs beside what some cost."),
        (declaring(costs(**ONE | {"query": "tickte"})), "no table declares keys named 'tickte'."),
        (declaring(costs(**ONE | {"trips": 0})), "it names keys, and no round trips."),
        (declaring(costs(**ONE | {"query": ""})), "1 trip, 4 RCU for no keys: name those that it reads and writes."),
        (declaring(costs(**ONE | {"each": (1, 2, 0)})), "say by `per` for what `each` is."),
        (declaring(costs(**ONE)), ""),
        (declaring(costs()), ""),
        (declaring(on_get(**ONE)), ""),
        (declaring(on_post(), on_get(**ONE)), ""),
    ],
)
def test_a_declaration_that_cannot_be_true_is_an_error_of_the_system_check(
    own_routes: list[Any], made: Any, said: str
) -> None:
    own_routes.append(path("new/", made))
    assert [message.removeprefix("The route /new/").lstrip(": ") for message in messages()] == ([said] if said else [])


def test_a_view_answers_the_methods_that_it_declares_and_refuses_others() -> None:
    both = on_post()(on_get()(lambda request: HttpResponse()))
    answered = {method: both(getattr(RequestFactory(), method)("/")) for method in ("get", "head", "post", "put")}
    assert [one.status_code for one in answered.values()] == [200, 200, 200, 405]
    assert answered["put"]["Allow"] == "GET, HEAD, POST"
    assert on_get()(lambda request: HttpResponse())(RequestFactory().post("/")).status_code == 405


def test_who_writes_a_row_of_the_audit_trail_declares_its_chain_with_it() -> None:
    assert cost(write="audit row").patterns == cost(get="audit chain", write="audit chain, audit row").patterns


def test_every_route_declares_its_costs() -> None:
    assert messages() == []


def test_gunicorn_does_not_start_where_a_route_declares_nothing(tmp_path: Path) -> None:
    (tmp_path / "undeclared_urls.py").write_text(
        "from django.urls import path\n"
        "from portal.urls import urlpatterns as others\n"
        "from portal.web.access import public\n"
        "urlpatterns = [*others, path('new/', public(lambda request: None))]\n"
    )
    (tmp_path / "undeclared_settings.py").write_text("from tests.settings import *\nROOT_URLCONF = 'undeclared_urls'\n")
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--config",
        "python:portal.web.gunicorn_config",
        "--bind",
        "127.0.0.1:0",
    ]
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "undeclared_settings",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{portal_settings.BASE_DIR}",
    }
    ended = subprocess.run(
        [*command, "portal.wsgi"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode != 0
    assert "The route /new/ does not declare what it costs." in ended.stderr


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


def test_each_name_of_keys_is_used_by_a_route_a_command_or_a_thread() -> None:
    declared = [one.cost for one in checks.declared_routes()]
    declared += [*access.costs_of_levels().values(), *access.costs_of_happenings().values()]
    declared += [what for what in command.declared().values() if what]
    used = {name for what in declared for _, name in what.patterns}
    assert {shape.name for shape in shapes()} - used == OF_THREADS


# --- truth, as tests hold it ---


def asked(path: str, world: World, bound: Cost | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The faults of a request whose route declares this beside its identity."""
    browser = world.browser("alice", "acme")
    browser.get(path)
    held_costs.taken_faults()
    if bound is None:
        monkeypatch.delattr(resolve(f"/acme{path}").func, "costs")
    else:
        monkeypatch.setattr(access, "own_cost_of", lambda view, method: bound)
    browser.get(path)
    return held_costs.taken_faults()


TICKET_PAGE = cost(query="ticket", trips=1, reads=4)
BEFORE = ", beside 1 trip, 3.5 RCU before the view"


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (TICKET_PAGE, []),
        (None, ["declares nothing, and asked for query ticket"]),
        (cost(trips=1, reads=4), ["does not declare: query ticket"]),
        (cost(query="member", trips=1, reads=4), ["does not declare: query ticket"]),
        (cost(query="ticket", reads=4), [f"took 2 trips, 4 RCU, and declares 4 RCU{BEFORE}"]),
        (cost(query="ticket", trips=1), [f"took 2 trips, 4 RCU, and declares 1 trip{BEFORE}"]),
    ],
    ids=["as declared", "undeclared", "nothing", "another table", "fewer trips", "fewer units"],
)
def test_a_request_is_held_against_the_declaration_of_its_route(
    world: World, monkeypatch: pytest.MonkeyPatch, bound: Cost | None, said: list[str]
) -> None:
    world.tickets("acme", 1)
    faults = asked("/tickets/1/", world, bound, monkeypatch)
    assert [fault.partition("/tickets/<ticket_number:number>/ ")[2].rstrip(".") for fault in faults] == said


def test_a_bound_for_each_of_something_is_for_as_many_as_there_are() -> None:
    bound = cost(write="ticket", trips=2, writes=10, per="ticket", each=(1, 2, 20))
    assert bound.of(3) == cost(write="ticket", trips=5, reads=6, writes=70)
    assert bound.bound() == "2 trips, 10 WCU, and 1 trip, 2 RCU, 20 WCU for each ticket"
    request = RequestFactory().post("/bulk/")
    request.resolver_match = resolve("/acme/tickets/bulk/")
    one, _ = access.parts_of_cost(request, "POST")
    access.counted(request, 7)
    seven, _ = access.parts_of_cost(request, "POST")
    assert one
    assert seven
    assert (seven.reads, seven.writes) == (7 * one.reads, 7 * one.writes)


QUEUE = cost(query="ticket", trips=1, reads=8)


@pytest.mark.parametrize(
    ("bound", "most", "said"),
    [
        (QUEUE, (1, 2, 0), []),
        (cost(query="ticket, member", trips=1, reads=8), (1, 2, 0), ["declares what nothing asked for: query member."]),
        (cost(query="ticket", trips=900, reads=8), (1, 2, 0), ["and took 1 trip, 2 RCU at most"]),
        (cost(query="ticket", trips=1, reads=50), (1, 2, 0), ["and took 1 trip, 2 RCU at most"]),
        (cost(query="ticket", trips=1, reads=50, room="50 tickets of 4 KB"), (1, 2, 0), []),
        (cost(query="ticket", trips=1, per="ticket", each=(0, 9, 0)), (1, 30, 0), []),
        (cost(query="ticket", trips=1, per="ticket", each=(0, 90, 0)), (1, 30, 0), ["and took 1 trip, 30 RCU at most"]),
    ],
    ids=[
        "near",
        "a pattern too many",
        "trips too high",
        "units too high",
        "with a reason",
        "for each",
        "each too high",
    ],
)
def test_what_is_declared_and_not_true_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, bound: Cost, most: tuple[int, float, float], said: list[str]
) -> None:
    monkeypatch.setattr(held_costs, "seen", {})
    declared = [("GET /t/", ["GET /t/"], bound), ("/x/", ["GET /x/"], cost(query="member", trips=1, reads=8))]
    monkeypatch.setattr(held_costs, "_declarations", lambda: declared)
    asked = {("query", "ticket"), ("get", "session")}
    held_costs._hold("GET /t/", bound.of(4), IDENTITY, asked, (2, most[1] + 3.5, 0))
    held_costs.taken_faults()
    found = held_costs.untrue(held_costs.seen, of_all=False)
    assert len(found) == len(said)
    assert all(words in fault for words, fault in zip(said, found, strict=True))
    whole = held_costs.untrue(held_costs.seen, of_all=True)
    assert "/x/ declares its cost, and nothing called it." in whole


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
        excess_costs.note(ROUTE, BOUND, (trips, reads, 0))
    assert excess_costs.write("platform") == 1
    excess_costs.note(ROUTE, BOUND, (2, 20.0, 0))
    assert excess_costs.write("platform") == 1
    excess_costs.note(ROUTE, BOUND, (2, 12.0, 0))
    with meter.measure() as bill:
        excess_costs.write("platform")
    assert len(bill.calls) == 2  # another process has seen worse
    (row,) = root.get("/admin/access-patterns/").context["excesses"]
    assert (row["route"], row["bound"], row["times"]) == (ROUTE, "2 trips, 8 RCU", 5)
    assert (row["worst"], row["factor"]) == ("2 trips, 20 RCU", "2.5")
    assert "1 route costs more than it declares." in root.get("/admin/").content.decode()


def test_what_cannot_be_written_is_kept(root: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    excess_costs.note(ROUTE, BOUND, (3, 8, 0))
    with monkeypatch.context() as away:
        away.setattr("portal.dynamo.store.Store.update", lambda *args, **how: (_ for _ in ()).throw(Unavailable()))
        with pytest.raises(Unavailable):
            excess_costs.write("platform")
    excess_costs.note(ROUTE, BOUND, (9, 8, 0))
    assert (excess_costs.write("platform"), excess_costs.latest()[0].times) == (1, 2)


def test_the_middleware_notes_each_request_over_its_bound(root: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    request = RequestFactory().get("/login/")
    request.resolver_match = resolve("/login/")
    own, beside = access.parts_of_cost(request, "GET")
    assert own
    most = own + beside
    access.note_cost(request, ("GET", "/login/"), most.trips, most.reads, most.writes)
    assert excess_costs.take() == {}
    for over in ((most.trips + 1, 0, 0), (0, most.reads + 0.5, 0), (0, 0, most.writes + 1)):
        access.note_cost(request, ("GET", "/login/"), *over)
    access.add_cost(request, cost(trips=1))
    access.note_cost(request, ("GET", "/login/"), most.trips + 1, 0, 0)
    assert excess_costs.take()["GET /login/"].count == 3


def test_the_reporter_carries_it(root: Operator) -> None:
    excess_costs.note(ROUTE, BOUND, (3, 8, 0))
    reporting.LoadReporter(reporting.measurement.TenantNotes(), kind="web", role="platform").tell_excesses()
    assert [item.fingerprint for item in excess_costs.latest()] == [ROUTE]


def shown(root: Operator, **asked: str) -> dict[str, dict[str, Any]]:
    page = root.get("/admin/access-patterns/", asked)
    return {title: row for row in page.context["page"] for title, _ in row["titles"]}


def test_the_page_answers_what_a_route_asks_for_and_within_which_bounds(root: Operator) -> None:
    row = shown(root, q="tickets:queue")["GET /<slug:desk>/tickets/"]
    assert ("GET /<slug:desk>/tickets/", "tickets:queue") in row["titles"]
    index = next(one for one in row["patterns"] if one["name"] == "tickets by status")
    assert (index["place"], index["keys"]) == ("Support.Tickets/gsi-status-updated", "tenant_status, updated_at")
    assert (row["file"], row["level"], row["before"]) == ("tickets/desk/views.py", "member", "1 trip, 3.5 RCU")
    assert row["total"] == (row["cost"] + access.costs_of_levels()["member"]).bound()


def test_the_page_tells_who_uses_an_index(root: Operator) -> None:
    rows = shown(root, place="Support.Tickets/gsi-requester", q="requester")
    assert "GET /<slug:desk>/requesters/<str:requester>/" in rows
    assert "GET /<slug:desk>/tickets/dashboard/" not in shown(
        root, place="Support.Tickets/gsi-requester", q="dashboard"
    )
    assert {row["level"] for row in shown(root, level="commands").values()} == {"commands"}
    assert root.get("/admin/access-patterns/").context["page"].paginator.count > 300


# --- the document ---


def document() -> str:
    by_level: dict[str, list[list[checks.DeclaredRoute]]] = {}
    for routes in checks.declarations():
        by_level.setdefault(routes[0].level, []).append(routes)
    lines = [HEAD, "| name | table | partition key | sort key |", "|---|---|---|---|"]
    lines += [keys_row(shape) for shape in shapes()]
    lines += ["", "## Now and then", "", "Any request may take this beside its route, where it happens.", "", *TABLE]
    lines += [f"| {name} | {told(what)} | {what.bound()} |" for name, what in access.costs_of_happenings().items()]
    for level, declared in sorted(by_level.items()):
        before = access.costs_of_levels().get(level, Cost())
        lines += [
            "",
            f"## Routes: {level.replace('_', ' ')}",
            "",
            f"Before each: {told(before)}; {before.bound()}.",
            "",
        ]
        lines += ["| route | access patterns | bound | with its level |", "|---|---|---|---|"]
        lines += [routes_row(routes) for routes in declared]
    lines += ["", "## Commands", "", "Trips of commands are not counted.", "", *TABLE]
    lines += [
        f"| {name} | {told(what) if what else 'any'} | {bound(what) if what else 'whatever it proves'} |"
        for name, what in command.declared().items()
    ]
    return "\n".join(lines) + "\n"


HEAD = f"""{DOCUMENT.read_text().partition("## Keys")[0]}## Keys

An index's keys are attributes of its rows; [data-model.md](data-model.md) has examples of all items.
"""
TABLE = ["| name | access patterns | bound |", "|---|---|---|"]


def keys_row(shape: KeyShape) -> str:
    keys = [f"`{part}`".replace("|", r"\|") if part else "" for part in (shape.partition, shape.sort)]
    return f"| {shape.name} | {shape.place} | {' | '.join(keys)} |"


def routes_row(routes: list[checks.DeclaredRoute]) -> str:
    first = routes[0]
    names = [f"{one.title} ({one.name})" if one.name else one.title for one in routes]
    what = f"{'<br>'.join(names)}<br>{first.file}".replace("|", r"\|")
    return f"| {what} | {told(first.cost)} | {bound(first.cost)} | {first.total.bound()} |"


def bound(what: Cost) -> str:
    return f"{what.bound()}: room for {what.room}" if what.room else what.bound()


def told(what: Cost) -> str:
    names = [(one, [shape.name for shape in shapes]) for one, shapes in what.by_operation()]
    every = {operation for operation, name in what.patterns if name == access_patterns.ALL}
    lines = [f"{one} {', '.join(found + ['*'] * (one in every))}" for one, found in names]
    return "; ".join(lines) or "none"


def test_the_document_says_what_is_declared() -> None:
    if os.environ.get("WRITE_DOCS") == "1":
        DOCUMENT.write_text(document())
    assert DOCUMENT.read_text() == document()
