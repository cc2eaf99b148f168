"""Share a tenant's rate among processes that do not ask each other before they let a request through.

All processes know how many they are, N. A process may use 1/N of each tenant's rate and tell nobody. One that is asked
for more tells how much in its post, and everybody reads all posts each round. So a tenant stands in posts while some
process has nearly 1/N of its rate to do.

Of a tenant that somebody tells of, RESERVE is kept for those that tell nothing, and each has its N-th part of that. The
rest is divided among those that tell: each gets what it is asked for, as far as that is no more than the others get
(max-min), and what is then left in equal parts. A process that wants more takes it only RIPE_ROUNDS after it has told
so, when all others have read of it and taken less; less it takes at once.

A thread beside the requests tells and reads once a round: one Query of all posts, and one PutItem where there is
something to tell, or now and then to say that the process lives; docs/adr/0020-rate-limits.md has the formula.

A process that gives no sign of life is known by a counter that stands still, by the observer's own monotonic clock:
clocks are never compared, and time in which nothing could be read does not count. A process that cannot read has its
N-th part.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.conf import settings

from portal.dynamo.platform import PLATFORM
from portal.errors import PortalError
from portal.load import guest_limits, stored
from portal.load.stored import SharePostItem
from portal.load.tenant_limiter import UNLIMITED, TenantLimiter, limiter

ROUND_SECONDS: Final = 2.0
QUIET_ROUNDS: Final = 5  # between two posts of a process that has nothing to tell
RESERVE: Final = 0.03
NEARLY: Final = 0.9  # of its N-th part, from which on a process tells
CALM: Final = 0.45  # of an N-th part: while nobody is asked for more, nobody tells
RIPE_ROUNDS: Final = 2
FRESH_ROUNDS: Final = 3  # after which what a silent process has told counts no more
DEAD_ROUNDS: Final = 3 * QUIET_ROUNDS  # after which it is no longer one of the N
MOST_TOLD: Final = 100  # tenants in one post, those that ask for most
_SMALL: Final = 1e-4  # of a rate: less is nothing


@dataclass(frozen=True)
class SharePost:
    """A process's post: `counter` grows with each, `asked` has parts of rates by tenant, more than 1 for a flood."""

    process: str
    counter: int
    asked: Mapping[str, float] = field(default_factory=dict)


