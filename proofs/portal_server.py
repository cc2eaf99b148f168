"""Serve the portal under gunicorn, as it is deployed, for as long as a measurement lasts."""

from __future__ import annotations

import contextlib
import http.client
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from portal.engines.endpoint import LOOPBACK, free_port
from portal.engines.processes import Child
from portal.errors import PortalError

ROOT: Final = Path(__file__).resolve().parents[1]
START_SECONDS: Final = 240
STOP_SECONDS: Final = 60


class DoesNotAnswer(PortalError):
    """The portal did not start."""


class Server(Child):
    """A running portal. Its process id is also its process group."""

    port: int


def with_descendants(pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it. It needs Linux; a process that ends meanwhile may be missing."""
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from with_descendants(int(child))


@contextlib.contextmanager
def serving(log_path: Path, *, workers: int, environ: Mapping[str, str]) -> Iterator[Server]:
    """Give the portal with these settings. Raises DoesNotAnswer with the end of its log."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    command += ["--chdir", str(ROOT), "--bind", f"{LOOPBACK}:{port}", "--log-level", "warning"]
    command += ["--workers", str(workers)]
    env = {**os.environ, "WEB_CONCURRENCY": str(workers), **environ}
    with log_path.open("wb") as log:
        server = Server("web server", command, env=env, output=log)
    server.port = port
    try:
        _wait_for(server, log_path)
        yield server
    finally:
        server.stop(seconds=STOP_SECONDS)


def _wait_for(server: Server, log_path: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            connection.getresponse()
            return
        connection.close()
        time.sleep(0.1)
    raise DoesNotAnswer(f"The portal does not answer.\n{log_path.read_text(errors='replace')[-3000:]}")
