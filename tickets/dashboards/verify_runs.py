"""Verifications that an owner starts from the dashboard: one at a time per tenant, beside the request.

The run's state is an item beside the aggregates, so that the page that shows them reads it in the same Query. It is
a lease as well: while it says running, nobody starts another, until it is so old that its process must have died.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from datetime import timedelta
from functools import partial
from math import ceil
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from portal import clock
from portal.dynamo.store import Condition
from portal.errors import ConditionFailed, LimitReached, PortalError, Unavailable
from portal.load import tenant_limiter
from portal.web.locales import declare_stored, stored_text
from tenants.tenancy.context import TenantContext
from tickets.counting import stored
from tickets.counting.stored import VerifiedItem
from tickets.verification import verify
from tickets.verification.recount import GROUP
from tickets.verification.verify import Difference, Verdict

log = logging.getLogger("pooldesk.verify")

NEVER, RUNNING = "never", "running"
DEAD_AFTER: Final = timedelta(minutes=10)  # after its start, a run that has not ended counts as dead
KEPT: Final = 20  # differences; some 60 bytes each
COOLDOWN: Final = timedelta(minutes=10)  # after the end of a verification
_BUSY_SECONDS: Final = 30  # after which another may have ended
SETTLE: Final = verify.SETTLE
# Why a verification ended early, of which its item keeps the English.
_DIED: Final = gettext_noop("the process that verified them ended before it was done")
_STOPPED: Final = declare_stored(gettext_noop("%(name)s stopped it"))
_FAULT: Final = gettext_noop("something went wrong, and the log of the portal says what")
_PORTAL_STOPPED: Final = gettext_noop("the portal was stopped")


class VerificationStopped(PortalError):
    """A person has stopped the verification, or another one has taken its place."""

    code = "stopped"


AT_A_TIME: Final = 2  # in a process, of two tenants
_places = threading.BoundedSemaphore(AT_A_TIME)


class VerifyState:
    """The state of a verification, for the dashboard: never, running, ok, drift or unknown, as of a run that died.

    `differences` are the first ones, `more` how many there were beyond them. `reached` is the ticket number up to which
    it has come.
    """

    def __init__(self, item: VerifiedItem | None) -> None:
        item = item or VerifiedItem(state=NEVER, started_at="")
        self.state, self.why, self.by_name = item.state, item.why, item.by_name
        self.tickets, self.more, self.reached = int(item.tickets), int(item.more), int(item.reached)
        stamps = item.started_at, item.finished_at
        self.started_at, self.finished_at = (clock.parse(stamp) if stamp else None for stamp in stamps)
        self.differences = [Difference(*one[:4]) for one in json.loads(item.found)]
        if self.state == RUNNING and self.started_at and self.started_at < clock.now() - DEAD_AFTER:
            self.state, self.why = verify.UNKNOWN, _DIED
        self.why = stored_text(self.why or "")

    @property
    def next_goes_on(self) -> bool:
        """Tell whether the next one goes on where this one was broken off."""
        return self.state == verify.UNKNOWN and self.reached >= GROUP

    @property
    def can_start(self) -> bool:
        return self.state != RUNNING and not self.wait

    @property
    def wait(self) -> int:
        """Minutes until another one may be started: each reads every ticket."""
        left = (self.finished_at + COOLDOWN - clock.now()) if self.finished_at else timedelta(0)
        return max(0, ceil(left.total_seconds() / 60)) if left <= COOLDOWN else 0


def read(tenant: TenantContext) -> VerifyState:
    """Return the state as of now: one consistent GetItem."""
    return VerifyState(tenant.repository.get(VerifiedItem, stored.aggregate, sort=stored.VERIFIED, consistent=True))


def start(tenant: TenantContext) -> bool:
    """Begin to verify this tenant's aggregates in another thread. False where that is going on already, or ended less
    than COOLDOWN ago. Raises LimitReached where this process verifies AT_A_TIME already: none waits in a thread.
    """
    if not read(tenant).can_start:
        return False
    if not _places.acquire(blocking=False):
        busy = gettext("The numbers of other desks are being verified just now.")
        raise LimitReached(busy, retry_after=_BUSY_SECONDS)
    started = False
    try:
        started = _start(tenant)
    finally:
        if not started:
            _places.release()
    return started


def _start(tenant: TenantContext) -> bool:
    run, now = uuid.uuid4().hex, clock.now()
    died = VerifiedItem.started_at < clock.stamp(now - DEAD_AFTER)
    try:
        _write(
            tenant, VerifiedItem.pk.does_not_exist() | (VerifiedItem.state != RUNNING) | died,
            run=run, state=RUNNING, started_at=clock.stamp(now), finished_at="", by_name=tenant.user_name, tickets=0,
            reached=0, why="", found="[]", more=0,
        )  # fmt: skip
    except ConditionFailed as failed:
        # Our own start, whose answer was lost and which was sent again, is no one else's.
        stood = failed.stored(VerifiedItem)
        if stood is None or stood.run != run:
            return False
    # A daemon, which does not keep the process from stopping: it only reads, and counts as dead after a while.
    thread = threading.Thread(target=_in_its_place, args=(tenant, run), name="verify", daemon=True)
    tenant_limiter.jobs.add(thread)
    thread.start()
    return True


def stop(tenant: TenantContext) -> bool:
    """End the verification that runs: its thread notices before it reads the next tickets. False where none runs."""
    why = _STOPPED % {"name": tenant.user_name}
    try:
        _write(tenant, VerifiedItem.state == RUNNING, run="", state=verify.UNKNOWN, finished_at=clock.stamp(), why=why)
    except ConditionFailed:
        return False
    return True


def wait_until_done() -> None:
    """Return when all runs of this process so far have ended. For tests."""
    for thread in list(tenant_limiter.jobs):
        thread.join()


def _write(tenant: TenantContext, condition: Condition, **values: Any) -> None:
    item = VerifiedItem(tenant.repository.key(stored.aggregate), stored.VERIFIED)
    actions = [getattr(VerifiedItem, name).set(value) for name, value in values.items()]
    tenant.repository.update(item, actions, condition=condition)


def _in_its_place(tenant: TenantContext, run: str) -> None:
    try:
        _logged(tenant, run)
    finally:
        _places.release()


def _logged(tenant: TenantContext, run: str) -> None:
    finish, way = partial(_finish, tenant, run), _Way(tenant, run)
    patience = DEAD_AFTER.total_seconds() * 0.8
    try:
        with verify.held(tenant.repository, by=tenant.user_name):
            verdict = verify.verify(
                tenant.repository, settle=SETTLE, give_up_after=patience, begun=way.begun, advance=way.advance
            )
        finish(verdict)
    except VerificationStopped:
        log.info("A verification of tenant %s was stopped.", tenant.tenant_id)
    except PortalError as error:
        log.warning("The numbers of tenant %s could not be verified: %s", tenant.tenant_id, error.message)
        _quietly(partial(finish, reached=way.reached), error.message.rstrip("."))
    except Exception:
        log.exception("A verification failed.")
        _quietly(partial(finish, reached=way.reached), _FAULT)
    finally:
        tenant_limiter.jobs.discard(threading.current_thread())


class _Way:
    """Writes how far a run has come, and raises VerificationStopped where it is over. One update for each group."""

    def __init__(self, tenant: TenantContext, run: str) -> None:
        self._tenant, self._run, self.reached = tenant, run, 0

    def begun(self, number: int) -> None:
        self.reached = number
        self._write()

    def advance(self, numbers: int) -> None:
        self.reached += numbers
        self._write()

    def _write(self) -> None:
        if tenant_limiter.stopping.is_set():
            raise Unavailable(_PORTAL_STOPPED)
        try:
            _write(self._tenant, VerifiedItem.run == self._run, reached=self.reached)
        except ConditionFailed:
            raise VerificationStopped("stopped") from None


def _quietly(finish: Any, why: str) -> None:
    try:
        finish(Verdict(verify.UNKNOWN, 0, why=why))
    except PortalError:
        log.warning("The end of a verification could not be written.")


def _finish(tenant: TenantContext, run: str, verdict: Verdict, *, reached: int = 0) -> None:
    """Write the result, unless the run was taken for dead and another has begun. `reached` says where it broke off."""
    shown = [[d.item, d.count, d.stored, d.recounted] for d in verdict.differences[:KEPT]]
    try:
        _write(
            tenant, VerifiedItem.run == run,
            state=verdict.state, finished_at=clock.stamp(), tickets=verdict.tickets, why=verdict.why, reached=reached,
            found=json.dumps(shown), more=max(0, len(verdict.differences) - KEPT),
        )  # fmt: skip
    except ConditionFailed:
        log.warning("A verification ended after it was stopped, or after another one had taken its place.")
