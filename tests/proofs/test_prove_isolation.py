"""The proof of isolation: clean where the layers hold, loud where one of them is broken."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse

from portal.dynamo import client
from portal.dynamo.store import RawItems, Store
from portal.isolation import guard, policies
from portal.schema import keys, registry
from proofs.isolation import mutants, targets
from proofs.isolation.attempts import calls, requests
from proofs.isolation.attempts.attempt import Draw
from proofs.isolation.data_attack import AttackPlan
from proofs.isolation.mutants import CONTROL, MISTAKES, MUTANTS, Mutant
from proofs.isolation.walk import http_attack, portal_tricks, visitors
from proofs.isolation.walk.http_request import Route, api_routes, argument, routes
from proofs.isolation.walk.portal_tricks import IN_TURN, PASSES, TRICKS
from tenants.sign_in.accounts import User
from tenants.tenancy import context, tenant_directory, tenant_middleware
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import Identity, Ids, first_word, resolve_identity
from tenants.tenancy.stored import DIRECTORY, MembershipItem, TenantItem
from tests.support.commands import Ended, run
from tests.support.proving import other_walls, patterns, plan, prove, quick, reported, stored, three, view
from tests.support.stored import unguarded
from tests.support.world import World
from tickets.isolation_runs.stored import PROOFS
from tickets.letters.stored import LETTERS
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS, DetailItem

__all__ = ["other_walls", "plan", "quick", "three"]  # fixtures


# --- a clean run ---

# Some of the addresses, and one at which each visit comes to a write.
SOME_ROUTES = [one for n, one in enumerate(routes()) if n % 24 == 0 or one.path.endswith("/comment/")]
# Each mistake in the rights of a role is made in test_broken_rights.py.
SOME_MUTANTS = {name: MUTANTS[name] for name in [*MUTANTS] if name not in [*MISTAKES][2:]}


@pytest.fixture(scope="module")
def clean(three: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, dict[str, Any], str]:
    """How one run ended, its report and its page: it makes what `make prove` makes, to some of the addresses."""
    folder = tmp_path_factory.mktemp("clean")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(portal_tricks, "PASSES", PASSES[:2])
        monkeypatch.setattr(http_attack, "routes", lambda: iter(SOME_ROUTES))
        monkeypatch.setattr(mutants, "MUTANTS", SOME_MUTANTS)
        some = [*api_routes()][:3]  # all of them are called in test_call_attack.py
        monkeypatch.setattr(http_attack, "api_routes", lambda: iter(some))
        before = stored()
        ended, report = reported(folder / "proof.json", "--html", folder / "proof.html", requests=500)
        assert stored() == before
    return ended, report, (folder / "proof.html").read_text()


def test_where_the_walls_hold_nothing_crosses_and_the_figures_add_up(clean: tuple[Ended, dict[str, Any], str]) -> None:
    ended, report, page = clean
    assert ended.status == 0, ended.err
    assert "Isolation holds" in ended.out
    assert (report["holds"], report["seed"], report["tenants"]) == (True, 1, 3)
    asked = report["requests"]
    assert asked["hostile"] == sum(a["requests"] for a in report["attacks"]) == sum(report["stopped_by"].values())
    # Three members saw their queue, three guests a form, and three keys their tickets.
    assert asked["honest"] == sum(report["honest"].values()) + 9
    assert asked["hostile"] + asked["honest"] - 9 == 500
    assert asked["visits"] == report["http"]["visits"] == sum(r["visits"] for r in report["http"]["routes"]) + 6
    assert asked["total"] == asked["hostile"] + asked["honest"] - 9 + asked["visits"] + asked["calls"]
    assert asked["calls"] == report["api"]["visits"] == sum(r["visits"] for r in report["api"]["routes"]) + 3
    for one in report["attacks"]:
        assert sum(one["stopped_by"].values()) == one["requests"]
    by_guard = sum(count for stop, count in report["stopped_by"].items() if stop.startswith("guard"))
    assert report["security_events"] == by_guard > 250
    assert report["data"] == {"tenants_changed": 0, "items_left_behind": 0}
    assert (report["crossing"], report["refused"]) == (None, None)
    assert len(report["mutants"]) == len(SOME_MUTANTS)
    assert [m["mistake"] for m in report["mutants"] if bool(m["killed_by"]) == m["control"]] == []
    with pytest.raises(guard.IsolationError):  # and nothing of a broken layer is left
        guard.current_tenant()
    assert f"{len(SOME_MUTANTS) - 1} of {len(SOME_MUTANTS) - 1} broken layers were noticed" in ended.out
    assert "Isolation holds" in page


def test_a_report_can_be_kept_for_the_pages_of_owners(
    clean: tuple[Ended, dict[str, Any], str], three: World, tmp_path: Path
) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(clean[1]))
    ended = run("record_proof", path)
    kept = {"kind": {"S": PROOFS}, "name": {"S": clean[1]["began"]}}
    unguarded().dispatch("DeleteItem", {"TableName": DIRECTORY.full_name, "Key": kept})  # the world stays as it was
    assert (ended.status, f"{len(SOME_MUTANTS) - 1} of {len(SOME_MUTANTS) - 1} broken" in ended.out) == (0, True)


def test_every_visit_that_is_planned_is_made(clean: tuple[Ended, dict[str, Any], str]) -> None:
    _, report, _ = clean
    visited = {(r["route"], r["method"]): r["visits"] for r in report["http"]["routes"]}
    assert visited == dict.fromkeys(product([r.path or "/" for r in SOME_ROUTES], ["GET", "POST"]), 3 * 2)
    assert report["http"]["withheld_writes"] > 0


def test_every_address_is_to_be_visited_for_every_tenant_by_get_and_by_post(three: World) -> None:
    """`make prove` makes each of these visits; what an outsider is answered at each address is in test_outsider.py."""
    found = targets.find([], None)
    with visitors.visiting(found) as people:
        visits = http_attack.PortalAttack(1, found, people)
        planned = [visits.request(number) for number in range(len(visits.plan))]
    met = Counter((v.route.path, v.method, v.own.id, IN_TURN if v.tricks[0] in IN_TURN else v.tricks) for v in planned)
    assert {trick for visit in planned for trick in visit.tricks} == {*TRICKS}
    tenants = [tenant.tenant_id for tenant in three.tenants.values()]
    every = [*product([route.path for route in routes()], ["GET", "POST"], tenants, PASSES)]
    assert met == Counter(every)
    assert len(every) == len([*patterns()]) * 2 * 3 * len(PASSES)


def test_a_visitor_who_acts_as_a_member_sends_the_cookie_that_the_other_tricks_left(three: World) -> None:
    found = targets.find([], None)
    with visitors.visiting(found) as people:
        mine = people.members[found[0].id]
        for trick in ("cookie of another secret", "spliced cookie"):
            route, rng = Route("<slug:desk>/tickets/"), random.Random(1)  # noqa: S311  # a seed, no secret
            names = ["member acted as", trick]
            made = portal_tricks.visit(rng, mine, found[1], people, route, "GET", names)
            assert f"={made.cookie}; " in made.headers["HTTP_COOKIE"]


def test_a_report_for_one_customer_names_no_other(clean: tuple[Ended, dict[str, Any], str], three: World) -> None:
    _, report, page = clean
    text = page + json.dumps(report)
    for name, tenant in three.tenants.items():
        assert tenant.tenant_id not in text
        assert not re.search(rf"\b{name}\b", text, re.IGNORECASE)


def test_every_operation_table_index_and_trick_is_tried(plan: AttackPlan) -> None:
    attempts = [plan.attempt(n) for n in range(12_000)]
    hostile = [a for a in attempts if not a.honest]
    assert {a.operation for a in hostile} >= {*requests.other_operations()}
    places = {a.place for a in hostile}
    assert places >= {t.name for t in registry.tables()} | {
        f"{t.name}/{i.name}" for t in registry.tables() for i in t.indexes
    }
    assert len({a.kind for a in hostile}) > 45
    assert 0.05 < sum(a.honest for a in attempts) / len(attempts) < 0.1


def test_every_method_of_the_repository_is_attacked() -> None:
    methods = {name for name in dir(Store) if not name.startswith("_")}
    called = {name for name in methods if callable(getattr(Store, name))}
    assert {*calls.METHODS} == called


@pytest.mark.usefixtures("quick")
def test_the_same_seed_makes_the_same_requests(plan: AttackPlan, tmp_path: Path) -> None:
    first, second = plan, AttackPlan(1, targets.find([], None))
    other = replace(plan, seed=2)
    numbers = range(400)
    assert [first.attempt(n).described for n in numbers] == [second.attempt(n).described for n in numbers]
    assert [first.attempt(n).described for n in numbers] != [other.attempt(n).described for n in numbers]
    reports = [reported(tmp_path / "proof.json", requests=100)[1] for _ in range(2)]
    for name in ("attacks", "honest", "stopped_by"):
        assert reports[0][name] == reports[1][name]
    # Status codes follow from the visits, which follow from the seed.
    assert reports[0]["http"] == reports[1]["http"]


# --- broken layers ---


@pytest.mark.usefixtures("other_walls")
def test_a_guard_that_is_switched_off_is_a_crossing_and_can_be_replayed(settings: LazySettings, tmp_path: Path) -> None:
    settings.DYNAMODB_GUARD = False
    ended, report = reported(tmp_path / "proof.json", "--skip-http")
    assert ended.status == 1
    assert "does NOT hold" in ended.err
    number = report["crossing"]["number"]
    assert f"--seed 1 --only {number} --tenant acme" in ended.out
    again, replayed = reported(tmp_path / "again.json", "--skip-http", "--only", number)
    assert again.status == 1
    assert replayed["crossing"] == report["crossing"]
    settings.DYNAMODB_GUARD = True
    client.reset()
    assert prove("--only", number).status == 0


@pytest.mark.usefixtures("other_walls")
def test_a_policy_without_the_delimiter_is_a_crossing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = policies.document

    def careless(role: registry.Role, **where: str) -> dict[str, Any]:
        document = json.dumps(real(role, **where))
        forgotten: dict[str, Any] = json.loads(document.replace("TenantId}|*", "TenantId}*"))
        return forgotten if role == "tenant" else real(role, **where)

    monkeypatch.setattr(policies, "document", careless)
    ended, report = reported(tmp_path / "proof.json", "--skip-http", requests=2000)
    assert ended.status == 1
    assert "let through" in report["crossing"]["why"]


def test_walls_that_refuse_everything_prove_nothing(
    plan: AttackPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(policy: object, operation: str, params: object) -> None:
        raise guard.IsolationError(operation, "?", "no")

    monkeypatch.setattr(guard, "refuse_foreign", refuse)
    monkeypatch.setattr(targets, "find", lambda slugs, limit: plan.targets)
    monkeypatch.setattr(targets.Target, "state", lambda self: [])
    for name, answer in (("remove_scratch", None), ("scratch_left", 0)):
        monkeypatch.setattr(visitors, name, lambda found, answer=answer: answer)
    ended, report = reported(tmp_path / "proof.json", "--skip-http")
    assert ended.status == 1
    assert "honest request was refused" in ended.err
    assert report["refused"]["why"].startswith("An honest request was stopped by guard")


def test_a_broken_wall_that_the_attack_does_not_notice_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    unharmed = {CONTROL: Mutant(), "nothing is wrong with it": Mutant()}
    monkeypatch.setattr(mutants, "MUTANTS", unharmed)
    monkeypatch.setattr(mutants, "ATTEMPTS", 500)
    ended = prove("--skip-http", requests=50)
    assert ended.status == 1
    assert "not as expected: nothing is wrong with it" in ended.out


# --- a broken portal ---


def reads_the_query(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    """The tenant is what the address says."""
    named = request.GET.get("tenant_id") or request.tenant.tenant_id  # type: ignore[attr-defined]
    repository = Store("tenant", named) if keys.TENANT_ID.match(named) else request.tenant.repository  # type: ignore[attr-defined]
    rows = repository.query(RawItems(TICKETS), ticket_keys.ticket, kwargs["number"]).items
    return HttpResponse(repr(rows))


def writes_where_the_form_says(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    named = request.POST.get("tenant", "")
    if keys.TENANT_ID.match(named):
        repository = Store("tenant", named)
        repository.put_all(
            [DetailItem(repository.key(ticket_keys.ticket, 1), ticket_keys.DETAIL, description="overwritten")]
        )
    return HttpResponse("done")


def shows_what_it_kept(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    """A cache without the tenant in its key: no request to the database, and somebody else's page."""
    return HttpResponse("Only globex knows of 3")


