"""How a proof ends: its exit status, its reports, and that nothing of it is left, however it was stopped."""

from __future__ import annotations

import json
import re
import signal
import time
from contextlib import suppress
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from portal.dynamo import client
from portal.load import reporting
from portal.management.command import PortalCommand, Progress, Stopped
from portal.nosql.session_store import SessionStore
from portal.nosql.stored import SESSIONS
from proofs import proof_report
from proofs.isolation import keys, proof
from proofs.isolation.attempts.attempt import AttackAttempt
from proofs.isolation.data_attack import AttackPlan, Crossing, Tally
from proofs.isolation.proof import Proof
from proofs.isolation.targets import SCRATCH_ADDRESS
from proofs.isolation.transport import Wire
from proofs.isolation.walk import http_attack
from tenants.membership import member_changes
from tenants.sign_in import accounts
from tenants.tenancy.context import Role
from tests.support import commands
from tests.support.proving import plan, prove, quick, reported, stored, three
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.ticket.stored import DetailItem

__all__ = ["plan", "quick", "three"]  # fixtures

A, B = "a" * 32, "b" * 32


# --- the exit status ---


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tenant", "acme"), "at least two tenants"),
        (("--tenants", 1), "at least two tenants"),
        (("--tenant", "acme", "--tenant", "nowhere"), "no tenant with the slug 'nowhere'"),
    ],
)
def test_with_too_few_tenants_it_says_what_to_do(arguments: tuple[object, ...], says: str) -> None:
    ended = prove(*arguments)
    assert ended.status == 2
    assert says in ended.err


@pytest.mark.usefixtures("quick")
def test_what_is_visited_for_the_proof_is_nobodys_noise(settings: LazySettings) -> None:
    settings.NOISE_NOTED = True
    assert prove(requests=1).status == 0
    assert reporting._reporter is None


def test_without_an_engine_it_cannot_run(settings: LazySettings) -> None:
    settings.DYNAMODB_ENDPOINT_URL = "http://127.0.0.1:9"
    client.reset()
    try:
        ended = prove()
    finally:
        settings.DYNAMODB_ENDPOINT_URL = settings.STS_ENDPOINT_URL
        client.reset()
    assert ended.status == 2
    assert "DYNAMODB_ENDPOINT_URL" in ended.err


@pytest.mark.parametrize(
    "arguments", [("--requests", "0"), ("--requests", "x"), ("--tenants", "-1"), ("--only", "x"), ("--only", "http-")]
)
def test_wrong_usage_is_said_before_anything_is_done(arguments: tuple[str, ...]) -> None:
    ended = commands.run("prove_isolation", *arguments)
    assert ended.status != 0
    assert "must be" in ended.err


@pytest.mark.usefixtures("quick")
def test_named_tenants_alone_are_attacked(tmp_path: Path) -> None:
    arguments = ("--tenant", "initech", "--tenant", "globex", "--skip-http")
    ended, found = reported(tmp_path / "proof.json", *arguments, requests=80)
    assert (ended.status, found["tenants"], found["requests"]["visits"]) == (0, 2, 0)


# --- nothing is left ---


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("where", ["requests", "visits"])
def test_stopped_anywhere_it_leaves_nothing(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = stored()
    calls = iter(range(20))

    def stop_after_twenty(*args: Any, **kwargs: Any) -> Any:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    module, name = (Wire, "attempt") if where == "requests" else (http_attack, "_make")
    real = getattr(module, name)
    monkeypatch.setattr(module, name, stop_after_twenty)
    ended, found = reported(tmp_path / "proof.json")
    assert ended.status == 130
    assert found["verdict"] == "Interrupted before the end."
    assert stored() == before


@pytest.mark.usefixtures("quick")
def test_stopped_while_a_session_is_written_it_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before, save, saved = stored(), SessionStore.save, count()

    def stop_behind_the_third(session: SessionStore, *args: Any, **kwargs: Any) -> None:
        save(session, *args, **kwargs)
        if next(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(SessionStore, "save", stop_behind_the_third)
    assert prove(requests=10).status == 130
    assert stored() == before


def test_ctrl_c_in_a_shell_ends_it_and_cleans_up() -> None:
    before = stored()
    process = commands.start("prove_isolation", "--requests", 1_000_000, "--seed", 1)
    assert process.stderr is not None
    wait_until(lambda: commands.everything(SESSIONS))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    ended = commands.finish(process)
    assert ended.status == 130, ended.err
    assert "Traceback" not in ended.err
    assert stored() == before


class Deaf(PortalCommand):
    """Work in the midst of which some code drops what is raised, as C code does that looks up a key."""

    costs = None

    def work(self, options: dict[str, Any]) -> None:
        with Progress(self, "Working", None) as progress:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            progress.advance()
            pytest.fail("it went on")


def test_an_interrupt_that_gets_lost_in_the_work_ends_it_with_its_next_step() -> None:
    kept = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        command = Deaf()
        command._called_from_command_line = True
        with pytest.raises(Stopped, match="Run it again"):
            command.handle()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


@pytest.mark.usefixtures("quick")
def test_what_a_killed_run_left_is_removed_by_the_next(three: World) -> None:
    before = stored()
    acme = three.tenants["acme"]
    left = accounts.seed(email=SCRATCH_ADDRESS, name="Left", password_hash="!")
    member_changes.seed_member(left, acme, Role.OWNER)
    repository = three.context("alice", "acme").repository
    repository.put_all([DetailItem(repository.key(keys.proof), f"proof{n}") for n in range(60)])
    assert prove(requests=1).status == 0
    assert stored() == before


# --- reports ---


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]


def test_the_page_is_one_file_that_escapes_all_it_shows(plan: AttackPlan) -> None:
    nasty = "<script>alert('x')</script>"
    found = Crossing("7", nasty, {"parameters": {nasty: f"{nasty}&"}})
    tally = Tally(crossing=found)
    tally.add(AttackAttempt(nasty, nasty, nasty, plan.attempt(1).draw, {}), nasty)
    text = proof_report.page("Isolation", proof.document(Proof(1, 10, plan.targets, tally=tally)))
    page = Page()
    page.feed(text)
    assert page.addresses == []
    assert not {"script", "link", "img", "iframe", "object"} & {*page.tags}
    assert "&lt;script&gt;" in text
    assert not re.search(r"url\(|@import|https?://", text)
    assert "color-scheme:light dark" in text
    assert "@media print" in text


@pytest.mark.usefixtures("quick")
def test_a_report_that_cannot_be_written_is_said_and_no_reason_to_fail(tmp_path: Path) -> None:
    ended = prove("--json", tmp_path, "--skip-http", requests=20)
    assert ended.status == 0
    assert "could not be written" in ended.err


def test_the_json_is_for_machines(tmp_path: Path) -> None:
    ended, found = reported(tmp_path / "proof.json", "--skip-http", "--only", 3)
    assert ended.status == 0
    assert json.dumps(found)
    assert re.fullmatch(r"[0-9a-f]{64}", found["policy_sha256"])
    assert {"Python", "Django", "botocore", "pynamodb", "engine", "guard"} <= {*found["versions"]}
