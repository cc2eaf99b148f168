"""An owner attacks the desk: asked for on a page, made by a worker, shown as it goes on, and signed as one file."""

from __future__ import annotations

import html
import json
import logging
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError

from portal.dynamo import client
from portal.dynamo.placement import POOL
from portal.dynamo.store import Store
from portal.errors import Unavailable
from portal.isolation import guard, object_guard
from portal.schema import holdings, registry
from tenants.audit_trail.recording import SYSTEM
from tenants.audit_trail.stored import AUDIT
from tenants.auditing import verify_audit_export
from tenants.lifecycle import certificates
from tenants.tenancy import tenant_directory
from tests.auditing.test_evidence import exported
from tests.desk.test_cost import IDENTITY, spent
from tests.support import used_desk
from tests.support.commands import everything, run
from tests.support.world import Browser, World
from tickets.isolation_runs import attack, attempts, presenters, run_job, run_requests
from tickets.isolation_runs.attempts import RunPlan
from tickets.isolation_runs.run_job import IsolationRun

PAGE = "/desk/settings/isolation/"
A_TURN = len(attempts.kinds())


@pytest.fixture
def acme(world: World, settings: Any) -> World:
    settings.CERTIFICATE_KEY = certificates.new_key()
    world.tickets("acme", 3)
    return world


@pytest.fixture
def alice(acme: World) -> Browser:
    return acme.browser("alice", "acme")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """As many attempts as make one of each kind of key, twice."""
    monkeypatch.setattr(run_requests, "ATTEMPTS", 2 * A_TURN)
    return 2 * A_TURN


def work(again: Callable[[], bool] = lambda: True, **how: Any) -> int:
    """Carry out what a lifecycle worker finds in one turn."""
    return run_job.follower(a_second=1e6, **how).turn(again)


def stopping_after(count: int) -> dict[str, Any]:
    """The way of a worker that ends once it has made this many attempts."""
    made: list[int] = []
    return {"advance": made.append, "again": lambda: len(made) < count}


def attacked(alice: Browser) -> str:
    alice.send(f"{PAGE}attack/")
    assert work() == 1
    return text(alice)


def item_of(world: World) -> Any:
    return run_requests.last(world.context("alice", "acme"))


def text(browser: Browser) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", browser.get(PAGE).content.decode())))


def actions() -> list[str]:
    rows = sorted(everything(AUDIT), key=lambda row: row["timestamp_event_id"]["S"])
    return [row["action"]["S"] for row in rows if row["action"]["S"].startswith("isolation_run.")]


def stored() -> Counter[str]:
    """All that is stored, but for what a run writes of itself: its own items, its audit rows and the end of their
    chain."""
    rows = [json.dumps(raw, sort_keys=True, default=repr) for t in registry.tables() for raw in everything(t)]
    own = ("ISOLATION_", "isolation_run.", '"partition"')
    return Counter(row for row in rows if not any(word in row for word in own))


def downloaded(alice: Browser) -> bytes:
    (link, *_) = re.findall(r'action="([^"]+/isolation/files/[^"]+)"', alice.get(PAGE).content.decode())
    answer = alice.send(link)
    assert re.fullmatch(r'attachment; filename="acme-isolation-[\d-]+-\w{6}\.html"', answer["Content-Disposition"])
    return answer.content


def test_an_owner_attacks_the_desk_and_sees_that_each_attempt_was_refused(acme: World, alice: Browser) -> None:
    before = stored()
    assert "You have ordered no attack yet" in text(alice)
    assert alice.send(f"{PAGE}attack/").status_code == 302
    assert "It begins within seconds" in text(alice)
    assert work() == 1
    page, item = text(alice), item_of(acme)
    assert "Yes, as far as this attack tried: 2,000 attempts in the name of a desk that does not exist" in page
    assert "on this database two layers keep desks apart and not three" in page
    assert "2 of 3 attacks are left today" in page
    found, made_up = item.filled.count("1"), sum(item.filled[number % A_TURN] == "0" for number in range(2000))
    assert f"Items of {found} of {A_TURN} kinds of keys were found on this desk." in page
    assert f"{made_up:,} of 2,000 attempts used a made-up key" in page
    assert "The attack begins" not in page
    assert (item.state, item.tried, item.own_asked) == (run_requests.HELD, 2000, item.own_answered)
    assert {*item.answers} == {attack.GUARD, attack.KEYS}
    assert item.own_asked > 3
    assert actions() == ["isolation_run.asked", "isolation_run.ended"]
    assert not before - stored()


