"""Be the process of one flood: an engine, a portal of two processes, and all clients; write what was seen as JSON.

python -m proofs.noise.flood_trial pages 40 FILE
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import re
import sys
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from portal.engines.endpoint import point_at
from portal.engines.engine_process import start_engine
from portal.engines.ports import LOOPBACK, free_port
from portal.engines.processes import Child
from tenants.sign_in import accounts
from tenants.tenancy import context, request_identity

_START_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.05
_TICKETS: Final = 3  # of each tenant before it begins


def main(name: str, seconds: float, path: Path) -> None:
    """Carry out the flood of this name, with phases of so many seconds."""
    with start_engine(report=lambda _: None) as engine:
        point_at(engine.endpoint_url, os.environ)
        # SECRET_KEY is development's, for this process and the portal.
        os.environ.update(DJANGO_SETTINGS_MODULE="portal.settings", DEBUG="1", LOG_LEVEL="ERROR")
        import django

        django.setup()
        from proofs.noise import floods

        flood = floods.flood_of(name, seconds=seconds)
        desks = _desks(noisy_rate=flood.rate)
        with _portal(path.with_suffix(".log"), rate=floods.FLOODS[name].rate) as port:
            trial = _Trial(port, desks, flood)
            trial.run(seconds)
        found = floods.figures(flood, trial.requests, seconds=seconds)
    path.write_text(json.dumps(found), encoding="utf-8")


@dataclass
class _Desk:
    slug: str
    cookie: str
    mark: str
    csrf: str = ""  # the cookie, and the token that forms carry
    token: str = ""


def _desks(*, noisy_rate: int) -> dict[int, _Desk]:
    """Make the tenants, each with an owner who is signed in and some tickets."""
    from portal.dynamo import provisioning
    from proofs.isolation.visits import visitors
    from proofs.noise.workload import NOISY, TENANTS
    from tenants.audit_trail.recording import SYSTEM
    from tenants.provisioning import tenant_lifecycle
    from tickets.desk import creating

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
        desks[number] = _Desk(made.slug, cookie, context.page_mark_of(owner.id, made.tenant_id))
    return desks


@contextmanager
def _portal(log_path: Path, *, rate: int) -> Iterator[int]:
    """Serve the portal as it is deployed, and return its port."""
    from django.conf import settings

    from proofs.noise import floods

    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    command += ["--chdir", str(settings.BASE_DIR), "--bind", f"{LOOPBACK}:{port}", "--log-level", "warning"]
    command += ["--workers", str(floods.PROCESSES)]
    ours = {"TENANT_RATES": f"standard={rate}", "WEB_CONCURRENCY": str(floods.PROCESSES), "RATES_SHARED": "1"}
    with log_path.open("wb") as log:
        child = Child("web server", command, env={**os.environ, **ours}, output=log)
    try:
        _wait_for(port, child, log_path)
        yield port
    finally:
        child.stop(seconds=10)


def _wait_for(port: int, child: Child, log_path: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()
    raise RuntimeError(f"The portal does not answer.\n{log_path.read_text(errors='replace')[-1500:]}")


class _Client:
    """One browser of a desk's owner, over one connection that is kept."""

    def __init__(self, port: int, desk: _Desk) -> None:
        from proofs.noise import floods

        self._desk, self._port = desk, port
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=floods.PATIENCE_SECONDS)

    def prepare(self) -> None:
        """Read the form of a new ticket, for its token and the cookie that belongs to it."""
        answer, text = self._ask("GET", "new/", "")
        set_by_it = ", ".join(answer.headers.get_all("Set-Cookie") or [])
        cookie = re.search(r"pooldesk_csrf=\w+", set_by_it)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', text)
        if cookie is None or token is None:
            raise RuntimeError(f"The form of a new ticket did not come: {answer.status}.")
        self._desk.csrf, self._desk.token = cookie[0], token[1]

    def ask(self, *, write: bool) -> int:
        """Read the queue or open a ticket; the status, 0 where no answer came."""
        form = {
            "csrfmiddlewaretoken": self._desk.token,
            "_page": self._desk.mark,
            "request_id": uuid.uuid4().hex,
            "title": "One more",
            "description": "It broke.",
            "priority": "normal",
        }
        try:
            answer, _ = self._ask("POST", "new/", urllib.parse.urlencode(form)) if write else self._ask("GET", "", "")
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0
        return answer.status

    def _ask(self, method: str, page: str, body: str) -> tuple[http.client.HTTPResponse, str]:
        headers = {"Cookie": f"pooldesk_session={self._desk.cookie}; {self._desk.csrf}"}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, f"/{self._desk.slug}/tickets/{page}", body or None, headers)
        answer = self._connection.getresponse()
        return answer, answer.read().decode()


