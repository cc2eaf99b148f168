"""A world of three tenants for the proof of isolation, and what is stored of it, read past every layer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from django.urls import URLPattern, URLResolver, get_resolver

from portal import clock
from portal.dynamo import client
from portal.schema import keys, registry
from proofs.isolation import mutants, targets
from proofs.isolation.data_attack import AttackPlan
from proofs.isolation.walk import api_tricks, http_attack, portal_tricks
from proofs.isolation.walk.http_request import api_routes, routes
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import Role
from tests.support import commands, embedded, folding
from tests.support.articles import published
from tests.support.commands import Ended
from tests.support.endpoints import endpoint, tell, work_off
from tests.support.placed import BRIDGE, SILO, desk
from tests.support.world import World
from tickets.articles import article_changes
from tickets.articles.articles import Text
from tickets.desk import commenting, creating
from tickets.letters import ledger
from tickets.letters.envelope import Envelope
from tickets.requesters import requesters

# Those that the tests put something wrong into, and the queue, which each visitor has to see.
FEW_PAGES = {f"<slug:desk>/tickets/{page}" for page in ("", "new/", "people/", "<ticket_number:number>/")}


def three_tenants() -> World:
    """Acme in the pool, Globex on a bridge, and Initech, where only Dora is, in a silo; Alice is in two of them."""
    world = World.create(shards=2, placements={"globex": BRIDGE})
    world.add_user("Dora")
    desk(world, SILO, owner="dora")
    world.join("charlie", "initech", Role.VIEWER)
    for where, who, count in (("acme", "alice", 6), ("globex", "charlie", 9), ("initech", "dora", 4)):
        author = world.context(who, where)
        for n in range(count):
            number = creating.create(author, title=f"Only {where} knows of {n}", description=f"A secret of {where}")
            commenting.comment(author, number, body=f"What {where} says")
        requesters.ensure(author, f"somebody@{where}.invalid", name=f"A customer of {where}")
        came = Envelope(f"object-of-{where}", f"x@{where}.invalid", (), clock.stamp(), {})
        waits = ledger.new(author.repository, keys.digest(where)[:48].ljust(48, "0"), came, size=1)
        ledger.note(
            author.repository, waits, state=ledger.WAITING, reason="It was found to be spam.", open_to_people=True
        )
        article_changes.create(author, Text(f"A draft of {where}", f"What {where} writes", "", True), by=SYSTEM)
        published(author, f"Only for members of {where}", public=False)
        published(author, f"{where.capitalize()} for everybody")
        endpoint(author, f"https://hooks.{where}.invalid/in")
        tell(world.context(who, where), 1)
        work_off(author)
    return world


@pytest.fixture(scope="module", autouse=True)
def three() -> Iterator[World]:
    """One world for all tests of a module: a proof leaves everything as it is."""
    embedded.make_empty()
    folding.remember_nothing()
    world = three_tenants()
    before = stored()
    yield world
    client.reset()
    assert stored() == before


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the broken layers; with one visit where three are made, to a few pages; with one route of the API, and
    no more tricks than show that it is called."""
    monkeypatch.setattr(mutants, "MUTANTS", {})
    monkeypatch.setattr(portal_tricks, "PASSES", portal_tricks.PASSES[:1])
    few = [route for route in routes() if route.path in FEW_PAGES]
    assert len(few) == len(FEW_PAGES)
    monkeypatch.setattr(http_attack, "routes", lambda: iter(few))
    listing = [route for route in api_routes() if (route.method, route.path) == ("GET", "api/v1/tickets")]
    monkeypatch.setattr(http_attack, "api_routes", lambda: iter(listing))
    monkeypatch.setattr(api_tricks, "API_TRICKS", dict([*api_tricks.API_TRICKS.items()][:3]))


@pytest.fixture
def other_walls() -> Iterator[None]:
    """For a test that changes policy or guard: the client is made anew with them, and anew without."""
    client.reset()
    yield
    client.reset()


@pytest.fixture(scope="module")
def plan(three: World) -> AttackPlan:
    return AttackPlan(1, targets.find([], None))


def stored() -> dict[str, list[dict[str, Any]]]:
    """Every item of every table."""
    return {table.name: commands.everything(table) for table in registry.tables()}


def prove(*arguments: object, requests: int = 250, seed: int = 1) -> Ended:
    """Run the command as in development, where no setting says what the portal's address is."""
    with override_settings(PORTAL_BASE_URL=""):
        return commands.run("prove_isolation", "--requests", requests, "--seed", seed, *arguments)


def reported(path: Path, *arguments: object, requests: int = 250, seed: int = 1) -> tuple[Ended, dict[str, Any]]:
    """The end of a run, and what it reported."""
    ended = prove("--json", path, *arguments, requests=requests, seed=seed)
    report: dict[str, Any] = json.loads(path.read_text())
    return ended, report


def patterns(found: list[URLPattern | URLResolver] | None = None) -> Iterator[URLPattern]:
    for pattern in get_resolver().url_patterns if found is None else found:
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern.url_patterns)
        else:
            yield pattern


@contextmanager
def view(name: str, broken: Callable[..., Any]) -> Iterator[None]:
    """The portal with one of its views replaced; whoever may call it stays."""
    pattern = next(p for p in patterns() if p.name == name)
    real = pattern.callback
    broken.access = real.access  # type: ignore[attr-defined]
    pattern.callback = broken
    try:
        yield
    finally:
        pattern.callback = real
