"""Each torture once, small: processes are killed and nothing is wrong; and each wrong figure is called wrong.

A small `torture_stream` runs in test_torture_on_engines.py, and a small `torture_demo` in test_torture_demo.py.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from portal.errors import Forbidden
from proofs import cleanup
from proofs.forked import Journal, lines
from proofs.harness import Torture
from proofs.scenarios import delivery, letter_traffic, move, outage, replay, reshard, search, stream
from tests.support import commands
from tests.support.world import World
from tickets.ticket import stored

SCENARIOS: dict[str, type[Torture]] = {
    "delivery": delivery.Delivery,
    "demo": outage.Outage,
    "idempotency": replay.Replay,
    "letters": letter_traffic.Letters,
    "move": move.DeskMove,
    "reshard": reshard.Reshard,
    "search": search.SearchTorture,
    "stream": stream.Stream,
}
OF_DELIVERY = {"events": 40, "kills": 3, "writers": 1, "dispatchers": 1, "consumers": 1}
SMALL: dict[str, dict[str, float]] = {
    "delivery": OF_DELIVERY | {"tenants": 1, "visible": 2, "seed": 3},
    "idempotency": {"posts": 30, "kills": 3, "seed": 5},
    "letters": {"letters": 12, "kills": 4, "tenants": 1, "workers": 1, "visible": 2, "seed": 3},
    "move": {"tickets": 10, "writers": 1, "readers": 1, "kills": 1, "writes": 8, "reads": 8, "rate": 40, "seed": 5},
    "reshard": {"tickets": 20, "writers": 1, "readers": 1, "kills": 1, "rate": 40, "pause": 0.2, "seed": 5},
    "search": {"tickets": 15, "kills": 1, "seed": 5},
}


def killed(name: str, found: dict[str, Any]) -> None:
    """Those who were to die have died, and much went on meanwhile."""
    if name == "delivery":
        assert found["events"] >= 40
        assert found["kills"] == {"writer": 1, "dispatcher": 1, "consumer": 1}
    elif name == "idempotency":
        assert found["tickets"] == 30
        assert found["heard"] > found["replayed"] > 0
        # The kill at any place may come when the last request is through.
        assert found["kills"] in ({"before": 1, "behind": 1, "anywhere": n} for n in (0, 1))
        assert found["unheard"] > 0
    elif name == "letters":
        assert (found["letters"], found["kills"]) == (12, dict.fromkeys(letter_traffic.ROLES, 1))
    elif name == "move":
        assert (found["killed_at"], found["writes"] > 5, found["reads"] > 5) == (["copying"], True, True)
        (leg,) = found["legs"]
        assert (leg["left"], leg["to"], leg["holds"] > 0) == ("pool", "bridge", True)
    elif name == "reshard":
        assert (len(found["killed_at"]), found["walks"] > 2, min(found["moved"]) > 0) == (1, True, True)
    else:
        assert (found["kills"], found["searches"] >= 15) == (1, True)
        assert found["segments"] > 0, "what is new was merged: a worker that was killed over it may not have told of it"
        assert found["indexed"] >= 15 * 3 * len(search.ROLES) - 15, "the records of tickets, texts and comments"


@pytest.fixture(scope="module")
def fork_server() -> Iterator[None]:
    """One server forks the processes of all tortures. It has loaded what any of them needs."""
    stop = forkserver._forkserver._stop  # type: ignore[attr-defined]  # there is no public way
    stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Torture, "loads", ["portal.wsgi", *(scenario.__module__ for scenario in SCENARIOS.values())])
        patch.setattr(replay.Replay, "loads", Torture.loads)
        yield
    stop()


@pytest.fixture
def processes(fork_server: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs here."""
    settings.DEBUG, settings.API_KEY_ENVIRONMENT = True, "test"  # as in the processes
    monkeypatch.setenv("DEBUG", "1")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SMALL)
def test_a_small_torture_finds_nothing_wrong_and_leaves_nothing(
    name: str, engine: None, processes: None, tmp_path: Path
) -> None:
    before, figures = commands.of_tenants(), tmp_path / "figures.json"
    options = [f"--{option}={value}" for option, value in SMALL[name].items()]
    ended = commands.run(f"torture_{name}", *options, "--json", figures)
    assert ended.status == 0, ended.out + ended.err
    assert SCENARIOS[name].kept in ended.out
    killed(name, json.loads(figures.read_text()))
    assert commands.of_tenants() == before


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_each_wrong_figure_is_called_wrong(scenario: type[Torture]) -> None:
    right: dict[str, Any] = {name: [] for name in scenario.must_be_empty} | dict(scenario.must_be)
    assert scenario.broken(right) == []
    for name, value in right.items():
        assert scenario.broken(right | {name: ["wrong"] if value == [] else "unknown"}) == [name]


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {"demo"}))
def test_it_is_refused_in_production(name: str) -> None:
    ended = commands.run(f"torture_{name}")
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)


def test_its_cleanup_works_nowhere_but_on_a_local_engine(engine: None, settings: LazySettings) -> None:
    with pytest.raises(Forbidden):
        cleanup.delete_summary("a" * 32, 1)
    settings.DEBUG = True
    cleanup.delete_summary("a" * 32, 1)
    settings.DYNAMODB_ENDPOINT_URL = ""
    with pytest.raises(Forbidden):
        cleanup.delete_summary("a" * 32, 1)


def test_its_cleanup_deletes_the_content_of_one_tenant(world: World, settings: LazySettings) -> None:
    settings.DEBUG = True
    world.tickets("acme", 2)
    world.tickets("globex", 3)
    assert cleanup.delete_content(world.tenants["acme"].tenant_id) > 0
    left = {raw["pk"]["S"] for raw in commands.everything() if raw["sk"]["S"] == stored.SUMMARY}
    assert left == {stored.ticket(world.tenants["globex"].tenant_id, n) for n in (1, 2, 3)}


def test_a_journal_is_whole_and_those_of_a_role_come_in_the_order_of_their_starts(tmp_path: Path) -> None:
    run = Torture(Namespace(seed=1), tmp_path, lambda *_: pytest.fail("no stage"))
    for number in (9, 10):
        for event in range(2):
            Journal(tmp_path / f"mover-{number:05}.jsonl").write(number=number, event=event)
    assert [line["number"] for line in run.told("mover")] == [9, 9, 10, 10]
    assert run.last_told("mover", "event") == 2
    assert list(lines(tmp_path / "nobody.jsonl")) == []