@dataclass
class _Trial:
    """All clients, and what they saw."""

    port: int
    desks: dict[int, _Desk]
    flood: Any
    requests: list[Any] = field(default_factory=list)
    _phase: str = "warm"
    _began: float = 0.0

    def run(self, seconds: float) -> None:
        from proofs.noise import floods
        from proofs.noise.workload import NOISY, NOISY_CLIENTS, QUIET_TENANTS

        for desk in self.desks.values():
            _Client(self.port, desk).prepare()
        plain = [self._client(tenant, client=0, floods_in="") for tenant in QUIET_TENANTS]
        noisy = [self._client(NOISY, client=number, floods_in="noisy") for number in range(NOISY_CLIENTS)]
        for phase, length in (
            ("warm", min(floods.WARM_SECONDS, seconds)),
            # Lists grow and machines drift: half of the quiet phase is before the noisy one, and half behind it.
            ("quiet", seconds / 2),
            ("noisy", seconds),
            ("quiet", seconds / 2),
            ("over", 0.0),
        ):
            before = len(self.requests)
            self._began, self._phase = time.monotonic(), phase
            time.sleep(length)
            self._wait_until_it_says_something(phase, before)
        for client in plain + noisy:
            client.join(floods.PATIENCE_SECONDS)

    def _wait_until_it_says_something(self, phase: str, before: int) -> None:
        """Wait for an answer to each quiet tenant in this phase, and for the flood's first refusal."""
        from proofs.noise import floods
        from proofs.noise.workload import NOISY, QUIET_TENANTS

        until = time.monotonic() + floods.PATIENCE_SECONDS
        while phase in ("quiet", "noisy"):
            seen = [request for request in self.requests[before:] if request.phase == phase]
            refused = any(request.tenant == NOISY and request.status == floods.REFUSED for request in seen)
            if {request.tenant for request in seen}.issuperset(QUIET_TENANTS) and (refused or phase == "quiet"):
                return
            if time.monotonic() > until:
                raise RuntimeError(f"The machine is too slow: the {phase} phase came to nothing.")
            time.sleep(_LOOK_SECONDS)

    def _client(self, tenant: int, *, client: int, floods_in: str) -> threading.Thread:
        thread = threading.Thread(target=self._work, args=(tenant, client, floods_in), daemon=True)
        thread.start()
        return thread

    def _work(self, tenant: int, client: int, floods_in: str) -> None:
        from proofs.noise import floods

        browser = _Client(self.port, self.desks[tenant])
        chance = random.Random(f"{tenant} {client}")  # noqa: S311  # repeatable
        time.sleep(chance.random() * floods.THINK_SECONDS)
        seen, number = "warm", 0
        for turn in itertools.count():
            phase, began = self._phase, self._began
            if phase == "over":
                return
            if client and phase != floods_in:
                time.sleep(0.05)
                continue
            if phase != seen and client:
                time.sleep(chance.random() * floods.THINK_SECONDS)  # people of a desk do not all begin at once
            number = number + 1 if phase == seen else 0
            seen = phase
            write = self.flood.writes if phase == floods_in else turn % floods.WRITES_EVERY == floods.WRITES_EVERY - 1
            at = time.monotonic()
            status = browser.ask(write=write)
            took = time.monotonic() - at
            if phase != "warm":
                self.requests.append(
                    floods.DoorRequest(phase, tenant, number, round(at - began, 4), round(took, 4), status)
                )
            time.sleep(chance.uniform(0.5, 1.5) * floods.THINK_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
    os._exit(0)  # a client that waits for an answer is left behind
