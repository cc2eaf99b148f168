"""Carry out, beside a stream, the jobs of one kind that nobody carries out: one at a time in each process.

A job that fails rests, longer each time, while others are carried out: one tenant's site that is away, or a desk about
which somebody has to decide first, keeps nobody waiting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final, Generic

from portal.errors import PortalError
from portal.streams import background
from tickets.jobs.leased_job import I, JobKind, LeasedJob, LeaseWatch, TakenOver

log = logging.getLogger("pooldesk.stream")

LOOK_SECONDS: Final = 2.0  # between two looks for what there is to do
_FIRST_REST: Final = 15.0  # seconds after a failure
_LONGEST_REST: Final = 600.0

Again = Callable[[], bool]


class JobFollower(Generic[I]):
    """Works in a thread of its own, or `turn` is called now and then. `job` makes a job of an item. `look` returns the
    jobs to choose from: the last one of each tenant, unless stated otherwise.
    """

    def __init__(
        self,
        kind: JobKind[I],
        job: Callable[..., LeasedJob[I]],
        *,
        look: Callable[[], Iterable[I]] | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._kind, self._job, self._look = kind, job, look or kind.all_last
        self._look_seconds = look_seconds
        self._watch = LeaseWatch()
        self._resting: dict[str, tuple[float, float]] = {}  # by tenant: how long, until when

    def running(self) -> AbstractContextManager[None]:
        """Work while the context lasts."""
        return background.working(self.turn, pause=lambda: self._look_seconds, name=self._kind.name, log=log)

    def turn(self, again: Again = lambda: True) -> int:
        """Look once what there is to do, and do it while `again` says so. Return how many jobs have ended.

        Raises Unavailable.
        """
        ended = 0
        for item in self._look():
            if item.state in self._kind.unfinished and self._watch.is_free(item) and again() and self._has_rested(item):
                ended += self._tried(item, again)
        return ended

    def _has_rested(self, item: I) -> bool:
        return time.monotonic() >= self._resting.get(item.name, (0.0, float("-inf")))[1]

    def _tried(self, item: I, again: Again) -> bool:
        log.info("%s: its %s is carried out here, from %s on.", item.slug, self._kind.name, item.phase or item.state)
        try:
            ended = self._job(item, again=again).run()
        except TakenOver:
            return False
        except PortalError as error:
            log.warning("%s: its %s waits: %s", item.slug, self._kind.name, error.message)
        except Exception:  # of one tenant: others go on
            log.exception("%s: its %s failed, it is tried again.", item.slug, self._kind.name)
        else:
            self._resting.pop(item.name, None)
            return ended
        rest = min(_LONGEST_REST, 2 * self._resting.get(item.name, (_FIRST_REST / 2, 0.0))[0])
        self._resting[item.name] = (rest, time.monotonic() + rest)
        return False
