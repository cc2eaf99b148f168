"""The manual's chapter "On Amazon DynamoDB", followed to the letter: settings, commands in their order, a sign-in.

An embedded engine stands for Amazon DynamoDB and STS; all else is as printed, with DEBUG off.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import secrets
import shlex
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from portal.engines.endpoint import free_port
from portal.engines.processes import Child
from tests.support.waiting import wait_until

CHAPTER = (
    (Path(settings.BASE_DIR) / "docs" / "operations.md").read_text().split("## On Amazon DynamoDB")[1].split("\n##")[0]
)
VARIABLES, COMMANDS = (
    [line for line in block.splitlines() if line] for block in re.findall(r"```\n(.*?)```", CHAPTER, re.DOTALL)
)
STEPS, WEB, WORKERS = COMMANDS[:-5], COMMANDS[-5], COMMANDS[-4:]
PASSWORD = "a long pass phrase of my own"


@dataclass
class Machine:
    """Where somebody follows the chapter. `port` is what the proxy in front would know."""

    environ: dict[str, str]
    port: int
    log: Path
    said: dict[str, str] = field(default_factory=dict)  # by the line of the chapter
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

    def argv(self, line: str) -> list[str]:
        program, *arguments = shlex.split(line, comments=True)
        return [sys.executable, *({"python": [], "gunicorn": ["-m", "gunicorn"]}[program]), *arguments]

    def run(self, line: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(line),
            cwd=settings.BASE_DIR,
            env=self.environ | environ,
            input=f"{PASSWORD}\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def request(self, method: str, path: str, **fields: str) -> tuple[int, http.client.HTTPMessage, str]:
        """Send what the proxy would send for a browser, and keep the cookies."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {
            "Host": "desk.example.com",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "203.0.113.7",
            "Origin": "https://desk.example.com",
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in self.cookies.items()),
        }
        connection.request(method, path, urllib.parse.urlencode(fields), headers)
        answer = connection.getresponse()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            self.cookies.load(cookie)
        return answer.status, answer.headers, answer.read().decode()

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a page, behind any redirects."""
        while True:
            status, headers, body = self.request("GET", path)
            if "Location" not in headers:
                return status, body
            path = headers["Location"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("production")
    port = free_port()
    environ = {"PATH": os.environ["PATH"], "STATIC_ROOT": str(folder / "static"), "DYNAMODB_TABLE_PREFIX": "Readme"}
    environ |= dict(line.split("=", 1) for line in VARIABLES)
    environ |= {"SECRET_KEY": secrets.token_urlsafe(50)}
    environ |= {"GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}", "WEB_CONCURRENCY": "1"}
    environ |= {"AWS_ACCESS_KEY_ID": "pooldesk", "AWS_SECRET_ACCESS_KEY": "pooldesk"}
    # The tables are in the account of these credentials, as the role is.
    environ["TENANT_ROLE_ARN"] = environ["TENANT_ROLE_ARN"].replace("123456789012", "000000000000")
    machine = Machine(environ, port, folder / "web.log")
    engine = {"DYNAMODB_ENDPOINT_URL": settings.DYNAMODB_ENDPOINT_URL}
    for line in STEPS:
        # The one check that the engine on this machine would not pass.
        done = machine.run(line, **({} if "check --deploy" in line else engine))
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        machine.said[line] = done.stdout + done.stderr
    with machine.log.open("wb") as output:
        child = Child("web server", machine.argv(WEB), env=machine.environ | engine, output=output)
        try:
            wait_until(lambda: is_up(machine) or child.poll() is not None)
            assert child.poll() is None, machine.log.read_text()
            yield machine
        finally:
            child.stop(seconds=60)


def is_up(machine: Machine) -> bool:
    with contextlib.suppress(OSError):
        return machine.get("/healthz")[0] == 200
    return False


def test_the_chapter_names_a_command_for_each_step() -> None:
    names = [shlex.split(line)[2 if line.startswith("python") else 0] for line in COMMANDS]
    assert names == [
        *("collectstatic", "check", "create_tables", "create_queues", "create_user", "create_tenant"),
        *("gunicorn", "run_stream", "run_dispatch", "run_delivery", "run_lifecycle"),
    ]


def test_a_safe_production_environment_has_no_issue(machine: Machine) -> None:
    (said,) = (said for line, said in machine.said.items() if "check --deploy" in line)
    assert said == "System check identified no issues (2 silenced).\n"


@pytest.mark.parametrize("line", WORKERS)
def test_a_worker_is_started_as_its_command_wants(line: str) -> None:
    """The workers themselves are started by those who look at what they do."""
    _, _, name, *options = shlex.split(line, comments=True)
    command = load_command_class(get_commands()[name], name)
    assert command.create_parser("manage.py", name).parse_args(options)


def test_pages_have_their_style_sheets(machine: Machine) -> None:
    status, page = machine.get("/login/")
    assert status == 200
    sheets = re.findall(r'href="(/static/[^"]+\.css)"', page)
    assert sheets
    assert {machine.get(sheet)[0] for sheet in sheets} == {200}


def test_an_error_page_is_a_page(machine: Machine) -> None:
    status, _, page = machine.request("PUT", "/login/")
    assert status == 405
    assert "/static/" in page


def test_plain_http_is_sent_to_https(machine: Machine) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", machine.port, timeout=120)
    connection.request("GET", "/login/", headers={"Host": "desk.example.com"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (301, "https://desk.example.com/login/")


def test_the_owner_signs_in_and_sees_the_queue(machine: Machine) -> None:
    _, page = machine.get("/login/")
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    status, headers, _ = machine.request("POST", "/login/", email="you@example.com", password=PASSWORD, **hidden)
    assert status == 302, machine.log.read_text()
    status, page = machine.get("/tickets/")
    assert status == 200, machine.log.read_text()
    assert "Acme" in page
    assert "secure" in headers["Set-Cookie"].lower()
