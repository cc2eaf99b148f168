"""`python manage.py <command>` in a checkout: it finds the engine of `make run`, or says in a sentence why not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from django.conf import settings

from portal.engines.engine_process import LOCK_NAME, start_engine
from portal.engines.processes import acquire_lock, free_port, release_lock
from tests.engines.test_demo import Demo


class Checkout(Demo):
    """A small project with the portal's own manage.py, called without `demo` in front."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        shutil.copy(settings.BASE_DIR / "manage.py", directory)
        self.environ.pop("DEBUG", None)
        self.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(directory)}

    def manage(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.directory,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def engine_file(self, kind: str = "ministack") -> Path:
        path = self.directory / "var" / kind / LOCK_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    checkout = Checkout(tmp_path)
    yield checkout
    if checkout.running and checkout.running.poll() is None:
        checkout.end()


def test_a_command_works_on_the_engine_of_make_run_and_says_so(checkout: Checkout) -> None:
    checkout.start()
    done = checkout.manage("seed", "--key", "second")
    assert done.returncode == 0
    assert checkout.page()["items"] == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("Using the engine of `make run`, ministack at http://127.0.0.1:")
    assert line.endswith(", with DEBUG=1.")


def test_a_command_works_on_the_engine_that_make_run_was_given(checkout: Checkout) -> None:
    checkout.environ["DYNAMODB_ENDPOINT_URL"] = settings.DYNAMODB_ENDPOINT_URL
    checkout.start()
    del checkout.environ["DYNAMODB_ENDPOINT_URL"]
    done = checkout.manage("seed", "--key", "of the plain command")
    assert done.returncode == 0
    assert f"endpoint at {settings.DYNAMODB_ENDPOINT_URL}" in done.stderr


def test_an_endpoint_that_is_named_wins(checkout: Checkout) -> None:
    with start_engine(state_dir=checkout.engine_file().parent):
        nowhere = f"http://127.0.0.1:{free_port()}"
        done = checkout.manage("seed", DYNAMODB_ENDPOINT_URL=nowhere, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    assert done.returncode != 0
    assert "Using the engine" not in done.stderr


def test_an_endpoint_in_the_file_of_settings_wins(checkout: Checkout) -> None:
    (checkout.directory / ".env").write_text(f"DYNAMODB_ENDPOINT_URL=http://127.0.0.1:{free_port()}\n")
    with start_engine(state_dir=checkout.engine_file().parent):
        done = checkout.manage("seed", AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    assert done.returncode != 0
    assert "Using the engine" not in done.stderr


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one sentence of a command that did nothing."""
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_without_engine_and_credentials_a_command_says_what_to_do(checkout: Checkout) -> None:
    assert refused(checkout.manage("seed")) == (
        "There is no database to work on: start one with `make run` in another terminal, name one with "
        "DYNAMODB_ENDPOINT_URL=<address>, or give AWS credentials to use Amazon DynamoDB."
    )


def test_a_shell_opens_without_a_database(checkout: Checkout) -> None:
    done = checkout.manage("shell", "--verbosity", "0", "-c", "print(1 + 1)")
    assert (done.returncode, done.stdout) == (0, "2\n")


def test_a_profile_that_does_not_exist_is_named(checkout: Checkout) -> None:
    line = refused(checkout.manage("seed", AWS_PROFILE="nobody"))
    assert line.startswith("The AWS credentials cannot be used: ")
    assert "nobody" in line


@pytest.mark.parametrize(
    "arguments", [["check"], ["help"], ["seed", "--help"], ["diffsettings"], ["demo", "--help"]], ids=" ".join
)
def test_a_command_that_needs_no_database_goes_on_without(checkout: Checkout, arguments: list[str]) -> None:
    checkout.engine_file().write_text("http://127.0.0.1:9")
    done = checkout.manage(*arguments)
    assert (done.returncode, done.stderr) == (0, "")


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


def test_an_engine_that_was_killed_is_named_even_with_credentials_at_hand(checkout: Checkout) -> None:
    file = checkout.engine_file()
    file.write_text("http://127.0.0.1:4567")
    line = refused(checkout.manage("seed", AWS_ACCESS_KEY_ID="real", AWS_SECRET_ACCESS_KEY="real"))
    assert line == (
        "The engine at http://127.0.0.1:4567 (ministack) ended without being stopped; start it again with "
        f"`make run`, or remove {file} if you do not want it."
    )


def engine_file_says(checkout: Checkout, note: str) -> str:
    """Return what a command says while a living process holds the engine file with this note."""
    lock = acquire_lock(checkout.engine_file())
    assert lock is not None
    lock.write(note)
    lock.flush()
    try:
        return refused(checkout.manage("seed"))
    finally:
        release_lock(lock)


def test_an_address_where_nothing_answers_is_named(checkout: Checkout) -> None:
    line = engine_file_says(checkout, f"http://127.0.0.1:{free_port()}")
    assert line.startswith("No DynamoDB engine answers at http://127.0.0.1:")


class Stranger(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_address_where_something_else_answers_is_named(checkout: Checkout) -> None:
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        line = engine_file_says(checkout, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert line.startswith(f"No DynamoDB engine answers at http://127.0.0.1:{server.server_port}, which ")


def test_an_engine_that_still_starts_is_waited_for(checkout: Checkout) -> None:
    assert engine_file_says(checkout, "") == (
        "The engine of `make run` (ministack) is still starting; try again in a moment."
    )


def test_an_engine_file_with_something_else_in_it_is_named(checkout: Checkout) -> None:
    assert "names no address, but 'http://[bad'; restart `make run`." in engine_file_says(checkout, "http://[bad")


def test_of_two_engines_one_is_chosen_by_name(checkout: Checkout) -> None:
    with start_engine(state_dir=checkout.engine_file().parent) as engine:
        other = acquire_lock(checkout.engine_file("dynamodb-local"))
        assert other is not None
        assert refused(checkout.manage("seed")) == (
            "More than one engine runs here, ministack and dynamodb-local; choose one with ENGINE=<name>."
        )
        assert engine.endpoint_url in checkout.manage("shell", "-c", "pass", ENGINE="ministack").stderr
        release_lock(other)


def test_an_unknown_engine_is_refused_with_the_choices(checkout: Checkout) -> None:
    assert "choose one of ministack, dynamodb-local" in refused(checkout.manage("seed", ENGINE="sqlite"))
