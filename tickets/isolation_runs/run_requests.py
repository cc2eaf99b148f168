"""Ask for an isolation run, stop it, and read what runs have found: an owner does it, each with its audit row."""

from __future__ import annotations

import json
import uuid
import zlib
from collections import Counter
from typing import Any, Final

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, NotFound, Throttled
from portal.version_number import VERSION
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.isolation_runs import attack, stored
from tickets.isolation_runs.stored import IsolationFileItem, IsolationRunItem
from tickets.jobs.leased_job import JobKind
from tickets.jobs.stored import past

RUNNING, CANCELLING, CANCELLED = "running", "cancelling", "cancelled"
HELD, CROSSED = "held", "crossed"
REFUSED: Final = "refused"  # the desk itself was: layers that refuse everybody prove nothing
ATTEMPTS: Final = 2_000
A_DAY: Final = 3  # runs of one desk
KEPT: Final = 20  # former runs, each with its file
RUNS: Final = JobKind(
    "isolation run", IsolationRunItem, stored.RUNS, "platform", (RUNNING, CANCELLING), past=stored.FORMER_RUNS
)


def last(tenant: TenantContext) -> IsolationRunItem | None:
    """Return the desk's last run, None where it never had one: one consistent Query, which no grant has to allow."""
    within = (tenant.tenant_id, tenant.tenant_id)
    found = PLATFORM.query(IsolationRunItem, stored.RUNS, between=within, limit=1, consistent=True).items
    return next(iter(found), None)


def former(tenant: TenantContext) -> list[IsolationRunItem]:
    """Return the runs that have ended, newest first, up to KEPT: one Query."""
    return RUNS.history(tenant.tenant_id)[:KEPT]


def left_today(item: IsolationRunItem | None) -> int:
    """Return how many runs the desk may still ask for on this day, by the last one."""
    return A_DAY - (int(item.of_day) if item is not None and item.day == clock.stamp()[:10] else 0)


def ask(tenant: TenantContext, *, by: Actor) -> None:
    """Ask for a run. Raises Conflict while one is at work, and Throttled beyond A_DAY of them."""
    before = last(tenant)
    if RUNS.goes_on(before):
        raise Conflict(_("An attack on this desk is running already."))
    left = left_today(before)
    if left <= 0:
        raise Throttled(_("A desk can be attacked three times a day. Try again tomorrow."))
    now = clock.stamp()
    item = RUNS.new(
        tenant, run_id=uuid.uuid4().hex[:16], state=RUNNING, by_id=by.id, by_email=by.email, by_origin=by.origin,
        attacker=uuid.uuid4().hex, total=ATTEMPTS, engine=attack.engine(), release=VERSION, day=now[:10],
        of_day=A_DAY - left + 1, begun_at=now,
    )  # fmt: skip
    transaction = Transaction()
    unchanged = IsolationRunItem.run_id == before.run_id if before else IsolationRunItem.run_id.does_not_exist()
    transaction.put(item, condition=unchanged & RUNS.free())
    _commit(tenant, transaction, AuditAction.ISOLATION_RUN_ASKED, by)


def cancel(tenant: TenantContext, *, by: Actor) -> None:
    """Have the run that is at work end. Raises Conflict where none is."""
    item = last(tenant)
    if item is None or item.state != RUNNING:
        raise Conflict(_("No attack on this desk is running."))
    transaction = Transaction()
    still = (IsolationRunItem.state == RUNNING) & (IsolationRunItem.run_id == item.run_id)
    transaction.update(RUNS.of(tenant.tenant_id), [IsolationRunItem.state.set(CANCELLING)], condition=still)
    _commit(tenant, transaction, AuditAction.ISOLATION_RUN_CANCELLED, by)


def _commit(tenant: TenantContext, transaction: Transaction, action: AuditAction, by: Actor) -> None:
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry(tenant.tenant_id, action, by, "isolation_run", "tenant", tenant.name)
    refused = Conflict(_("Somebody else has just changed this attack. Please look again."))
    recording.commit(transaction, [entry], refused=refused)


def fetch(tenant: TenantContext, run_id: str, *, by: Actor) -> tuple[IsolationRunItem, bytes]:
    """Return a run that is kept and its signed page, and record that it is exported. Raises NotFound, and what
    recording a row raises."""
    item = next((one for one in former(tenant) if one.run_id == run_id and one.file), None)
    if item is None:
        raise NotFound(_("There is no such file any more."))
    kept = past(stored.FILES, tenant.tenant_id)
    found = PLATFORM.query(IsolationFileItem, kept, between=(item.begun_at, item.begun_at), limit=1).items
    if not found or found[0].content is None:
        raise NotFound(_("There is no such file any more."))
    about = ("export", "isolation", "the signed report of an attack")
    entry = AuditEntry(tenant.tenant_id, AuditAction.EXPORT_MADE, by, *about, after={"as of": item.begun_at})
    recording.record(entry)
    return item, zlib.decompress(bytes(found[0].content))


def evidence(tenant: TenantContext) -> dict[str, bytes]:
    """Return the runs that are kept as files for an auditor: a list, and the signed page of each. Costs two Queries."""
    kept = PLATFORM.query_all(IsolationFileItem, past(stored.FILES, tenant.tenant_id))
    pages = {file.name: zlib.decompress(bytes(file.content)) for file in kept if file.content is not None}
    runs, files = former(tenant), {}
    told = [
        {
            "run": run.run_id,
            "begun_at": run.begun_at,
            "ended_at": run.ended_at,
            "by": run.by_email,
            "result": run.state,
            "attempts": int(run.tried),
            "engine": run.engine,
            "release": run.release,
            "sha256": run.file,
        }
        for run in runs
    ]
    for run in runs:
        if run.file and run.begun_at in pages:
            files[f"isolation-run-{run.begun_at[:10]}-{run.run_id}.html"] = pages[run.begun_at]
    return {"isolation-runs.json": json.dumps(told, indent=1).encode(), **files}


def tally_of(item: IsolationRunItem) -> Counter[str]:
    """Return how many attempts each layer answered, by the letters of `attack`."""
    told: dict[str, Any] = json.loads(item.tally)
    return Counter({str(letter): int(count) for letter, count in told.items()})
