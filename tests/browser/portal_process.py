"""The portal as it is served: gunicorn in a process of its own, DEBUG off, on a free port of loopback."""

from __future__ import annotations

import email
import email.policy
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

from django.conf import settings

from portal.engines.processes import LOOPBACK, Child, free_port

HOST = "localhost"  # browsers make passkeys for names alone
START_SECONDS = 120
MAIL_SECONDS = 120
STOP_SECONDS = 60
THREADS = 8


@dataclass(frozen=True)
class Portal:
    url: str
    log: Path
    mail: Path

    def letter_to(self, address: str) -> EmailMessage:
        """The latest mail to an address, waited for: it is sent beside the request."""
        deadline = time.monotonic() + MAIL_SECONDS
        while time.monotonic() < deadline:
            for file in sorted(self.mail.glob("*.log"), reverse=True):
                head, line, _ = file.read_bytes().partition(b"\n" + b"-" * 79)  # written by Django after each mail
                letter = email.message_from_bytes(head, policy=email.policy.default)
                if line and address in str(letter["To"]):
                    return letter
            time.sleep(0.05)
        raise AssertionError(f"There is no mail to {address}.\n{self.end_of_log()}")

    def end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


@contextmanager
def serve(log: Path, **environ: str) -> Iterator[Portal]:
    """A portal on the engine of the tests, or on the one that `environ` names."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    command += ["--chdir", str(settings.BASE_DIR), "--bind", f"{LOOPBACK}:{port}", "--workers", "1"]
    command += ["--log-level", "warning"]
    mail = log.with_suffix(".mail")
    ours = {"DJANGO_SETTINGS_MODULE": "tests.settings", "DEBUG": "false", "WEB_THREADS": str(THREADS)}
    ours["PORTAL_BASE_URL"] = f"http://{HOST}:{port}"
    ours["TEST_MAIL_FOLDER"] = str(mail)
    with log.open("wb") as output:
        child = Child("web server", command, env={**os.environ, **ours, **environ}, output=output)
    portal = Portal(f"http://{HOST}:{port}", log, mail)
    try:
        _wait_until_it_answers(portal, child)
        yield portal
    finally:
        child.stop(seconds=STOP_SECONDS)


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