def fails(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    raise ValueError


def without_memberships(
    user: User, membership: object, tenant: TenantItem | None, *counts: object
) -> TenantContext | None:
    """The cookie names a tenant, and nobody looks whether its owner is a member."""
    known = membership or MembershipItem(user.id, tenant.tenant_id, role=Role.OWNER.value) if tenant else None
    return _real_context(user, known, tenant, *counts)


_real_context = context.of_items


@pytest.mark.parametrize(
    ("name", "broken", "says"),
    [
        ("ticket", reads_the_query, "in the name of"),
        ("new", writes_where_the_form_says, "in the name of"),
        ("people", shows_what_it_kept, "'Only globex knows of 3'"),
        ("people", fails, "The answer is 500"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_a_broken_view_is_a_crossing_and_changes_nothing(name: str, broken: Any, says: str, tmp_path: Path) -> None:
    before = stored()
    with view(name, broken):
        ended, report = reported(tmp_path / "proof.json", requests=1)
        assert ended.status == 1
        assert says in report["crossing"]["why"]
    assert report["crossing"]["number"].startswith("http-")
    assert stored() == before


@pytest.mark.usefixtures("quick")
def test_a_visit_can_be_made_again_alone(tmp_path: Path) -> None:
    with view("ticket", reads_the_query):
        _, report = reported(tmp_path / "proof.json", requests=1)
        number = report["crossing"]["number"]
        again, replayed = reported(tmp_path / "again.json", "--only", number)
        assert again.status == 1
        for part in ("path", "query", "form", "headers", "tricks"):
            assert replayed["crossing"]["request"][part] == report["crossing"]["request"][part]
    assert prove("--only", number).status == 0


@pytest.mark.usefixtures("quick")
def test_a_portal_that_trusts_the_cookie_is_a_crossing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(context, "of_items", without_memberships)
    monkeypatch.setattr(portal_tricks, "PASSES", [IN_TURN] * 4)
    ended, report = reported(tmp_path / "proof.json", requests=1)
    assert ended.status == 1
    assert set(report["crossing"]["request"]["tricks"]) & {"member no more", "spliced cookie"}


@pytest.mark.dearer("the broken portal looks up the desk that each address names")
@pytest.mark.usefixtures("quick")
def test_a_portal_that_opens_each_desk_that_an_address_names_is_a_crossing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resolve = resolve_identity

    def believing(ids: Ids | None, path: str = "", **how: Any) -> Identity:
        found, named = resolve(ids, path, **how), tenant_directory.with_slug(first_word(path))
        if found.user is None or named is None:
            return found
        return replace(found, tenant=context.for_system(named))

    monkeypatch.setattr(tenant_middleware, "resolve_identity", believing)
    monkeypatch.setattr(portal_tricks, "PASSES", [["another desk's address"]])
    ended, report = reported(tmp_path / "proof.json", requests=1)
    assert ended.status == 1
    assert "another desk's address" in report["crossing"]["request"]["tricks"]


def test_each_tenant_has_webhooks_that_the_proof_attacks(plan: AttackPlan) -> None:
    for target in plan.targets:
        assert all(target.ids(kind) for kind in ("endpoint", "delivery", "requester", "letter"))
        assert any(text.startswith("whsec_") for text in target.texts)
    attempts = [plan.attempt(number) for number in range(4000)]
    attacked = {place for one in attempts if not one.honest for place in [one.place]}
    assert attacked >= {"Events.Endpoints", "Events.Secrets", "Events.Deliveries", "Support.Letters"}


def test_each_tenant_has_a_letter_that_the_proof_asks_for_as_another_tenant(plan: AttackPlan) -> None:
    one, other = plan.targets[:2]
    rng = random.Random(1)  # noqa: S311  # a seed, no secret
    for name in ("letter", "letter_id"):
        assert argument(rng, one, other, "str", name) in other.ids("letter")
    for target in (one, other):
        assert {*target.ids("letter"), f"object-of-{target.tenant.slug}"} <= target.texts
        assert Draw(rng, one, target).foreign(LETTERS).endswith(target.ids("letter")[0]) or target is one
