"""Commands for operators: making tenants, accounts and members, and how every command ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import get_commands, load_command_class

from portal.dynamo import client
from tenants.audit_trail.stored import AUDIT
from tenants.membership import invitations, members
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tests.engine_plugin import NOWHERE
from tests.support import commands
from tests.support.commands import Ended, everything, run
from tests.support.world import World, account_of
from tickets.letters import desk_addresses
from tickets.moving import place_changes

GOOD = "a quite long password"
COMMANDS = {
    "create_tenant": "tenants",
    "create_user": "tenants",
    "add_member": "tenants",
    "seed": "tickets",
    "import_archive": "tickets",
}


def typed(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """Somebody at a terminal answers the prompts."""
    monkeypatch.setattr(sys, "stdin", StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    left = list(answers)
    monkeypatch.setattr("getpass.getpass", lambda prompt: left.pop(0))


def typed_in(name: str, *arguments: str) -> Ended:
    """A command as somebody types it, to its end and status, in this process."""
    held = signal.getsignal(signal.SIGTERM)
    try:
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err, pytest.raises(SystemExit) as ended:
            load_command_class(get_commands()[name], name).run_from_argv(["manage.py", name, *arguments])
    finally:
        signal.signal(signal.SIGTERM, held)
    return Ended(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(text))


# --- create_tenant ---


def test_a_tenant_gets_its_slug_from_its_name_and_its_owner_an_invitation(world: World) -> None:
    ended = run("create_tenant", "Müller & Söhne", "--owner", "bob@example.com", "--shards", 4)

    tenant = tenant_directory.find("muller-sohne")
    assert (ended.status, tenant.name, int(tenant.shards)) == (0, "Müller & Söhne", 4)
    assert tenant.tenant_id in ended.out
    assert "bob@example.com is invited as its owner." in ended.out
    (waiting,) = invitations.waiting_for("bob@example.com")
    assert (waiting.tenant_id, waiting.role) == (tenant.tenant_id, "owner")
    bob = world.browser("bob")
    assert bob.post("/tenants/accept/", {"tenant": tenant.tenant_id}).status_code == 302
    roles = {m.slug: m.role for m in members.memberships_of(world.users["bob"].id)}
    assert roles["muller-sohne"] is Role.OWNER


# --- create_user ---


@pytest.mark.parametrize("is_typed", [True, False])
def test_an_account_can_sign_in_with_the_password_that_was_typed_twice_or_is_the_first_line_of_stdin(
    engine: None, monkeypatch: pytest.MonkeyPatch, is_typed: bool
) -> None:
    if is_typed:
        typed(monkeypatch, GOOD, GOOD)
    else:
        piped(monkeypatch, f"{GOOD}\r\nmore\n")
    ended = run("create_user", " Dora@Example.COM ", "--name", "Dora  Diaz")

    assert ended.status == 0
    assert authenticate(email="dora@example.com", password=GOOD) is not None
    dora = account_of("dora@example.com")
    assert (dora.name, dora.is_operator) == ("Dora Diaz", False)


def test_an_operator_gets_the_password_from_the_environment(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_DORA", GOOD)
    ended = run("create_user", "dora@example.com", "--name", "Dora", "--operator", "--password-env", "SECRET_OF_DORA")

    assert "an operator's account" in ended.out
    assert authenticate(email="dora@example.com", password=GOOD) is not None
    assert account_of("dora@example.com").is_operator


def test_two_different_passwords_are_asked_for_again_and_three_times_at_most(
    engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, GOOD, GOOD + "!", "short", GOOD, GOOD)
    assert run("create_user", "dora@example.com", "--name", "Dora").status == 0

    typed(monkeypatch, "short", "short", "short")
    ended = run("create_user", "eve@example.com", "--name", "Eve")
    assert (ended.status, accounts.find_by_email("eve@example.com")) == (1, None)
    assert "No account was created: none of 3 attempts gave a usable password." in ended.err


@pytest.mark.parametrize(
    ("password", "says"),
    [
        ("", "This password is too short."),
        ("password12", "This password is too common."),
        ("doraexample", "too similar to the"),
        ("x" * 1001, "Use at most 1,000 characters for the password."),
    ],
)
def test_a_weak_password_is_refused_with_the_reason(
    engine: None, monkeypatch: pytest.MonkeyPatch, password: str, says: str
) -> None:
    piped(monkeypatch, password)
    ended = run("create_user", "dora.example@example.com", "--name", "Dora Example")

    assert ended.status == 1
    assert says in ended.err
    assert accounts.find_by_email("dora.example@example.com") is None


# --- add_member ---


def test_a_member_is_in_the_tenant_with_the_role(world: World) -> None:
    ended = run("add_member", "charlie@example.com", "--tenant", "acme", "--role", "agent")

    assert (ended.status, ended.out) == (0, "Charlie Example is now an agent in Acme.\n")
    assert world.context("charlie", "acme").role is Role.AGENT
    assert "Charlie Example" in {m.name for m in members.members_of(world.context("alice", "acme").repository)}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("create_tenant Acme", "The slug acme is taken."),
        ("create_tenant Other --slug acme", "The slug acme is taken."),
        ("create_tenant Other --slug 'Not a slug'", "Use 1-40 lowercase letters, digits or hyphens."),
        ("create_tenant '日本'", "Use 1-40 lowercase letters, digits or hyphens."),
        ("create_tenant ' '", "Use 1-80 characters for the name."),
        ("create_tenant Other --shards 17", "Use 1-16 shards."),
        ("create_tenant Other --shards many", "invalid int value: 'many'"),
        ("create_tenant Other --owner ' '", "That is not an e-mail address."),
        ("create_user alice@example.com --name Alice", "alice@example.com already has an account."),
        ("create_user ALICE@example.com --name Alice", "alice@example.com already has an account."),
        ("create_user 'not an address' --name X", "“not an address” is not an e-mail address."),
        ("create_user x@example.com --name ' '", "Use 1-100 characters for the name."),
        ("create_user x@example.com", "the following arguments are required: --name"),
        ("create_user x@example.com --name X --password-env NO_SUCH", "The environment variable NO_SUCH is not set."),
        ("add_member bob@example.com --tenant acme --role owner", "bob@example.com is already a member of Acme."),
        ("add_member nobody@example.com --tenant acme --role agent", "Create it with create_user."),
        ("add_member charlie@example.com --tenant none --role agent", "There is no tenant with the slug 'none'."),
        ("add_member charlie@example.com --tenant acme --role boss", "invalid choice: 'boss'"),
    ],
)
def test_a_command_that_cannot_be_is_refused_before_it_asks_or_changes_anything(
    world: World, command: str, says: str
) -> None:
    ended = run(*shlex.split(command))

    assert (ended.status, says in ended.err) == (1, True), ended.err
    assert world.context("bob", "acme").role is Role.AGENT


# --- how every command ends ---


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_each_option_is_for(name: str) -> None:
    parser = load_command_class(COMMANDS[name], name).create_parser("manage.py", name)

    assert len(parser.description) > 40
    assert all(action.help for action in parser._actions)


def test_an_engine_that_is_not_there_is_one_sentence_and_status_1(settings: Any) -> None:
    settings.DYNAMODB_ENDPOINT_URL = NOWHERE
    client.reset()
    try:
        ended = typed_in("create_tenant", "Acme")
    finally:
        client.reset()

    assert ended.status == 1
    assert re.fullmatch(r"CommandError: The database cannot be reached\. Check DYNAMODB_ENDPOINT_URL.*\n", ended.err)


def test_wrong_usage_is_status_2() -> None:
    ended = typed_in("add_member", "bob@example.com")

    assert ended.status == 2
    assert "the following arguments are required: --tenant, --role" in ended.err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("create_operator bob@example.com --existing --name Bob", "not with --existing"),
        ("create_operator bob@example.com --existing --password-env HOME", "not with --existing"),
        ("place_tenant acme --on bridge --now", "--now goes with --discard."),
        ("place_tenant acme --on bridge --unchecked --reason x", "--unchecked goes with --discard."),
        ("place_tenant acme --on bridge --lost --reason x", "--lost goes with --discard or --roll-back."),
    ],
)
def test_an_option_that_would_count_for_nothing_is_wrong_usage_and_nothing_is_done(
    world: World, command: str, says: str
) -> None:
    ended = typed_in(*shlex.split(command))
    assert (ended.status, says in ended.err) == (2, True), ended.err
    assert not accounts.find_by_email("bob@example.com").is_operator
    assert place_changes.MOVES.last(world.tenants["acme"].tenant_id) is None


def test_ctrl_c_at_a_prompt_is_status_130_without_a_traceback(engine: None) -> None:
    terminal, theirs = os.openpty()
    process = commands.start("create_user", "dora@example.com", "--name", "Dora", terminal=theirs)
    os.close(theirs)
    shown = b""
    while b"Password" not in shown:
        shown += os.read(terminal, 1000)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=120)
    shown += os.read(terminal, 10_000)
    os.close(terminal)

    assert process.returncode == 130
    assert b"Stopped: The account may have been created." in shown
    assert b"Traceback" not in shown


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_shows_a_bar_on_a_terminal(engine: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DEBUG = True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    ended = run("seed", "--tenants", 1, "--tickets", 3, "--users", 0)

    assert ended.status == 0
    assert "Seeding" in shown.getvalue()
    assert "\x1b[" in shown.getvalue()
    assert "3 tickets" in ended.out


# --- operators ---


def test_a_tenant_is_suspended_with_its_reason_and_resumed_once_each(world: World) -> None:
    assert run("suspend_tenant", "acme", "--reason", "Unpaid since May").out.strip() == "Acme is suspended."
    assert "already" in run("suspend_tenant", "acme").out
    assert run("resume_tenant", "acme").status == 0
    rows = [raw for raw in everything(AUDIT) if raw["action"]["S"] in ("tenant.suspended", "tenant.resumed")]
    resumed, suspended = sorted(rows, key=lambda raw: raw["action"]["S"])
    assert (resumed["action"]["S"], suspended["action"]["S"]) == ("tenant.resumed", "tenant.suspended")
    assert json.loads(suspended["after"]["S"]) == {"status": "suspended", "reason": "Unpaid since May"}
    assert suspended["tenant_id"]["S"] == world.tenants["acme"].tenant_id
    assert run("suspend_tenant", "nothing-here").status == 1


def test_an_account_that_there_is_becomes_an_operators_or_one_is_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("create_operator", "bob@example.com", "--existing").status == 0
    assert accounts.find_by_email("bob@example.com").is_operator
    assert run("create_operator", "nobody@example.com", "--existing").status == 1
    monkeypatch.setenv("SECRET_OF_ROOT", "a long enough phrase")
    made = run("create_operator", "ops@example.com", "--name", "Ops", "--password-env", "SECRET_OF_ROOT")
    assert "an operator's account" in made.out


def test_whoever_serves_no_pages_starts_without_the_operators(settings: Any) -> None:
    code = "import sys, django; django.setup(); print(*(name for name in sys.modules if name.endswith('.admin')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    assert {*done.stdout.split()} & {"tenants.admin", "delivery.admin", "tickets.admin"} == set()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("create_tenant", "New Desk", "--owner", "nora at example.com"), 1, "That is not an e-mail address."),
        (("mail_address", "show", "nora"), 1, "“nora” is not an e-mail address."),
        (("rename_tenant", "acme", "acme"), 0, "Acme has the slug acme already."),
        (("purge_tenant", "--ordered"), 0, "No purge is ordered."),
        (("time_machine", "acme", "--tag", "nope", "--at", "2026-01-01"), 1, "No ticket was like that at this moment."),
        (("iam_policy", "tenant", "--site", "mars"), 1, "The setting SILOS has no site mars."),
    ],
)
def test_a_command_that_finds_nothing_to_do_says_what_was_missing(
    world: World, words: tuple[str, ...], status: int, said: str
) -> None:
    ended = run(*words)
    assert (ended.status, said in ended.out + ended.err) == (status, True), ended
    assert tenant_directory.with_slug("new-desk") is None


def test_a_desk_whose_name_has_become_reserved_is_renamed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(tenant_directory, "RESERVED", frozenset())
        assert run("rename_tenant", "acme", "forms").status == 0
    alice = world.browser("alice", "acme")
    assert alice.get("/forms/tickets/").status_code == 404, "the address is that of a public form"
    refused = run("rename_tenant", "forms", "help")
    assert (refused.status, "is reserved" in refused.err) == (1, True)
    told = run("rename_tenant", "forms", "acme-forms")
    assert told.out == "Acme is acme-forms from now on, and no longer forms.\n"
    assert alice.get("/acme-forms/tickets/").status_code == 200
    kept = desk_addresses.desk_of("forms@desk.localhost")
    assert kept is not None
    assert kept.tenant_id == world.tenants["acme"].tenant_id
    assert "rename_tenant" in alice.get("/acme-forms/desk/audit/").content.decode()