def test_the_page_shows_the_last_attempts_while_they_are_made(acme: World, alice: Browser, few: int) -> None:
    alice.send(f"{PAGE}attack/")
    assert work(**stopping_after(120)) == 0
    page, tried = text(alice), int(item_of(acme).tried)
    assert tried == 120
    assert f"{tried} of {few} attempts, none got through." in page
    last = presenters.said(RunPlan().attempt(tried - 1), item_of(acme).answers[-1])
    assert f"{last['what']}" in page
    assert f"{last['says']} {last['answer']}" in page


def test_the_page_costs_one_round_trip_beside_the_identity(alice: Browser, few: int) -> None:
    attacked(alice)
    bill = spent(alice, PAGE)
    assert (bill.trips, sorted(call.operation for call in bill.calls[1:])) == (2, ["Query"] * 3)
    assert bill.read_units <= IDENTITY + 1 + 1 + 0.5 + 0.5


def test_the_file_of_another_desk_is_not_found(acme: World, alice: Browser, few: int) -> None:
    attacked(alice)
    charlie = acme.browser("charlie", "globex")
    assert charlie.send(f"{PAGE}files/{item_of(acme).run_id}/").status_code == 404


def test_who_takes_the_signed_report_is_in_the_audit_trail(alice: Browser, few: int) -> None:
    attacked(alice)
    downloaded(alice)
    trail = re.sub(r"<[^>]+>", "", alice.get("/desk/audit/").content.decode())
    assert trail.count("exported the signed report of an attack") == 1


# --- what is attacked ---


def test_each_table_index_holding_and_kind_of_object_is_attacked_in_each_basic_way() -> None:
    plan = RunPlan()
    assert {kind.table for kind in plan.kinds} >= {*registry.tables()}
    assert {kind.index for kind in plan.kinds} >= {index for table in registry.tables() for index in table.indexes}
    assert {(k.holding, k.table) for k in plan.kinds} >= {(h.name, t) for h in holdings.holdings() for t in h.tables}
    assert {k.holding for k in plan.kinds if k.table is None} == {h.name for h in holdings.holdings() if h.objects}
    tried: dict[int, set[str]] = {}
    for one in plan.attempts(run_requests.ATTEMPTS):
        tried.setdefault(one.place, set()).add(one.trick.says)
    basic = {trick.says for trick in attempts._ALWAYS}
    assert all(basic <= tried[n] for n, k in enumerate(plan.kinds) if k.table and not k.index)
    assert {says for some in tried.values() for says in some} == {
        trick.says
        for some in (
            attempts._ALWAYS,
            attempts._IN_TURN,
            attempts._OF_INDEXES,
            attempts._PLANTING,
            attempts._OF_OBJECTS,
        )
        for trick in some
    }


def test_a_used_desk_is_attacked_by_keys_of_each_kind_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used_desk.keep_to_its_minutes(monkeypatch)
    acme = used_desk.prepared(tmp_path).tenants["acme"]
    plan = RunPlan()
    reads: list[None] = []
    samples = attack.sample(plan.kinds, acme.tenant_id, POOL, between=lambda: reads.append(None))
    of_items = {kind for kind in plan.kinds if kind.table and not kind.index and kind.holding != "other items"}
    assert of_items - samples.filled == set()
    assert len(reads) < 400
    empty = {kind.what for kind in plan.kinds if kind.index and kind not in samples.filled}
    of_few_tickets = {"gsi-raised", "gsi-raised-resolver"}  # those whose last change is an internal note
    assert empty <= {"gsi-user", "gsi-disabled", "gsi-waiting"} | of_few_tickets
    own = attack.ask_as_the_desk(samples, acme.tenant_id, POOL, between=lambda: None)
    assert (own.answered, own.refused) == (own.asked, False)
    assert own.asked > 25
    attacker = "f" * 32
    with attack.quiet(attacker):
        sender = attack.Attack(plan, samples, desk=acme.tenant_id, attacker=attacker)
        found = Counter(sender.answer(number) for number in range(run_requests.ATTEMPTS))
    assert found.keys() == {attack.GUARD, attack.KEYS}


