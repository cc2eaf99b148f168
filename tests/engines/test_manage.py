"""The command line ends as commands do, also before one has begun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import django.core.management
import pytest
from django.conf import settings

import manage
from portal.engines.engine_process import LOCK_NAME, EngineError
from portal.engines.processes import acquire_lock, release_lock
from portal.management import without_sql

MISSING = "Pooldesk's packages are not installed here (environ): `make run` installs them.\n"


def test_ctrl_c_while_a_command_is_loaded_ends_with_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(django.core.management, "execute_from_command_line", stopped)
    monkeypatch.setattr(manage.discovery, "prepare", lambda *args, **options: None)
    monkeypatch.setattr(sys, "argv", ["manage.py", "rebuild_search"])
    with pytest.raises(SystemExit) as ended:
        manage.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.parametrize("python", ["", "/nonexistent", "false"])
def test_make_refuses_a_python_that_is_missing_or_too_old_before_it_makes_an_environment(
    tmp_path: Path, python: str
) -> None:
    command = ["make", f"VENV={tmp_path}/venv", f"PYTHON={python}", f"{tmp_path}/venv/bin/pip"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Python 3.11 or newer is missing" in done.stdout
    assert [*tmp_path.iterdir()] == []


# Django's own that work here, or that say themselves what is missing.
OF_DJANGO = {
    "check", "compilemessages", "diffsettings", "makemessages", "runserver", "shell", "startapp", "startproject",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*django.core.management.get_commands()}))
def test_a_command_for_sql_ends_with_one_sentence_that_names_what_to_use(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_sql = django.core.management.get_commands()[name] in (
        "django.core", "django.contrib.auth", "django.contrib.contenttypes",
    ) and name not in OF_DJANGO  # fmt: skip
    for words in ([name], [name, "--help"], ["help", name]):
        said = without_sql.sentence(["manage.py", *words])
        assert (bool(said), said.count("\n")) == (of_sql, 0)
    if of_sql:
        monkeypatch.setattr(sys, "argv", ["manage.py", name])
        with pytest.raises(SystemExit) as ended:
            manage.main()
        assert ended.value.code == said


def test_help_knows_each_command_without_debug_too() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DEBUG"}

    def said(*words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True, timeout=300
        ).stdout

    ours = {path.stem for path in settings.BASE_DIR.glob("*/management/commands/[a-z]*.py")}
    assert ours <= set(said("help").split())
    assert "torture_move" in ours
    assert said("torture_move", "--help").startswith("usage: manage.py torture_move")


@pytest.mark.parametrize("name", ["noisy_neighbour", "prove_isolation"])
def test_a_proof_without_debug_says_that_it_needs_it(name: str) -> None:
    given = {"DYNAMODB_ENDPOINT_URL": "http://127.0.0.1:9"}
    with pytest.raises(EngineError, match=f"needs DEBUG: DEBUG=1 python manage.py {name}"):
        manage.discovery.prepare(["manage.py", name], settings.BASE_DIR, environ=given, say=print)
    manage.discovery.prepare(["manage.py", name], settings.BASE_DIR, environ={**given, "DEBUG": "on"}, say=print)


@pytest.mark.parametrize("command", ["help", "infra_template"])
def test_a_command_whose_output_nobody_reads_any_further_ends_quietly(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does when it has seen enough
    ended = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=settings.BASE_DIR, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=300,
    )  # fmt: skip
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.fixture
def bare_checkout(tmp_path: Path) -> Callable[[Path | str], subprocess.CompletedProcess[str]]:
    """A checkout, and `python manage.py seed --tenants 2` in it by a Python without any packages."""
    shutil.copy(settings.BASE_DIR / "manage.py", tmp_path)
    (tmp_path / "portal").symlink_to(settings.BASE_DIR / "portal")
    command = ["-S", "-E", "manage.py", "seed", "--tenants", "2"]
    return lambda python: subprocess.run(
        [python, *command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )


def test_without_packages_a_command_goes_on_with_the_python_that_has_them(
    bare_checkout: Callable[[Path | str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    python.chmod(0o755)
    ended = bare_checkout(sys.executable)
    assert (ended.returncode, ended.stdout) == (7, "manage.py seed --tenants 2\n")


def test_where_packages_are_missing_everywhere_a_command_says_so_and_does_not_call_itself(
    bare_checkout: Callable[[Path | str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    ended = bare_checkout(sys.executable)
    assert (ended.returncode, ended.stderr) == (1, MISSING)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    assert bare_checkout(python).stderr == MISSING


@pytest.mark.parametrize("command", ["certificate_keys", "verify_certificate"])
def test_a_command_that_needs_settings_alone_takes_those_of_a_running_demo_and_needs_none(
    command: str, tmp_path: Path
) -> None:
    def prepared(**given: str) -> dict[str, str]:
        manage.discovery.prepare(["manage.py", command], tmp_path, environ=given, say=said.append)
        return given

    said: list[str] = []
    assert prepared() == {}
    (tmp_path / "var" / "ministack").mkdir(parents=True)
    lock = acquire_lock(tmp_path / "var" / "ministack" / LOCK_NAME)  # as an engine holds it while it starts
    assert lock is not None
    try:
        assert prepared() == {"DEBUG": "1"}
        assert said == ["Using the settings of `make run`, with DEBUG=1."]
        for given in ({"DEBUG": "0"}, {"DYNAMODB_ENDPOINT_URL": ""}):  # whoever says which installation is meant
            assert prepared(**given) == given
    finally:
        release_lock(lock)
        lock.close()
    assert prepared() == {}
