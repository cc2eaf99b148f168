"""The portal on a free port of loopback, in a thread of this process: another would take seconds to load all again.

tests/support/deployed.py has it under gunicorn, as it is served.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.test import override_settings

from tests.support.served import served

HOST = "localhost"  # browsers make passkeys for names alone
THREADS = 8


@dataclass(frozen=True)
class Portal:
    url: str
    log: Path

    def end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:]) if self.log.exists() else ""


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
