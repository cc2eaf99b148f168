"""Carry a job out step by step: with heartbeats, with an end when somebody asks for one, and so that others can go on.

Each step of a job is right however often it is done. So whoever carries it out can be killed anywhere, and who goes on
begins the step again that was not finished.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic

from portal.errors import Conflict, PortalError
from tickets.jobs.job_notes import I, JobNotes, TakenOver

_HEARTBEAT_SECONDS: Final = 3.0  # between two of them, at most
_LOOK_SECONDS: Final = 0.2


class EndAsked(Exception):  # not an error: somebody asked for it
    """An operator has asked for an end."""


class _Paused(Exception):  # not an error: this process ends, another one goes on
    """Whoever runs this job does not want to go on."""


class LeasedJob(Generic[I]):
    """Carries one job out. `again` is asked now and then whether to go on; `say` gets the name of each phase.

    `advance` gets how much was done since the last time. `item` is what is noted of it.
    """

    notes: ClassVar[JobNotes[Any]]

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
            self.item = self.notes.take(self.item, me=self.me)
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
        self.item = self.notes.note(self.item, me=self.me, **self._always_noted(), **values)

    def _go_through(self, steps: Mapping[str, Callable[[], None]], **begun: Any) -> None:
        """Do the steps from the phase on that it is at. `begun` is noted with each next phase."""
        phases = list(steps)
        for phase in phases[phases.index(self.item.phase) :]:
            if phase != self.item.phase:
                self._note(phase=phase, **begun)
            self._say(phase)
            steps[phase]()

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
        self.item = self.notes.note(self.item, me=self.me, **{**self._always_noted(), **values})
        self._heartbeat_at = time.monotonic()
        self._heed()

    def _heed(self) -> None:
        if self._is_to_end():
            raise EndAsked


def _trouble(error: BaseException) -> str:
    if isinstance(error, PortalError):
        return error.message
    return "It failed by a fault of its own; the log says which." if isinstance(error, Exception) else ""
