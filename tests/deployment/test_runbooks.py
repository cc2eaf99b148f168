"""Each alarm names the page that says what to do about it, and each command on these pages can be run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from tests.deployment.test_alarms import declared
from tests.support.commands import run
from tests.support.world import World

FOLDER = Path(settings.BASE_DIR) / "docs" / "runbooks"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))
HEADINGS = ["Meaning", "Effect on users", "How to look", "Steps", "How to know that it worked"]
# They wait for workers, which the tests of these commands start: here, that the line is one that they take.
WAITING = {
    "place_tenant",
    "rebuild_aggregates",
    "rebuild_search",
    "reshard_tenant",
    "verify_aggregates",
    "verify_search",
}
JUDGES = {("check", "--deploy"), ("check_health",), ("queues", "check")}  # they say by their status how things stand


def runbook_of(alarm: dict[str, object]) -> str:
    found = re.search(r"Runbook: docs/runbooks/([\w-]+)\.md$", str(alarm["AlarmDescription"]))
    return found[1] if found else ""


def commands(page: str) -> list[str]:
    blocks = re.findall(r"```\n(.*?)```", (FOLDER / f"{page}.md").read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_each_alarm_has_a_runbook_and_each_runbook_an_alarm() -> None:
    named = {runbook_of(alarm["Properties"]) for alarm in declared().values()}
    assert sorted(named) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_runbook_says_all_that_somebody_needs_who_was_woken(page: str) -> None:
    text = (FOLDER / f"{page}.md").read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert all(part.strip() for part in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:])


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_runbook_can_be_run_one_after_the_other(world: World, page: str) -> None:
    for line in commands(page):
        python, program, name, *arguments = shlex.split(line)
        assert (python, program) == ("python", "manage.py")
        if name in WAITING:
            assert load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(arguments)
            continue
        ended = run(name, *arguments)
        assert ended.status == 0 or (name, *arguments[:1]) in JUDGES, f"{line}: {ended.err}"


def test_the_first_look_at_the_image_has_commands_that_there_are_and_settings_that_are_described() -> None:
    docs = FOLDER.parent
    look = (docs / "deploy.md").read_text().partition("## A first look")[2].partition("\n## ")[0]
    lines = [line.split(" < ")[0] for line in re.findall(r"inside manage\.py ([a-z][^&`\n]*)", look)]
    workers = re.findall(r"for worker in (.+);", look)[0].split()
    for name, *arguments in [*map(shlex.split, lines), *([worker] for worker in workers)]:
        assert load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(arguments)
    described = (docs / "operations.md").read_text()
    assert {"create_tables", "create_operator", "create_tenant"} <= {line.split()[0] for line in lines}
    assert [
        name for name in re.findall(r"^((?!AWS_)[A-Z_]+)=", look, re.MULTILINE) if f"`{name}" not in described
    ] == []