class RateSharing:
    """One process's view of all. No thread, no database; `clock` gives seconds that never go back."""

    def __init__(self, me: str, *, processes: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self.me = me
        self._clock, self._expected = clock, processes
        self._counted: Mapping[str, tuple[float, float]] = {}
        self._counted_at = clock()
        self._asked: dict[str, float] = {}
        self._told: dict[str, int] = {}  # by tenant, for how many rounds this process has told of it
        self._joined: set[str] = set()  # tenants that others told of before this process did
        self._posts: dict[str, tuple[SharePost, float]] = {}  # of the others, and when the counter was seen to move
        self._read_at: float | None = None
        self._observed = 0.0  # seconds, without those in which nothing could be read
        self._counter = self._silent = 0

    @property
    def processes(self) -> int:
        """Return how many processes there are, as far as this one knows."""
        if self._read_at is None:
            return self._expected
        return 1 + len(self._within(DEAD_ROUNDS))

    def count(self, asked_so_far: Mapping[str, tuple[float, float]]) -> None:
        """Take note of what was asked of this process so far; once a round. A flood counts for what it asks for."""
        now = self._clock()
        seconds = max(now - self._counted_at, ROUND_SECONDS / 2)
        asked = {}
        for tenant_id, (per_second, counted) in asked_so_far.items():
            before = self._counted.get(tenant_id, (per_second, 0.0))[1]
            if per_second == UNLIMITED or counted < before:
                continue  # no limit, or forgotten and met anew
            latest = (counted - before) / seconds / per_second
            smooth = (latest + 2 * self._asked.get(tenant_id, 0.0)) / 3
            if smooth > _SMALL:
                asked[tenant_id] = smooth
        self._counted, self._counted_at, self._asked = asked_so_far, now, asked

    def post(self) -> SharePost | None:
        """Return what to tell the others in this round; None for nothing."""
        hot = self._hot()
        count = self.processes
        wanted = {
            tenant
            for tenant, part in self._asked.items()
            if tenant in hot or part * count > (CALM if tenant in self._told else NEARLY)
        }
        if len(wanted) > MOST_TOLD:
            wanted = set(sorted(wanted, key=lambda tenant: -self._asked[tenant])[:MOST_TOLD])
        self._joined = {t for t in wanted if t in self._joined or (t in hot and t not in self._told)}
        self._told = {t: self._told.get(t, -1) + 1 for t in wanted}
        self._silent += 1
        if not wanted and self._counter and self._silent < QUIET_ROUNDS:
            return None
        self._counter, self._silent = self._counter + 1, 0
        return SharePost(self.me, self._counter, {tenant: round(self._asked[tenant], 4) for tenant in wanted})

    def read(self, posts: Iterable[SharePost]) -> None:
        """Take note of all posts as they are stored now."""
        now = self._clock()
        if self._read_at is not None:
            self._observed += min(now - self._read_at, 2 * ROUND_SECONDS)
        self._read_at = now
        seen = {}
        for post in posts:
            known = self._posts.get(post.process)
            moved = known is None or known[0].counter != post.counter
            seen[post.process] = (post, self._observed) if moved else known
        seen.pop(self.me, None)
        self._posts = {process: one for process, one in seen.items() if one is not None}

    def shares(self) -> tuple[float, dict[str, float]]:
        """Return this process's part of every rate, and its parts of the rates of tenants that somebody tells of."""
        even = 1 / self.processes
        if self._read_at is None or self._clock() - self._read_at > FRESH_ROUNDS * ROUND_SECONDS:
            return even, {}
        hot = self._hot()
        return even, {tenant: self._part(tenant, hot.get(tenant, [])) for tenant in {*hot, *self._told}}

    def _part(self, tenant: str, others: list[float]) -> float:
        count = self.processes
        small = RESERVE / count
        if tenant not in self._told:
            return small
        everybody = [*others, self._asked.get(tenant, 0.0)]
        pool = 1 - small * max(0, count - len(everybody))
        part = _max_min(pool, everybody)
        if self._told[tenant] < RIPE_ROUNDS:
            return min(part, small if tenant in self._joined else 1 / count)
        return max(part, small)

    def _hot(self) -> dict[str, list[float]]:
        """Return what the others tell now: by tenant that one of them has much of, what each is asked for."""
        found: dict[str, list[float]] = {}
        for post in self._within(FRESH_ROUNDS):
            for tenant_id, part in post.asked.items():
                found.setdefault(tenant_id, []).append(part)
        return {tenant: parts for tenant, parts in found.items() if max(parts) * self.processes > CALM}

    def _within(self, rounds: int) -> list[SharePost]:
        since = self._observed - rounds * ROUND_SECONDS
        return [post for post, moved_at in self._posts.values() if moved_at > since]


def _max_min(pool: float, asked: list[float]) -> float:
    """Return what the last of those that ask gets of a pool."""
    mine, left, waiting = asked[-1], pool, sorted(asked)
    while waiting:
        fair = left / len(waiting)
        if waiting[0] > fair:
            return min(mine, fair)
        left -= waiting.pop(0)
    return mine + left / len(asked)


log = logging.getLogger("pooldesk.limits")

_KEPT_SECONDS: Final = 3600  # of the post of a process that has ended


class RateSharer:
    """Share the rates of one process's limiter with the other processes'."""

    def __init__(self, own: TenantLimiter) -> None:
        self._limiter = own
        self._sharing = RateSharing(uuid.uuid4().hex, processes=settings.WEB_PROCESSES)
        self._away = False

    @property
    def processes(self) -> int:
        """Return among how many processes each rate is shared, as far as this one knows."""
        return self._sharing.processes

    def turn(self) -> None:
        """Tell, read and take the part that follows. While the database is away, the part is an even one."""
        self._sharing.count(self._limiter.asked())
        try:
            self._exchange()
            self._away = False
        except PortalError as error:
            if not self._away:
                log.warning("What other processes are asked for is not known: %s", error.message)
            self._away = True
        self._limiter.divide(*self._sharing.shares())
        guest_limits.guests.divide(1 / self.processes, {})  # nobody tells how many of them come to which process

    def _exchange(self) -> None:
        post = self._sharing.post()
        if post is not None:
            expires = int(time.time()) + _KEPT_SECONDS
            asked = json.dumps(post.asked)
            PLATFORM.put(
                SharePostItem(stored.POSTS, post.process, counter=post.counter, asked=asked, expires_at=expires)
            )
        posts = PLATFORM.query_all(SharePostItem, stored.POSTS)
        self._sharing.read(SharePost(one.process, int(one.counter), json.loads(one.asked)) for one in posts)


_lock = threading.Lock()
_sharer: RateSharer | None = None


def start() -> None:
    """Begin to share this process's rates, once; does nothing where RATES_SHARED is off."""
    if _sharer is None and settings.RATES_SHARED:
        with _lock:
            _start()


def _start() -> None:
    global _sharer
    if _sharer is None:
        _sharer = RateSharer(limiter)
        # A daemon: it keeps nothing that the process would have to finish.
        threading.Thread(target=_run, args=(_sharer,), name="rates", daemon=True).start()


def processes() -> int:
    """Return among how many processes each rate is shared, as far as this one knows."""
    return _sharer.processes if _sharer else 1


def _run(sharer: RateSharer) -> None:
    while True:
        try:
            sharer.turn()
        except Exception:  # limits go on with the parts of before, and so does this thread
            log.exception("The rates could not be shared")
        time.sleep(ROUND_SECONDS)


def _forget() -> None:
    global _sharer, _lock
    _sharer, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
