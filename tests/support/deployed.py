"""A version of the portal as it is deployed: a web server and workers in processes of their own, for tests that run two
versions, or stop processes or the engine."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Final

from portal.engines.endpoint import LOOPBACK, free_port
from tests.support.waiting import PATIENCE, wait_until

PEOPLE: Final = ("alice", "bob", "vera")  # of the desk Acme
PASSWORD: Final = "demo-pass-123"
SCOPES: Final = "tickets:read,tickets:write,comments:write,webhooks:manage"
GUNICORN: Final = ("gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi")
LEASE_SECONDS: Final = "2"  # after which another stream worker goes on for one that was killed

# Loads the code once; each process is forked from there, as gunicorn's own are, and is in all else as it is deployed.
LAUNCHER: Final = """
import gc, json, os, signal, sys
gc.disable()
import portal.wsgi, gunicorn.app.wsgiapp
from django.core import management
for name in ("run_stream", "run_dispatch", "run_delivery", "create_tables"):
    management.load_command_class(management.get_commands()[name], name)
gc.freeze()  # else each process would look through all of it, and so copy it
gc.enable()
print(portal.__path__[0], flush=True)
started = []
for line in sys.stdin:
    asked = json.loads(line)
    if isinstance(asked, int):
        print(os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1]), flush=True)
        started.remove(asked)
    elif child := os.fork():
        started.append(child)
    else:
        break
else:
    for pid in started:
        os.killpg(pid, signal.SIGKILL)
    sys.exit()
os.setsid()
print(os.getpid(), flush=True)
lines, log, first = asked
for number, name in enumerate((os.devnull, log + ".out", log + ".err")):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
exec(first)
for line in lines:
    if line[0] == "gunicorn":
        sys.argv = line
        gunicorn.app.wsgiapp.run()
    elif line[0] == "manage.py":
        management.execute_from_command_line(line)
    else:
        management.call_command(*line)
"""


@dataclass(frozen=True)
class Process:
    """One process of a version, which leads a group of its own. A web server has a port."""

    kind: str
    pid: int
    log: Path
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


class Version:
    """One version of the code, and the processes of it, which end with `close`.

    Processes may be told what they do first, as code: to change settings, or what a test wants to be slow.
    """

    def __init__(self, name: str, tree: Path, environ: dict[str, str], logs: Path) -> None:
        self.name, self.tree, self._logs, self._number = name, tree, logs, count()
        self._environ = {"NEW_PASSWORD": PASSWORD, **environ}
        self._processes: list[Process] = []

    @cached_property
    def _launcher(self) -> subprocess.Popen[str]:
        pipe, command = subprocess.PIPE, [sys.executable, "-c", LAUNCHER]
        launcher = subprocess.Popen(command, cwd=self.tree, env=self._environ, stdin=pipe, stdout=pipe, text=True)
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == f"{self.tree / 'portal'}\n", "the code is that of this version"
        return launcher

    def _ask(self, what: object) -> int:
        asked, told = self._launcher.stdin, self._launcher.stdout
        assert asked is not None
        assert told is not None
        asked.write(json.dumps(what) + "\n")
        asked.flush()
        return int(told.readline())

    def run(self, *lines: list[str], first: str = "") -> str:
        """Run management commands in one process, and return what they print."""
        process = self._start("commands", *lines, first=first)
        status, printed = self._ask(process.pid), process.log.with_suffix(".out").read_text()
        assert status == 0, f"{self.name}: {printed}{process.log.with_suffix('.err').read_text()}"
        return printed

    def start(self) -> int:
        """Start a web server and the workers. Return the port, which answers after a moment."""
        web = self.web()
        for name, *options in (
            ("stream", "--lease", LEASE_SECONDS),
            ("dispatch", "--lease", LEASE_SECONDS),
            ("delivery",),
        ):
            self._processes.append(self._start(name, [f"run_{name}", *options, "--metrics", "0"]))
        return web.port

    def web(self, *line: str, first: str = "") -> Process:
        """Start a web server, by this command line or as it is deployed, which answers after a moment."""
        port = free_port()
        line = line or (*GUNICORN, "--log-level=warning", "--workers=1")
        web = self._start("web", [*line, f"--bind={LOOPBACK}:{port}"], port=port, first=first)
        self._processes.append(web)
        return web

    @contextmanager
    def serving(self, *line: str, first: str = "") -> Iterator[Process]:
        """Have a web server that answers, meanwhile."""
        web = self.web(*line, first=first)
        try:
            wait_until(lambda: is_answering(web))  # and not only listens: its worker knows what signals mean
            yield web
        finally:
            if web in self._processes:
                self.stop(web)

    def _start(self, kind: str, *lines: list[str], port: int = 0, first: str = "") -> Process:
        log = self._logs / f"{self.name}-{kind}-{next(self._number)}"
        return Process(kind, self._ask([lines, str(log), first]), log, port)

    def stop(self, process: Process) -> int:
        """End a process as a deployment does; its exit status."""
        self._processes.remove(process)
        os.kill(process.pid, signal.SIGTERM)
        return self._ask(process.pid)

    def kill(self) -> None:
        """End all processes at once, in the midst of what they do."""
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
        while self._processes:
            self._ask(self._processes.pop().pid)

    def close(self) -> None:
        self._launcher.communicate()

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """End all processes as a deployment does, meanwhile. Fails where one ends with an error."""
        for process in self._processes:
            os.kill(process.pid, signal.SIGTERM)
        yield
        ended = {process.kind: self._ask(process.pid) for process in self._processes}
        self._processes.clear()
        assert ended == dict.fromkeys(ended, 0), self.name


def is_answering(web: Process) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, web.port, timeout=PATIENCE)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/healthz")
        return bool(connection.getresponse().status)
    return False


def begin(version: Version) -> str:
    """Make the tables and a desk with its people, and return a key of it."""
    lines = [["create_tables", "--wait"], ["create_queues", "--wait"], ["create_bucket"], ["create_tenant", "Acme"]]
    for name, role in zip(PEOPLE, ("owner", "agent", "agent"), strict=True):
        address = f"{name}@example.com"
        lines.append(["create_user", address, "--name", name.capitalize(), "--password-env", "NEW_PASSWORD"])
        lines.append(["add_member", address, "--tenant", "acme", "--role", role])
    lines.append(["create_api_key", "--tenant", "acme", "--name", "A system", "--scopes", SCOPES])
    return version.run(*lines).split()[-1]
