"""Flood the door of a portal, and measure what the other tenants notice.

The same twenty tenants as behind the queues, on a real gunicorn of two processes with an engine of its own. Each quiet
tenant has one client, which reads pages and writes a ticket now and then, and thinks between two requests. In the noisy
phase the noisy tenant has fifteen that do nothing but read pages, or nothing but write tickets. The allowed part of a
flood is counted in units, from the time its burst must be spent until the phase ends.

Lists grow and machines drift: half of the quiet phase is before the noisy one, and half behind it. The noisy phase does
not end before the flood was refused.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.hashers import make_password

from portal.dynamo import provisioning
from portal.load.tenant_limiter import CHANGE_UNITS, READ_UNITS
from proofs.noise.closed_loop import NOISY, TENANTS, ClientRequest, ClosedLoop, percentile, ratio
from proofs.noise.trials import Plan, TrialFailed
from proofs.portal_server import serving
from proofs.scenarios.persistent_people import PASSWORD, NothingCameBack, form_with, signed_in
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.sign_in import accounts
from tenants.tenancy import context
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
_TICKETS: Final = 3  # of each tenant before it begins


def rate_of(flood: str, seconds: float) -> int:
    """Return the units a second of the tenant that floods, in phases of so many seconds."""
    return FLOODS[flood] if seconds >= ENOUGH_SECONDS else BRIEF_RATE


def _make_desks(*, noisy_rate: int) -> None:
    provisioning.create_all()
    password_hash = make_password(PASSWORD)
    for number in TENANTS:
        owner = accounts.seed(email=_owner(number), name=f"Owner {number}", password_hash=password_hash)
        made = tenant_lifecycle.create(name=f"Desk {number}", slug=f"desk-{number}", owner=owner, by=SYSTEM)
        if number == NOISY:
            limits = tenant_lifecycle.TenantLimits(made.plan, request_rate=noisy_rate)
            tenant_lifecycle.change_limits(made.tenant_id, limits, by=SYSTEM)
        for ticket in range(_TICKETS):
            creating.create(context.for_system(made), title=f"Ticket {ticket}", description="It broke.")


def _owner(number: int) -> str:
    return f"owner{number}@example.com"


class _Desk:
    """The browser of a desk's owner, and the form of a new ticket, which is sent again and again."""

    def __init__(self, port: int, number: int) -> None:
        self._browser, self._path = signed_in(port, _owner(number)), f"/desk-{number}/tickets/"
        form = form_with(self._browser.ask(f"{self._path}new/"), f"{self._path}new/", "title")
        if form is None:
            raise TrialFailed("The form of a new ticket did not come.")
        self._form = form

    def ask(self, *, write: bool) -> str:
        """Read the queue or open a ticket; the status, "0" where no answer came."""
        ticket = {"title": "One more", "description": "It broke.", "priority": "normal", "request_id": uuid.uuid4().hex}
        try:
            answer = self._browser.ask(*((self._form.action, self._form.hidden | ticket) if write else (self._path,)))
        except NothingCameBack:
            return "0"
        return str(answer.status)


def carry_out(plan: Plan) -> dict[str, Any]:
    seconds = plan.seconds
    _make_desks(noisy_rate=rate_of(plan.name, seconds))
    ours = {"TENANT_RATES": f"standard={FLOODS[plan.name]}", "RATES_SHARED": "1", "LOG_LEVEL": "ERROR"}
    with (
        tempfile.TemporaryDirectory(prefix="flood-") as folder,
        serving(Path(folder) / "portal.log", workers=PROCESSES, environ=ours) as server,
    ):
        desks = {tenant: _Desk(server.port, tenant) for tenant in TENANTS}

        def ask(phase: str, tenant: int, client: int, number: int) -> str:
            floods = (tenant, phase) == (NOISY, "noisy")
            write = plan.name == "writes" if floods else number % WRITES_EVERY == WRITES_EVERY - 1
            return desks[tenant].ask(write=write)

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
