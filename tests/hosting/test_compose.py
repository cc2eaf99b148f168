"""compose.yaml: read as compose reads it, and its processes started with its settings, without containers."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class

from portal.engines import dynamodb_local
from portal.engines.engine_process import start_engine
from tests.support.deployed import Version

ROOT = Path(settings.BASE_DIR)
GIVEN = {"SECRET_KEY": "0123456789abcdefghij" * 3, "CERTIFICATE_KEY": "ab" * 32}
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)(?:(:?[-?])([^}]*))?\}")
OURS = ("setup", "web", "stream", "dispatch", "delivery")


def interpolated(text: str, given: dict[str, str]) -> str:
    """The text as compose fills it in; a KeyError for what has to be given and is not."""

    def value(found: re.Match[str]) -> str:
        name, how, otherwise = found.groups()
        if name in given and (given[name] or how == "-"):
            return given[name]
        if how == ":?":
            raise KeyError(name)
        return otherwise or ""

    return VARIABLE.sub(value, text)


def read(**given: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(interpolated((ROOT / "compose.yaml").read_text(), GIVEN | given))
    return found


def command_lines() -> dict[str, list[str]]:
    """Each command of manage.py in the file, as words from the command's name on."""
    lines: dict[str, list[str]] = {}
    for service in read()["services"].values():
        command = service.get("command") or []
        for line in command[2].split("&&") if command[:2] == ["sh", "-c"] else [shlex.join(command)]:
            if words := shlex.split(line)[2:] if "manage.py" in line else []:
                lines[words[0]] = words[1:]
    return lines


def test_nothing_starts_without_the_secrets() -> None:
    for name in GIVEN:
        with pytest.raises(KeyError, match=name):
            interpolated((ROOT / "compose.yaml").read_text(), {k: v for k, v in GIVEN.items() if k != name})


def test_its_workers_are_those_of_the_manual_without_a_role_of_tenants_and_each_command_is_one() -> None:
    lines = command_lines()
    assert lines.keys() == {
        *("create_tables", "create_queues", "create_bucket"),
        *("run_stream", "run_dispatch", "run_delivery"),
    }
    for name, options in lines.items():
        assert load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(options)


def test_every_variable_is_a_setting_of_the_manual() -> None:
    manual = (ROOT / "docs" / "operations.md").read_text()
    environment = read()["x-pooldesk"]["environment"].keys()
    assert [
        name
        for name in environment
        if f"`{name}`" not in manual and name not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    ] == []


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_is_read_only_without_rights_and_has_time_to_stop(name: str) -> None:
    service = read()["services"][name]
    assert (service["image"], service["read_only"], service["tmpfs"]) == ("pooldesk", True, ["/tmp"])  # noqa: S108
    assert service["cap_drop"] == ["ALL"]
    assert service["stop_grace_period"] == "40s"


def test_what_is_named_is_there_and_the_setup_comes_before_what_needs_it() -> None:
    whole = read()
    services = whole["services"]
    assert {name for name, one in services.items() if one["image"] == "pooldesk"} == set(OURS)
    for name, one in services.items():
        assert set(one.get("depends_on", ())) <= services.keys()
        assert {volume.split(":")[0] for volume in one.get("volumes", ())} <= whole["volumes"].keys()
        if name in OURS and name != "setup":
            assert one["depends_on"] == {"setup": {"condition": "service_completed_successfully"}}


def test_engines_keep_what_they_have_and_are_the_versions_that_tests_run_on() -> None:
    services = read()["services"]
    assert services["dynamodb"]["image"].endswith(f":{dynamodb_local.VERSION}")
    pinned = re.search(r"^ministack==(.+)$", (ROOT / "requirements-local.txt").read_text(), re.MULTILINE)
    assert pinned
    assert services["objects"]["image"].endswith(f":{pinned[1]}")
    assert all(services[name]["volumes"] for name in ("dynamodb", "objects"))
    assert services["objects"]["environment"]["PERSIST_STATE"] == "1"


def test_other_machines_reach_nothing_unless_the_operator_says_so() -> None:
    for given in ({}, {"PUBLISH": "8000"}):
        ports = {name: one["ports"] for name, one in read(**given)["services"].items() if "ports" in one}
        assert all(port.startswith("127.0.0.1:") for port in ports["objects"])
        assert ports["web"] == [f"{given.get('PUBLISH', '127.0.0.1:8000')}:8000"]
        assert ports.keys() == {"objects", "web"}


def test_with_empty_addresses_of_engines_the_processes_use_aws() -> None:
    empty = dict.fromkeys(("DYNAMODB_ENDPOINT_URL", "SQS_ENDPOINT_URL", "S3_ENDPOINT_URL"), "")
    assert not any(read(**empty)["x-pooldesk"]["environment"][name] for name in empty)


# --- started ---


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the web process, started after the setup, with an embedded engine in the place of both."""
    folder = tmp_path_factory.mktemp("compose")
    with start_engine() as engine:
        reached = dict.fromkeys(("DYNAMODB_ENDPOINT_URL", "SQS_ENDPOINT_URL", "S3_ENDPOINT_URL"), engine.endpoint_url)
        environ = {name: str(value) for name, value in read(**reached)["x-pooldesk"]["environment"].items()}
        environ |= {"PATH": os.environ["PATH"], "STATIC_ROOT": str(folder / "static"), "WEB_CONCURRENCY": "1"}
        # As the image has it, before the code is loaded.
        run = [sys.executable, "manage.py", "collectstatic", "--noinput"]
        subprocess.run(run, cwd=ROOT, env=environ, check=True, capture_output=True, timeout=300)
        with closing(Version("compose", ROOT, environ, folder)) as version:
            version.run(*([name, *line] for name, line in command_lines().items() if not name.startswith("run_")))
            (command,) = re.findall(r"^CMD (\[.+\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
            words = json.loads(command)[2:]
            del words[(bind := words.index("--bind")) : bind + 2]  # it is free to serve at another port
            with version.serving(*words) as web:
                yield web.url


def test_the_web_process_is_ready_and_shows_the_page_to_sign_in_without_tls(web: str) -> None:
    assert urllib.request.urlopen(f"{web}/readyz", timeout=60).status == 200
    request = urllib.request.Request(f"{web}/login/", headers={"Host": "localhost:8000"})
    page = urllib.request.urlopen(request, timeout=60)
    assert (page.status, page.url) == (200, f"{web}/login/")
    assert "/static/" in page.read().decode()