def test_the_attacker_is_no_tenant_and_its_refusals_alone_are_no_security_events(
    acme: World, alice: Browser, few: int, caplog: pytest.LogCaptureFixture
) -> None:
    alice.send(f"{PAGE}attack/")
    attacker = item_of(acme).attacker
    assert tenant_directory.get_many([attacker]) == []
    globex, seen = acme.tenants["globex"].tenant_id, []

    def as_globex(steps: int) -> None:
        if not seen:
            seen.append(steps)
            with pytest.raises(guard.IsolationError), guard.acting_for(globex):
                client.connection("tenant").call("DescribeTable", TableName="x")

    with caplog.at_level(logging.CRITICAL, "pooldesk.security"):
        assert work(advance=as_globex) == 1
    (event,) = [record.getMessage() for record in caplog.records if record.name == "pooldesk.security"]
    assert globex in event


# --- broken layers ---

BROKEN: dict[str, Callable[[], Any]] = {
    "no guard looks at keys": lambda: patch.object(guard, "refuse_foreign", lambda *a: None),
    "no guard looks at keys of indexes": lambda: patch.object(guard, "refuse_planted", lambda *a: None),
    "no guard looks at objects": lambda: patch.object(object_guard, "refuse_foreign_object", lambda *a: None),
    "every key is the tenant's": lambda: patch.object(guard.policies.Policy, "allows", lambda *a: True),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_layer_is_noticed_and_nothing_is_changed_by_it(
    acme: World, alice: Browser, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = stored()
    alice.send(f"{PAGE}attack/")
    with BROKEN[broken](), caplog.at_level(logging.CRITICAL, "pooldesk.security"):
        assert work() == 1
    assert item_of(acme).state == run_requests.CROSSED
    page = text(alice)
    assert "No. An attempt got through, and the attack stopped there." in page
    assert "It got through." in page
    assert [r.getMessage() for r in caplog.records if "An isolation run of acme crossed" in r.getMessage()]
    assert not before - stored()


def test_without_keys_the_guard_refuses_all_the_same(acme: World, alice: Browser) -> None:
    with patch.object(Store, "_refuse_foreign_key", lambda *a: None):
        attacked(alice)
    assert (item_of(acme).state, {*item_of(acme).answers}) == (run_requests.HELD, {attack.GUARD})


def test_layers_that_refuse_the_desk_itself_prove_nothing(acme: World, alice: Browser) -> None:
    def nobody(*_: Any) -> None:
        raise guard.IsolationError("GetItem", "x", "nobody passes")

    with patch.object(guard, "refuse_foreign", nobody):
        alice.send(f"{PAGE}attack/")
        work()
    assert "the desk's own requests were refused as well" in text(alice)


# --- IAM ---


class Iam:
    """Amazon DynamoDB as the attacker meets it without a guard: it answers by this code, "" lets through."""

    def __init__(self, code: str) -> None:
        self.code, self.asked = code, 0

    def _make_api_call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        if self.code:
            raise ClientError({"Error": {"Code": self.code}}, operation)
        return {}


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Iam:
    iam = Iam("AccessDeniedException")
    monkeypatch.setattr(attack, "is_held_by_iam", lambda site="": True)
    monkeypatch.setattr(client, "make_client_for_one", lambda tenant_id, site="": iam)
    return iam


def test_where_desks_have_a_role_iam_is_tried_without_the_guard(
    acme: World, alice: Browser, iam: Iam, few: int
) -> None:
    page = attacked(alice)
    assert run_requests.tally_of(item_of(acme))[attack.IAM] == iam.asked > few / 8
    assert f"It refused {iam.asked} attempts." in page
    assert "It was not tried" not in page


def test_an_iam_that_answers_is_a_crossing(acme: World, alice: Browser, iam: Iam, few: int) -> None:
    iam.code = ""
    assert "No. An attempt got through" in attacked(alice)
    assert iam.asked == 1


def test_an_iam_that_is_away_is_asked_again_later(acme: World, alice: Browser, iam: Iam, few: int) -> None:
    iam.code = "ThrottlingException"
    alice.send(f"{PAGE}attack/")
    assert work() == 0
    assert "It waits and is tried again: The database is busy." in text(alice)
    iam.code = "AccessDeniedException"
    assert work() == 1
    assert item_of(acme).state == run_requests.HELD


def test_no_client_without_a_guard_is_made_where_tenants_have_no_role() -> None:
    with pytest.raises(Unavailable):
        client.make_client_for_one("f" * 32)


# --- the life of a run ---


def test_a_run_that_was_interrupted_goes_on_behind_its_last_attempt(acme: World, alice: Browser, few: int) -> None:
    alice.send(f"{PAGE}attack/")
    work(**stopping_after(70))
    tried = int(item_of(acme).tried)
    again: list[int] = []
    assert work(advance=again.append) == 1
    assert tried == 70
    assert (sum(again), item_of(acme).state) == (few - tried, run_requests.HELD)


def test_a_run_of_another_version_begins_anew(acme: World, alice: Browser, few: int) -> None:
    alice.send(f"{PAGE}attack/")
    item = item_of(acme)
    item.plan, item.answers = "of another version", "X" * 50
    assert IsolationRun(item, a_second=1e6).run()
    assert (item_of(acme).tried, {*item_of(acme).answers}) == (few, {attack.GUARD})


def test_an_owner_stops_a_run_and_nothing_is_said_of_the_rest(acme: World, alice: Browser, few: int) -> None:
    alice.send(f"{PAGE}attack/")
    alice.send(f"{PAGE}stop/")
    assert work() == 1
    assert item_of(acme).state == run_requests.CANCELLED
    assert actions() == ["isolation_run.asked", "isolation_run.cancelled", "isolation_run.ended"]
    assert "The last attack was stopped after 0 attempts." in text(alice)


def test_a_desk_has_one_run_at_a_time_and_three_a_day(acme: World, alice: Browser, few: int) -> None:
    alice.send(f"{PAGE}attack/")
    first = item_of(acme).run_id
    assert "running already" in alice.send(f"{PAGE}attack/", follow=True).content.decode()
    assert item_of(acme).run_id == first
    work()
    attacked(alice)
    page = attacked(alice)
    assert "This desk was attacked 3 times today." in page
    third = item_of(acme).run_id
    assert "three times a day" in alice.send(f"{PAGE}attack/", follow=True).content.decode()
    assert item_of(acme).run_id == third
    item = item_of(acme)
    item.day = "2026-01-01"
    assert run_requests.left_today(item) == run_requests.A_DAY


def test_only_the_last_runs_are_kept(acme: World, alice: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_requests, "ATTEMPTS", 1)
    monkeypatch.setattr(run_requests, "KEPT", 2)
    kept = []
    for _ in range(3):
        attacked(alice)
        kept.append(item_of(acme).run_id)
    tenant = acme.context("alice", "acme")
    assert [one.run_id for one in run_requests.RUNS.history(tenant.tenant_id)] == kept[:0:-1]
    assert run_requests.fetch(tenant, kept[1], by=SYSTEM)[1]


# --- the signed file ---


@pytest.fixture
def keys(acme: World, tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_text(run("certificate_keys").out)
    return path


def test_the_file_has_every_attempt_and_verifies_offline(
    acme: World, alice: Browser, few: int, keys: Path, tmp_path: Path
) -> None:
    attacked(alice)
    content = downloaded(alice)
    page = html.unescape(content.decode())
    assert page.count("Refused by the guard.") + page.count("Refused by the keys.") == few
    assert not re.search(r"""(src|href)=|url\(|<script""", page)
    assert "an engine that checks no credentials, so IAM could not be tried" in page
    path = tmp_path / "acme.html"
    path.write_bytes(content)
    ended = run("verify_certificate", path, "--keys", keys)
    assert ended.status == 0, ended.err
    assert f"attempts {few}" in ended.out
    assert "crossed 0" in ended.out


TAMPERED: dict[str, Callable[[bytes], bytes]] = {
    "a figure": lambda page: re.sub(rb">\d", lambda found: b">1" if found[0] == b">2" else b">2", page, count=1),
    "a word of an attempt": lambda page: page.replace(b"Refused by the guard.", b"It got through.", 1),
    "a blank": lambda page: page.replace(b"<main>", b"<main> ", 1),
    "something behind the signature": lambda page: page + b"<p>And more.</p>",
    "something before it": lambda page: page.replace(b"</main>", b"<p>More.</p></main>", 1),
    "the signed facts": lambda page: page.replace(b'"crossed": 0', b'"crossed": 1', 1),
    "the hash": lambda page: re.sub(rb'"sha256": "\w{8}', b'"sha256": "00000000', page),
    "the signature": lambda page: re.sub(rb'"signature": "\w{4}', b'"signature": "0000', page),
    "no signature": lambda page: page.partition(b"\n<!-- signature")[0],
    "a second signature": lambda page: page + page[page.rindex(b"\n<!-- signature") :],
    "a comment around the signature": lambda page: page.replace(b"</body>", b"</body><!-- ", 1),
}


def test_each_tampering_with_the_file_is_noticed(
    acme: World, alice: Browser, few: int, keys: Path, tmp_path: Path
) -> None:
    attacked(alice)
    content, path = downloaded(alice), tmp_path / "acme.html"
    for what, tamper in TAMPERED.items():
        assert tamper(content) != content, what
        path.write_bytes(tamper(content))
        assert run("verify_certificate", path, "--keys", keys).status == 1, what


def test_the_evidence_for_an_auditor_has_each_run_and_its_script_verifies_the_pages(
    acme: World, alice: Browser, few: int, keys: Path, tmp_path: Path
) -> None:
    attacked(alice)
    files, content, path = exported(alice), downloaded(alice), tmp_path / "acme.html"
    (told,) = json.loads(files["isolation-runs.json"])
    assert (told["result"], told["attempts"], told["by"]) == ("held", few, "alice@example.com")
    assert [page for name, page in files.items() if name.startswith("isolation-run-")] == [content]
    path.write_bytes(content)
    assert verify_audit_export.main([str(keys), str(path)]) == 0
    for what, tamper in TAMPERED.items():
        path.write_bytes(tamper(content))
        assert verify_audit_export.main([str(keys), str(path)]) == 1, what


def test_a_signed_page_is_no_certificate_of_deletion(
    acme: World, alice: Browser, few: int, keys: Path, tmp_path: Path
) -> None:
    attacked(alice)
    signature = re.findall(rb"\n<!-- signature[^\n]*\n(.*)-->\n", downloaded(alice), re.DOTALL)[0]
    path = tmp_path / "deletion.json"
    path.write_bytes(signature)
    ended = run("verify_certificate", path, "--keys", keys)
    assert (ended.status, "no certificate of deletion" in ended.err) == (1, True)


def test_without_a_key_nothing_is_signed_and_the_run_counts_all_the_same(
    acme: World, alice: Browser, few: int, settings: Any
) -> None:
    settings.CERTIFICATE_KEY = ""
    assert "each one was refused" in attacked(alice)
    assert "Download the signed report" not in text(alice)


# --- the operators' proofs ---

REPORT: dict[str, Any] = {
    "verdict": "Isolation holds: no request crossed.",
    "holds": True,
    "began": "2026-11-01T10:00:00+00:00",
    "tenants": 2,
    "requests": {"hostile": 4600, "honest": 400},
    "mutants": [
        {"mistake": "none", "killed_by": "", "attempts": 2000, "control": True, "as_expected": True},
        {"mistake": "guard: a", "killed_by": "let through: x", "attempts": 7, "control": False, "as_expected": True},
        {"mistake": "policy: b", "killed_by": "", "attempts": 20000, "control": False, "as_expected": False},
    ],
    "versions": {"engine": "Amazon DynamoDB, eu-central-1", "Pooldesk": "1.1.0"},
    "policy_sha256": "0" * 64,
}


def test_a_proof_that_was_made_elsewhere_is_shown_to_owners(alice: Browser, tmp_path: Path) -> None:
    assert "The operators have not kept the result" in text(alice)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    ended = run("record_proof", path)
    assert (ended.status, "1 of 2 broken layers noticed" in ended.out) == (0, True), ended.err
    page = text(alice)
    assert "version 1.1.0, on Amazon DynamoDB, eu-central-1: 4,600 hostile requests" in page
    assert "1 of 2 mistakes were noticed." in page
    assert "Policies with a mistake" in page
    assert "b not noticed 20,000" in page
    assert "a a request that was let through: x 7" in page


@pytest.mark.parametrize("report", ["{}", "[]", "no json", json.dumps({**REPORT, "mutants": []})])
def test_what_is_no_proof_is_not_kept(alice: Browser, tmp_path: Path, report: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(report)
    assert run("record_proof", path).status == 1
    assert "The operators have not kept the result" in text(alice)
