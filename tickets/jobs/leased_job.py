"""Carry a job out step by step under a lease: with heartbeats, with an end on request, and so that others can go on.

Each step of a job is right however often it is done. A process can be killed anywhere, and another one repeats the step
that was not finished. Two processes that hold the lease for a moment do no harm: each change of a job requires what
its holder has seen. Clocks are never compared: a process takes a job over only after watching its heartbeat stand
still.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeGuard, TypeVar, cast

from django.utils.translation import gettext_noop

from portal.dynamo.store import Action, Condition, Store
from portal.errors import ConditionFailed, Conflict, PortalError
from portal.schema.registry import Role
from portal.streams.lease import SignWatch
from tickets.jobs import stored
from tickets.jobs.stored import JobItem

I = TypeVar("I", bound=JobItem)  # noqa: E741  # an item


FAULT: Final = gettext_noop("It failed by a fault of its own; the log says which.")
SHOWN: Final = 50  # former jobs of a tenant


class TakenOver(Conflict):
    """Somebody else has the lease of the job."""

    def __init__(self) -> None:
        super().__init__("Somebody else carries this out.")


@dataclass(frozen=True)
class JobKind(Generic[I]):
    """One kind of job: where the last job of each tenant stands in the directory, which role writes it, and the states
    in which a process has to carry it on. Where `past` is given, former jobs stay in their tenant's history."""

    name: str
    model: type[I]
    partition: str
    role: Role
    unfinished: tuple[str, ...]
    past: str = ""  # the kind of those in the history

    @property
    def _store(self) -> Store:
        return Store(self.role)

    def of(self, tenant_id: str) -> I:
        """Return the key of a tenant's last job, for an update."""
        return self.model(self.partition, tenant_id)

    def new(self, tenant: Any, **values: Any) -> I:
        """Return a job of a tenant as stored, which is not written yet."""
        of = {"tenant_id": tenant.tenant_id, "slug": tenant.slug, "title": tenant.name}
        return self.model(self.partition, tenant.tenant_id, **of, **values)

    def goes_on(self, item: I | None) -> TypeGuard[I]:
        """Tell whether there is a job that has not ended."""
        return item is not None and item.state in self.unfinished

    def last(self, tenant_id: str) -> I | None:
        """Return a tenant's last job as it is now, None where it never had one: one consistent read."""
        return self._store.get(self.model, self.partition, sort=tenant_id, consistent=True)

    def under_way(self, tenant_id: str) -> I | None:
        """Return a tenant's job that has not ended, None where there is none: one consistent read."""
        item = self.last(tenant_id)
        return item if self.goes_on(item) else None

    def free(self) -> Condition:
        """Return the condition that no job of the tenant is under way."""
        free: Condition = self.model.state.does_not_exist() | ~self.model.state.is_in(*self.unfinished)
        return free

    def all_last(self) -> list[I]:
        """Return the last job of each tenant that has one noted, newest first: one consistent Query."""
        found: Iterable[I] = self._store.query_all(cast(Any, self.model), self.partition, consistent=True)
        return sorted(found, key=lambda item: item.begun_at, reverse=True)

    def history(self, tenant_id: str) -> list[I]:
        """Return what is kept of a tenant's jobs, newest first, up to SHOWN: one Query as the platform."""
        kept = stored.past(self.past, tenant_id)
        found: list[I] = Store("platform").query(cast(Any, self.model), kept, descending=True, limit=SHOWN).items
        return found

    def kept(self, item: I, **values: Any) -> I:
        """Return a job as the history keeps it, with these values in place of its own."""
        kept = self.model.from_raw_data(item.serialize())
        for name, value in {"kind": stored.past(self.past, item.tenant_id), "name": item.begun_at, **values}.items():
            setattr(kept, name, value)
        return kept

    def take(self, item: I, *, me: str) -> I:
        """Take the lease of a job that stands as it was seen. Raises TakenOver where somebody was faster."""
        seen = (self.model.holder == item.holder) & (self.model.counter == int(item.counter))
        return self._changed(item, self.actions(holder=me, trouble=""), seen, me)

    def note(self, item: I, *, me: str, **values: Any) -> I:
        """Give a heartbeat, and write how far it is; return the item as it is then. Raises TakenOver without lease."""
        return self._changed(item, self.actions(**values), self.model.holder == me, me)

    def actions(self, **values: Any) -> list[Action]:
        """Return the actions that set these attributes."""
        return [getattr(self.model, name).set(value) for name, value in values.items()]

    def _changed(self, item: I, some: list[Action], condition: Condition, me: str) -> I:
        heartbeat = self.model.counter.set(self.model.counter + 1)
        same_job = self.model.begun_at == item.begun_at
        try:
            return self._store.update(self.of(item.name), [*some, heartbeat], condition=condition & same_job)
        except ConditionFailed as failed:
            # A lost answer is sent again, and the second time it meets what the first has written.
            now = failed.stored(self.model)
            if now is not None and now.holder == me and now.begun_at == item.begun_at:
                return now
            raise TakenOver from failed


