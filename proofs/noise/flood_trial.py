"""Flood the door of a portal, and measure what the other tenants notice.

The same twenty tenants as behind the queues, on a real gunicorn of two processes with an engine of its own. Each quiet
tenant has one client, which reads pages and writes a ticket now and then, and thinks between two requests. In the noisy
phase the noisy tenant has fifteen that do nothing but read pages, or nothing but write tickets. The allowed part of a
flood is counted in units, from the time its burst must be spent until the phase ends.

Lists grow and machines drift: half of the quiet phase is before the noisy one, and half behind it. The noisy phase does
not end before the flood was refused.
"""

from __future__ import annotations

import http.client
import os
import re
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from portal.dynamo import provisioning
from portal.engines.endpoint import LOOPBACK, free_port
from portal.engines.processes import Child
from portal.load.tenant_limiter import CHANGE_UNITS, READ_UNITS
from proofs.isolation.walk import visitors
from proofs.noise.closed_loop import NOISY, TENANTS, ClientRequest, ClosedLoop, Plan, TrialFailed, percentile, ratio
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.sign_in import accounts
from tenants.tenancy import context, request_identity
from tickets.desk import creating

# By the name of the flood, the units a second that each tenant may ask for: a few times a quiet one's share.
FLOODS: Final = {"pages": 4, "writes": 16}
THINK_SECONDS: Final = 0.7
WRITES_EVERY: Final = 5  # requests of a quiet client, the last of which writes
WARM_SECONDS: Final = 8.0  # before the quiet phase, in which the processes get to know each other
SETTLE_SECONDS: Final = 10.0  # of the noisy phase, in which the burst is spent
SETTLING_REQUESTS: Final = 2  # of each client at the beginning of a phase, whose times do not count
ENOUGH_SECONDS: Final = 30.0  # the shortest phase of which times and the budget are judged
BRIEF_RATE: Final = 1  # units a second of the tenant that floods in a shorter phase: its burst is spent by few requests
PROCESSES: Final = 2
OK: Final = ("200", "302")
REFUSED: Final = "429"
_ANSWER_SECONDS: Final = 120.0
_TICKETS: Final = 3  # of each tenant before it begins


@dataclass
class _Desk:
    """A tenant whose owner is signed in: the cookies, and what the form of a new ticket carries."""

    slug: str
    cookies: str
    mark: str
    token: str = ""


def rate_of(flood: str, seconds: float) -> int:
    """Return the units a second of the tenant that floods, in phases of so many seconds."""
    return FLOODS[flood] if seconds >= ENOUGH_SECONDS else BRIEF_RATE


def _desks(*, noisy_rate: int) -> dict[int, _Desk]:
    """Make the tenants, each with an owner who is signed in and some tickets."""
    provisioning.create_all()
    desks = {}
    for number in TENANTS:
        owner = accounts.seed(email=f"owner{number}@example.com", name=f"Owner {number}", password_hash="!")  # noqa: S106  # none
        made = tenant_lifecycle.create(name=f"Desk {number}", slug=f"desk-{number}", owner=owner, by=SYSTEM)
        if number == NOISY:
            limits = tenant_lifecycle.TenantLimits(made.plan, request_rate=noisy_rate)
            tenant_lifecycle.change_limits(made.tenant_id, limits, by=SYSTEM)
        tenant = context.for_system(made)
        for ticket in range(_TICKETS):
            creating.create(tenant, title=f"Ticket {ticket}", description="It broke.")
        cookie = request_identity.write_cookie(visitors.mint(owner, made.tenant_id))
        mark = context.page_mark_of(owner.id, made.tenant_id)
        desks[number] = _Desk(made.slug, f"pooldesk_session={cookie}", mark)
    return desks


@contextmanager
def _portal(folder: Path, *, rate: int) -> Iterator[int]:
    """Serve the portal as it is deployed, and return its port."""
    port, log_path = free_port(), folder / "portal.log"
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    command += ["--chdir", str(settings.BASE_DIR), "--bind", f"{LOOPBACK}:{port}", "--log-level", "warning"]
    command += ["--workers", str(PROCESSES)]
    ours = {"TENANT_RATES": f"standard={rate}", "WEB_CONCURRENCY": str(PROCESSES), "RATES_SHARED": "1"}
    with log_path.open("wb") as log:
        child = Child("web server", command, env={**os.environ, **ours, "LOG_LEVEL": "ERROR"}, output=log)
    try:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while not _answers(port):
            if child.poll() is not None or time.monotonic() > deadline:
                raise TrialFailed(f"The portal does not answer.\n{log_path.read_text(errors='replace')[-1500:]}")
            time.sleep(0.1)
        yield port
    finally:
        child.stop(seconds=10)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


