"""`manage.py demo` with the portal itself: what people do in the browser is in the aggregates a moment later."""

from __future__ import annotations

import http.cookiejar
import os
import re
import signal
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from portal.dynamo import client
from portal.dynamo.store import Store
from portal.engines.engine_process import running_engine, start_engine
from tenants.tenancy import tenant_directory
from tests.engines.test_demo import Demo, children, linux
from tests.support.waiting import wait_until
from tickets.verification import verify
from tickets.verification.verify import Verdict

PORTAL = {
    "manage.py": (settings.BASE_DIR / "manage.py").read_text(),
    "demo_settings.py": """
from pathlib import Path
from portal.settings import *
BASE_DIR = Path(__file__).parent
INSTALLED_APPS = ["sample", *INSTALLED_APPS]
PASSWORD_HASHERS = ["tests.support.hashers.QuickArgon2"]
""",
    # What sends and delivers has no part in this.
    "sample/management/commands/demo.py": """
from portal.management import demo_processes
from portal.management.commands.demo import Command
workers = demo_processes._lines
demo_processes._lines = lambda: [line for line in workers() if line[1][0] == "run_stream"]
""",
    # A small demonstration is quicker, and enough here.
    "sample/management/commands/seed.py": """
from tickets.management.commands import seed
class Command(seed.Command):
    def work(self, options):
        super().work(options | {"tenants": 2, "tickets": 5, "users": 1})
""",
}


class Browser:
    """A browser that sends what the page's form holds."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def send(self, path: str, **fields: str) -> str:
        """Open the page, fill in its form and send it; the page that follows."""
        page = self._read(path)
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
        return self._read(path, urllib.parse.urlencode(hidden | fields).encode())

    def _read(self, path: str, data: bytes | None = None) -> str:
        request = urllib.request.Request(self._base + path, data, {"Referer": self._base + path})
        with self._opener.open(request, timeout=240) as answer:
            return str(answer.read().decode())


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path, files=PORTAL)
    demo.environ["DEBUG"] = "1"
    yield demo
    if demo.running and demo.running.poll() is None:
        demo.end(signal.SIGTERM)


def verdict(address: str | None) -> Verdict:
    """What a recount of Acme's tickets says about the aggregates on this engine."""
    with override_settings(DYNAMODB_ENDPOINT_URL=address):
        client.reset()
        found = verify.verify(Store("tenant", tenant_directory.find("acme").tenant_id), settle=120)
    client.reset()
    return found


def open_ticket(demo: Demo) -> None:
    browser = Browser(demo.port)
    browser.send("/login/", email="bob@example.com", password="demo-pass-123")
    page = browser.send("/acme/tickets/new/", title="The lift is stuck", description="", priority="normal", tags="")
    assert "The lift is stuck" in page


def is_asked_to_end(pid: int) -> bool:
    """Whether SIGTERM waits for a process that is stopped."""
    (pending,) = re.findall(r"^ShdPnd:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(pending, 16) >> (signal.SIGTERM - 1) & 1)


@linux
def test_a_ticket_that_is_opened_is_counted_also_when_the_demo_is_stopped_at_once(demo: Demo) -> None:
    assert "Ctrl-C" in demo.start()
    data = demo.directory / "var" / "ministack"
    open_ticket(demo)
    found = verdict(running_engine(data))
    assert (found.state, found.tickets) == ("ok", 6)
    log = demo.directory / "var" / "log" / "verify_aggregates.log"
    wait_until(lambda: "nothing is wrong" in log.read_text())
    rebuilt = demo.directory / "var" / "log" / "rebuild_search.log"
    # It began when the portal answered, which may be before the ticket was opened.
    wait_until(lambda: re.search("acme: [56] tickets read into", rebuilt.read_text()))

    assert demo.running
    (worker,) = (
        pid for pid in children(demo.running.pid) if "\0run_stream\0" in Path(f"/proc/{pid}/cmdline").read_text()
    )
    os.kill(worker, signal.SIGSTOP)
    open_ticket(demo)
    os.killpg(demo.running.pid, signal.SIGINT)
    wait_until(lambda: is_asked_to_end(worker))
    os.kill(worker, signal.SIGCONT)  # and only now it can see the ticket
    rest, _ = demo.running.communicate(timeout=120)
    assert demo.running.returncode == 0
    assert rest.strip().endswith("Stopped.")

    with start_engine(state_dir=data) as engine:
        found = verdict(engine.endpoint_url)
    assert (found.state, found.tickets, found.differences) == ("ok", 7, [])
