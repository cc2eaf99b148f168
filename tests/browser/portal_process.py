"""The portal on a free port of loopback, DEBUG off: under gunicorn as it is served, or in a thread of this process.

A process of its own takes seconds to load what the tests have loaded: most pages are looked at in the thread.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.test import override_settings

from portal.engines.endpoint import LOOPBACK, free_port
from portal.engines.processes import Child
from tests.support.served import served

HOST = "localhost"  # browsers make passkeys for names alone
START_SECONDS = 120
STOP_SECONDS = 60
THREADS = 8


@dataclass(frozen=True)
class Portal:
    url: str
    log: Path
    child: Child | None = None

    def end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:]) if self.log.exists() else ""


@contextmanager
def serve(log: Path, **environ: str) -> Iterator[Portal]:
    """A portal on the engine of the tests, or on the one that `environ` names."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    command += ["--chdir", str(settings.BASE_DIR), "--bind", f"{LOOPBACK}:{port}", "--workers", "1"]
    command += ["--log-level", "warning"]
    ours = {"DJANGO_SETTINGS_MODULE": "tests.settings", "DEBUG": "false", "WEB_THREADS": str(THREADS)}
    ours["PORTAL_BASE_URL"] = f"http://{HOST}:{port}"
    with log.open("wb") as output:
        child = Child("web server", command, env={**os.environ, **ours, **environ}, output=output)
    portal = Portal(f"http://{HOST}:{port}", log, child)
    try:
        _wait_until_it_answers(portal, child)
        yield portal
    finally:
        child.stop(seconds=STOP_SECONDS)


@contextmanager
def serve_here(log: Path) -> Iterator[Portal]:
    """A portal in a thread of this process, by whatever settings the test has."""
    handler = logging.FileHandler(log, delay=True)
    handler.setFormatter(logging.Formatter(settings.LOGGING["formatters"]["line"]["format"], style="{"))
    logging.getLogger().addHandler(handler)
    try:
        with served(HOST, threads=THREADS) as url, override_settings(PORTAL_BASE_URL=url):
            yield Portal(url, log)
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _wait_until_it_answers(portal: Portal, child: Child) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"{portal.url}/healthz", timeout=60).close()
            return
        except OSError as error:
            if child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The web server does not answer: {error}\n{portal.end_of_log()}") from error
        time.sleep(0.05)
