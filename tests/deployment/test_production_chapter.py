"""The manual's chapter "On Amazon DynamoDB", followed to the letter: settings, commands in their order, a sign-in.

An embedded engine stands for Amazon DynamoDB and STS; all else is as printed, with DEBUG off.
"""

from __future__ import annotations

import http.client
import os
import re
import secrets
import shlex
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from tests.support.deployed import Version

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
    """Where somebody has followed the chapter. The proxy in front would know the port."""

    port: int
    log: Path
    said: dict[str, str] = field(default_factory=dict)  # by the line of the chapter
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

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
    environ = {"PATH": os.environ["PATH"], "STATIC_ROOT": str(folder / "static"), "DYNAMODB_TABLE_PREFIX": "Readme"}
    environ |= dict(line.split("=", 1) for line in VARIABLES)
    environ |= {"SECRET_KEY": secrets.token_urlsafe(50), "WEB_CONCURRENCY": "1"}
    environ |= {"AWS_ACCESS_KEY_ID": "pooldesk", "AWS_SECRET_ACCESS_KEY": "pooldesk"}
    # The tables are in the account of these credentials, as the role is.
    environ["TENANT_ROLE_ARN"] = environ["TENANT_ROLE_ARN"].replace("123456789012", "000000000000")
    # What the engine on this machine would not pass, and what has to be there when the code is loaded.
    said = {line: alone(line, environ) for line in STEPS[:2]}
    environ["DYNAMODB_ENDPOINT_URL"] = settings.DYNAMODB_ENDPOINT_URL
    types = f"import io; sys.stdin = io.StringIO({PASSWORD!r})"
    with closing(Version("production", settings.BASE_DIR, environ, folder)) as version:
        said |= {line: version.run(words(line)[1:], first=types) for line in STEPS[2:]}
        with version.serving(*words(WEB)) as web:
            yield Machine(web.port, web.log.with_suffix(".err"), said)


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def alone(line: str, environ: dict[str, str]) -> str:
    """Run a command in a process of its own; what it says."""
    command = [sys.executable, *words(line)[1:]]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_chapter_names_a_command_for_each_step() -> None:
    names = [words(line)[2 if line.startswith("python") else 0] for line in COMMANDS]
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
    _, _, name, *options = words(line)
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
