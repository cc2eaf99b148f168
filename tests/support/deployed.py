"""A version of the portal as it is deployed: a web server and workers in processes of their own, on an engine that the
test has started, for tests that run two of them or stop the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from portal.engines.endpoint import LOOPBACK, free_port
from portal.engines.processes import Child
from tests.support.waiting import PATIENCE

PEOPLE: Final = ("alice", "bob", "vera")  # of the desk Acme
PASSWORD: Final = "demo-pass-123"
SCOPES: Final = "tickets:read,tickets:write,comments:write,webhooks:manage"
LEASE_SECONDS: Final = "2"  # after which another stream worker goes on for one that was killed

SCRIPT: Final = """
import json, sys, django
django.setup()
from django.core.management import call_command
import portal
print(portal.__path__[0], file=sys.stderr)
for line in json.loads(sys.argv[1]):
    call_command(*line)
"""


class Version:
    """One version of the code, and the processes of it."""

    def __init__(self, name: str, tree: Path, environ: dict[str, str], logs: Path) -> None:
        self.name, self.tree, self._logs, self._number = name, tree, logs, count()
        self._environ = {
            "NEW_PASSWORD": PASSWORD,
            **environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DEBUG": "false",
            "SECRET_KEY": "k" * 60,
        }
        self._children: list[Child] = []

    def run(self, *lines: list[str]) -> str:
        """Run management commands in one process, and return what they print."""
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(lines)], cwd=self.tree, env=self._environ, timeout=PATIENCE,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: {done.stdout}{done.stderr}"
        assert done.stderr.startswith(f"{self.tree / 'portal'}\n"), "the code is that of this version"
        return done.stdout

    def start(self) -> int:
        """Start a web server and the workers. Return the port, which answers after some seconds."""
        port = free_port()
        web = ["-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi", "--log-level=warning"]
        self._spawn("web", *web, "--bind", f"{LOOPBACK}:{port}", "--workers", "1")
        self._spawn("stream", "manage.py", "run_stream", "--lease", LEASE_SECONDS, "--metrics", "0")
        self._spawn("dispatch", "manage.py", "run_dispatch", "--lease", LEASE_SECONDS, "--metrics", "0")
        self._spawn("delivery", "manage.py", "run_delivery", "--metrics", "0")
        return port

    def _spawn(self, kind: str, *arguments: str) -> None:
        with (self._logs / f"{self.name}-{kind}-{next(self._number)}.log").open("wb") as log:
            command = ["env", "-C", str(self.tree), sys.executable, *arguments]
            self._children.append(Child(kind, command, env=self._environ, output=log))

    def kill(self) -> None:
        """End all processes at once, in the midst of what they do."""
        for child in self._children:
            child.kill()
        self._children.clear()

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """End all processes as a deployment does, meanwhile. Fails where one ends with an error, or not by itself."""
        with ThreadPoolExecutor() as pool:
            ends = {child: pool.submit(child.stop, seconds=PATIENCE) for child in self._children}
            yield
        ended = {child.name: (stopped.result(), child.poll()) for child, stopped in ends.items()}
        assert ended == dict.fromkeys(ended, (True, 0)), self.name
        self._children.clear()


def begin(version: Version) -> str:
    """Make the tables and a desk with its people, and return a key of it."""
    lines = [["create_tables", "--wait"], ["create_queues", "--wait"], ["create_bucket"], ["create_tenant", "Acme"]]
    for name, role in zip(PEOPLE, ("owner", "agent", "agent"), strict=True):
        address = f"{name}@example.com"
        lines.append(["create_user", address, "--name", name.capitalize(), "--password-env", "NEW_PASSWORD"])
        lines.append(["add_member", address, "--tenant", "acme", "--role", role])
    lines.append(["create_api_key", "--tenant", "acme", "--name", "A system", "--scopes", SCOPES])
    return version.run(*lines).split()[-1]
