"""`python manage.py <command>` in a checkout: it finds the engine of `make run`, or says in a sentence why not."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from django.conf import settings

from portal.engines import discovery
from portal.engines.endpoint import REGION
from portal.engines.engine_process import LOCK_NAME, EngineError
from portal.engines.processes import acquire_lock, free_port, release_lock
from tests.engines.test_demo import Demo


class Checkout(Demo):
    """A small project whose manage.py is called without `demo` in front."""

    def engine_file(self, kind: str = "ministack") -> Path:
        path = self.directory / "var" / kind / LOCK_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@contextmanager
def open_engine(checkout: Checkout, note: str, kind: str = "ministack") -> Iterator[None]:
    """A living process holds the engine file with this note."""
    lock = acquire_lock(checkout.engine_file(kind))
    assert lock is not None
    lock.write(note)
    lock.flush()
    try:
        yield
    finally:
        release_lock(lock)


# --- the command line itself ---


def test_an_endpoint_that_is_named_wins(checkout: Checkout) -> None:
    local = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": REGION}
    with open_engine(checkout, f"http://127.0.0.1:{free_port()}"):
        done = checkout.manage("create_tables", DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL, **local)
        assert (done.returncode, done.stderr) == (0, "")
        (checkout.directory / ".env").write_text(f"DYNAMODB_ENDPOINT_URL={settings.DYNAMODB_ENDPOINT_URL}\n")
        done = checkout.manage("create_tables", **local)
        assert (done.returncode, done.stderr) == (0, ""), "named in the file of settings"


def test_without_engine_and_credentials_a_command_says_what_to_do(checkout: Checkout) -> None:
    done = checkout.manage("seed")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "There is no database to work on: start one with `make run` in another terminal, name one with "
        "DYNAMODB_ENDPOINT_URL=<address>, or give AWS credentials to use Amazon DynamoDB.\n"
    )


def test_a_shell_opens_without_a_database(checkout: Checkout) -> None:
    done = checkout.manage("shell", "--verbosity", "0", "-c", "print(1 + 1)")
    assert (done.returncode, done.stdout) == (0, "2\n")


def test_a_profile_that_does_not_exist_is_named(checkout: Checkout) -> None:
    done = checkout.manage("seed", AWS_PROFILE="nobody")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("The AWS credentials cannot be used: ")
    assert "nobody" in line


@pytest.mark.parametrize("command", [["infra_template"], ["iam_policy", "tenant"]], ids=" ".join)
def test_the_declarations_are_printed_without_a_database(checkout: Checkout, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), *command],
        env=checkout.environ | {"DJANGO_SETTINGS_MODULE": "portal.settings", "DEBUG": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_an_unknown_command_is_called_unknown(checkout: Checkout) -> None:
    assert "Unknown command: 'sead'. Did you mean seed?" in checkout.manage("sead").stderr


# --- what it does first, in this process ---


def prepared(checkout: Checkout, *arguments: str, **environ: str) -> tuple[dict[str, str], list[str]]:
    """Return what manage.py changes in the environment for a command, and what it says. Raises EngineError."""
    changed, said = dict(environ), list[str]()
    discovery.prepare(["manage.py", *arguments], checkout.directory, environ=changed, say=said.append)
    return {name: value for name, value in changed.items() if environ.get(name) != value}, said


def refused(checkout: Checkout, *arguments: str, **environ: str) -> str:
    """Return the one sentence of a command that does nothing."""
    with pytest.raises(EngineError) as refusal:
        prepared(checkout, *(arguments or ("seed",)), **environ)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    "arguments",
    [["check"], ["help"], ["seed", "--help"], ["diffsettings"], ["demo", "--help"], ["demo"], ["infra_template"]],
    ids=" ".join,
)
def test_a_command_that_needs_no_database_goes_on_without(checkout: Checkout, arguments: list[str]) -> None:
    checkout.engine_file().write_text("http://127.0.0.1:9")
    assert prepared(checkout, *arguments) == ({}, [])


def test_an_engine_that_was_killed_is_named_even_with_credentials_at_hand(checkout: Checkout) -> None:
    file = checkout.engine_file()
    file.write_text("http://127.0.0.1:4567")
    assert refused(checkout, AWS_ACCESS_KEY_ID="real", AWS_SECRET_ACCESS_KEY="real") == (
        "The engine at http://127.0.0.1:4567 (ministack) ended without being stopped; start it again with "
        f"`make run`, or remove {file} if you do not want it."
    )


def test_an_address_where_nothing_answers_is_named(checkout: Checkout) -> None:
    with open_engine(checkout, f"http://127.0.0.1:{free_port()}"):
        assert refused(checkout).startswith("No DynamoDB engine answers at http://127.0.0.1:")


class Stranger(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_address_where_something_else_answers_is_named(checkout: Checkout) -> None:
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with open_engine(checkout, f"http://127.0.0.1:{server.server_port}"):
            line = refused(checkout)
        server.shutdown()
    assert line.startswith(f"No DynamoDB engine answers at http://127.0.0.1:{server.server_port}, which ")


def test_an_engine_that_still_starts_is_waited_for(checkout: Checkout) -> None:
    with open_engine(checkout, ""):
        assert refused(checkout) == "The engine of `make run` (ministack) is still starting; try again in a moment."


def test_an_engine_file_with_something_else_in_it_is_named(checkout: Checkout) -> None:
    with open_engine(checkout, "http://[bad"):
        assert "names no address, but 'http://[bad'; restart `make run`." in refused(checkout)


def test_of_two_engines_one_is_chosen_by_name(checkout: Checkout) -> None:
    address = settings.DYNAMODB_ENDPOINT_URL
    with open_engine(checkout, address), open_engine(checkout, "", "dynamodb-local"):
        assert refused(checkout) == (
            "More than one engine runs here, ministack and dynamodb-local; choose one with ENGINE=<name>."
        )
        changed, said = prepared(checkout, "shell", ENGINE="ministack")
    assert changed["DYNAMODB_ENDPOINT_URL"] == address
    assert said == [f"Using the engine of `make run`, ministack at {address}, with DEBUG=1."]


def test_an_unknown_engine_is_refused_with_the_choices(checkout: Checkout) -> None:
    assert "choose one of ministack, dynamodb-local" in refused(checkout, ENGINE="sqlite")