# --- who may take a job over ---


LEASE_SECONDS = 15.0  # without a heartbeat before a job may be taken over


class LeaseWatch(SignWatch):
    """Watch the heartbeats of the holders of jobs."""

    def __init__(self) -> None:
        super().__init__(LEASE_SECONDS)

    def is_free(self, item: JobItem) -> bool:
        """Tell whether it has no holder, or one whose heartbeat stood still for the lease time."""
        is_still = self.stands_still(item.name, (item.holder, int(item.counter)))
        return is_still or not item.holder


# --- the life of a job ---


_HEARTBEAT_SECONDS: Final = 3.0  # between two of them, at most
_LOOK_SECONDS: Final = 0.2


class EndAsked(Exception):  # not an error: somebody asked for it
    """An operator has asked for an end."""


class _Paused(Exception):  # not an error: this process ends, another one goes on
    """This process stops the job, so that another one goes on."""


class LeasedJob(Generic[I]):
    """Carries one job out. `again` is asked now and then whether to go on; `say` gets the name of each phase.

    `advance` gets how much was done since the last time. `item` is what is noted of it.
    """

    kind: ClassVar[JobKind[Any]]

    def __init__(
        self,
        item: I,
        *,
        me: str = "",
        again: Callable[[], bool] = lambda: True,
        say: Callable[[str], object] = lambda phase: None,
        advance: Callable[[int], object] = lambda steps: None,
    ) -> None:
        self.me, self.item = me or uuid.uuid4().hex, item
        self._again, self._say, self._advance = again, say, advance
        self._heartbeat_at = float("-inf")

    def run(self) -> bool:
        """Carry it out to its end, or to one that was asked for. Return whether it has ended.

        Raises TakenOver where somebody else carries it out, Conflict, and Unavailable; then it can be begun again.
        """
        if self.item.holder != self.me:
            self.item = self.kind.take(self.item, me=self.me)
        try:
            self._carry_out()
        except _Paused:
            self._let_go()
            return False
        except BaseException as error:
            self._fail(error)
            raise
        return True

    def _fail(self, error: BaseException) -> None:
        """Let go after an error. Raises TakenOver where a conflict has come of that somebody else carries it out."""
        try:
            self._let_go(_trouble(error))
        except TakenOver:
            if isinstance(error, Conflict):
                raise
        except PortalError:  # others take it over a little later
            return

    def _carry_out(self) -> None:
        """Do all that is left of it. May raise EndAsked no further than this."""
        raise NotImplementedError

    def _is_to_end(self) -> bool:
        """Tell whether an operator has asked for an end that is possible still."""
        return False

    def _let_go(self, trouble: str = "") -> None:
        """Give the lease back, so that nobody waits for it. `trouble` is why, "" for nothing that is wrong."""
        values = {"holder": "", **({"trouble": trouble} if trouble else {})}
        self.item = self.kind.note(self.item, me=self.me, **self._always_noted(), **values)

    def _go_through(self, phases: Sequence[str], **begun: Any) -> None:
        """Do the step of each phase, the method of its name, from the present one on.

        `begun` is noted with each next phase.
        """
        for phase in phases[phases.index(self.item.phase) :]:
            if phase != self.item.phase:
                self._note(phase=phase, **begun)
            self._say(phase)
            getattr(self, f"_{phase}")()

    def _rest(self, seconds: float) -> None:
        """Wait, give heartbeats, and look whether to go on."""
        until = time.monotonic() + seconds
        while True:
            self._look_up()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK_SECONDS))

    def _look_up(self) -> None:
        if not self._again():
            raise _Paused
        if time.monotonic() - self._heartbeat_at >= _HEARTBEAT_SECONDS:
            self._note()

    def _always_noted(self) -> dict[str, Any]:
        """Return what is noted with each heartbeat, and when it lets go."""
        return {}

    def _note(self, **values: Any) -> None:
        self.item = self.kind.note(self.item, me=self.me, **{**self._always_noted(), **values})
        self._heartbeat_at = time.monotonic()
        self._heed()

    def _heed(self) -> None:
        if self._is_to_end():
            raise EndAsked


def _trouble(error: BaseException) -> str:
    if isinstance(error, PortalError):
        return error.message
    return FAULT if isinstance(error, Exception) else ""
