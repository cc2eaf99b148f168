"""Fetching DynamoDB Local: once, complete or not at all, and a reason where it cannot run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from portal.engines import dynamodb_local
from portal.engines.dynamodb_local import InstallError, dynamodb_local_available, install
from portal.engines.engine_process import EngineError, start_engine

OLD_JAVA = """echo 'openjdk version "11.0.2" 2019-01-15' >&2"""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """An empty var/ and a Maven that only pretends; the names of the tools that were run."""
    names: list[str] = []

    def run(argv: Sequence[str]) -> None:
        names.append(argv[0])
        for argument in argv:
            if argument.startswith("-DoutputDirectory="):
                Path(argument.partition("=")[2]).mkdir()

    monkeypatch.setattr(dynamodb_local, "DIRECTORY", tmp_path / "dynamodb-local")
    monkeypatch.setattr(dynamodb_local, "dynamodb_local_available", lambda: None)
    monkeypatch.setattr(dynamodb_local, "java_obstacle", lambda: None)
    monkeypatch.setattr(dynamodb_local, "_run", run)
    return names


def tool(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


def test_it_is_fetched_once(calls: list[str]) -> None:
    said: list[str] = []
    assert install(said.append) == install(said.append)
    assert calls == ["mvn", "javac"]
    assert len(said) == 1


def test_a_fetch_that_fails_leaves_nothing_and_the_next_one_succeeds(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: Sequence[str]) -> None:
        if argv[0] == "javac":
            raise InstallError("no disk")
        pretend(argv)

    pretend = dynamodb_local._run
    with monkeypatch.context() as broken:
        broken.setattr(dynamodb_local, "_run", fail)
        with pytest.raises(InstallError, match="no disk"):
            install(lambda text: None)
    assert list(dynamodb_local.DIRECTORY.iterdir()) == []
    assert install(lambda text: None).is_dir()


def test_a_tool_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool(tmp_path, "mvn", "echo 'Could not find artifact'; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(InstallError, match=r"(?s)mvn ended with status 1.*Could not find artifact"):
        dynamodb_local._run(["mvn"])


def test_missing_tools_and_a_java_that_is_too_old_are_named_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tool(tmp_path, "java", OLD_JAVA)
    assert dynamodb_local_available() == (
        "DynamoDB Local needs javac and mvn: apt-get install -y default-jdk-headless maven"
    )
    tool(tmp_path, "javac", "")
    tool(tmp_path, "mvn", "")
    assert "needs Java 17 or newer, this is Java 11" in (dynamodb_local_available() or "")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (None, "DynamoDB Local needs java: "),
        (OLD_JAVA, "needs Java 17 or newer, this is Java 11: "),
        ("exit 1", "needs Java 17 or newer, this is no working Java: "),
    ],
    ids=["none", "too old", "broken"],
)
def test_an_engine_that_was_fetched_says_which_java_it_misses(
    script: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "engine" / dynamodb_local.VERSION).mkdir(parents=True)
    monkeypatch.setattr(dynamodb_local, "DIRECTORY", tmp_path / "engine")
    if script is not None:
        tool(tmp_path, "java", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=sentence + ".*apt-get install"):
        start_engine("dynamodb-local")