class _Browser:
    """One browser of a desk's owner, over one connection that is kept."""

    def __init__(self, port: int, desk: _Desk) -> None:
        self._desk = desk
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_ANSWER_SECONDS)

    def prepare(self) -> None:
        """Read the form of a new ticket, for its token and the cookie that belongs to it."""
        answer, text = self._send("GET", "new/", "")
        cookie = re.search(r"pooldesk_csrf=\w+", ", ".join(answer.headers.get_all("Set-Cookie") or []))
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', text)
        if cookie is None or token is None:
            raise TrialFailed(f"The form of a new ticket did not come: {answer.status}.")
        self._desk.cookies += f"; {cookie[0]}"
        self._desk.token = token[1]

    def ask(self, *, write: bool) -> str:
        """Read the queue or open a ticket; the status, "0" where no answer came."""
        form = {
            "csrfmiddlewaretoken": self._desk.token,
            "_page": self._desk.mark,
            "request_id": uuid.uuid4().hex,
            "title": "One more",
            "description": "It broke.",
            "priority": "normal",
        }
        try:
            answer, _ = self._send("POST", "new/", urllib.parse.urlencode(form)) if write else self._send("GET", "", "")
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return "0"
        return str(answer.status)

    def _send(self, method: str, page: str, body: str) -> tuple[http.client.HTTPResponse, str]:
        headers = {"Cookie": self._desk.cookies}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, f"/{self._desk.slug}/tickets/{page}", body or None, headers)
        answer = self._connection.getresponse()
        return answer, answer.read().decode()


def carry_out(plan: Plan) -> dict[str, Any]:
    """Carry out the flood of this name on the engine that the settings name. Returns its figures."""
    desks, seconds = _desks(noisy_rate=rate_of(plan.name, plan.seconds)), plan.seconds
    with tempfile.TemporaryDirectory(prefix="flood-") as folder, _portal(Path(folder), rate=FLOODS[plan.name]) as port:
        for desk in desks.values():
            _Browser(port, desk).prepare()
        mine = threading.local()

        def ask(phase: str, tenant: int, client: int, number: int) -> str:
            browser = mine.__dict__.setdefault("browser", _Browser(port, desks[tenant]))
            floods = (tenant, phase) == (NOISY, "noisy")
            write = plan.name == "writes" if floods else number % WRITES_EVERY == WRITES_EVERY - 1
            return str(browser.ask(write=write))

        def was_refused(phase: str) -> bool:
            return phase != "noisy" or any(one.tenant == NOISY and one.how == REFUSED for one in loop.requests)

        phases = [
            ("warm", min(WARM_SECONDS, seconds)), ("quiet", seconds / 2), ("noisy", seconds), ("quiet", seconds / 2),
        ]  # fmt: skip
        loop = ClosedLoop(
            phases, ask, think=lambda chance: chance.uniform(0.5, 1.5) * THINK_SECONDS, is_enough=was_refused
        )
        if silent := loop.run():
            raise TrialFailed(f"The machine is too slow: the {silent[0]} phase came to nothing.")
    return figures(plan, [one for one in loop.requests if one.phase != "warm"], noisy_began=loop.began["noisy"])


def figures(plan: Plan, requests: Sequence[ClientRequest], *, noisy_began: float) -> dict[str, Any]:
    """Return what was seen of one flood, as JSON has it."""
    rate, unit = rate_of(plan.name, plan.seconds), CHANGE_UNITS if plan.name == "writes" else READ_UNITS
    quiet = [one for one in requests if one.tenant != NOISY]
    settled = [one for one in quiet if one.number >= SETTLING_REQUESTS]
    p99 = {
        phase: round(percentile((one.seconds * 1000 for one in settled if one.phase == phase), 0.99), 1)
        for phase in ("quiet", "noisy")
    }
    theirs = [one for one in requests if (one.tenant, one.phase) == (NOISY, "noisy")]
    counted = [one for one in theirs if SETTLE_SECONDS <= one.at - noisy_began < plan.seconds]
    through = sum(one.how in OK for one in counted) * unit
    budget = rate * max(0.0, plan.seconds - SETTLE_SECONDS)
    return {
        "name": plan.name,
        "rate": rate,
        "p99_ms": p99,
        "p99_ratio": ratio(p99["noisy"], p99["quiet"]),
        "quiet_requests": len(quiet),
        "quiet_refused": sum(one.how == REFUSED for one in quiet),
        "failed": sum(one.how not in (*OK, REFUSED) for one in requests),
        "flood_requests": len(theirs),
        "flood_refused": sum(one.how == REFUSED for one in theirs),
        "budget_units": round(budget),
        "through_units": through,
        "through_share": ratio(through, budget),
    }
