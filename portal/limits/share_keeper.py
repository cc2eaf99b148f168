"""Keep this process's part of the tenants' rates up to date, in a thread beside the requests. Rules: rate_sharing.py.

A round costs one Query of all posts, and one PutItem where there is something to tell, or now and then to say that the
process lives; docs/adr/0020-limits-at-the-door.md has the formula. Once a minute it also writes down what tenants asked
for, where that was more than a little: `usage.py`.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.conf import settings

from portal import clock
from portal.dynamo import platform
from portal.errors import PortalError
from portal.limits import keys, usage
from portal.limits.items import SharePostItem
from portal.limits.rate_sharing import ROUND_SECONDS, RateSharing, SharePost
from portal.limits.tenant_limiter import Counts, TenantLimiter, limiter

log = logging.getLogger("pooldesk.limits")

_KEPT_SECONDS: Final = 3600  # of the post of a process that has ended


class ShareKeeper:
    """Share the rates of one process's limiter with the other processes'."""

    def __init__(self, own: TenantLimiter) -> None:
        self._limiter = own
        self._sharing = RateSharing(uuid.uuid4().hex, processes=settings.WEB_PROCESSES)
        self._away = False
        self._used: dict[str, Counts] = {}
        self._used_at = time.monotonic()

    @property
    def processes(self) -> int:
        """Return among how many processes each rate is shared, as far as this one knows."""
        return self._sharing.processes

    def turn(self) -> None:
        """Tell, read and take the part that follows. While the database is away, the part is an even one."""
        counts = self._limiter.counts()
        self._sharing.count(counts)
        try:
            self._exchange()
            self._away = False
        except PortalError as error:
            if not self._away:
                log.warning("What other processes are asked for is not known: %s", error.message)
            self._away = True
        self._limiter.divide(*self._sharing.shares())
        if time.monotonic() - self._used_at >= usage.SECONDS:
            self.note_usage(counts)

    def note_usage(self, counts: Mapping[str, tuple[float, Counts]]) -> None:
        """Write down what was asked for since the last time. What cannot be written is forgotten."""
        now, at = time.monotonic(), clock.now() - timedelta(seconds=usage.SECONDS / 2)
        seconds, self._used_at = now - self._used_at, now
        before, self._used = self._used, {tenant_id: counted for tenant_id, (_, counted) in counts.items()}
        for tenant_id, (per_second, counted) in counts.items():
            latest = counted.since(before.get(tenant_id, Counts()))
            if usage.is_told(latest, per_second=per_second, processes=self.processes, seconds=seconds):
                try:
                    usage.add(tenant_id, latest, at=at)
                except PortalError as error:
                    log.warning("What tenant %s asked for is not written down: %s", tenant_id, error.message)

    def _exchange(self) -> None:
        post = self._sharing.post()
        if post is not None:
            expires = int(time.time()) + _KEPT_SECONDS
            asked = json.dumps(post.asked)
            SharePostItem(keys.POSTS, post.process, counter=post.counter, asked=asked, expires_at=expires).save()
        posts = platform.query_all(SharePostItem, keys.POSTS)
        self._sharing.read(SharePost(one.process, int(one.counter), json.loads(one.asked)) for one in posts)


_lock = threading.Lock()
_keeper: ShareKeeper | None = None


def start() -> None:
    """Begin to share this process's rates, once; does nothing where RATES_SHARED is off."""
    if _keeper is None and settings.RATES_SHARED:
        with _lock:
            _start()


def _start() -> None:
    global _keeper
    if _keeper is None:
        _keeper = ShareKeeper(limiter)
        # A daemon: it keeps nothing that the process would have to finish.
        threading.Thread(target=_run, args=(_keeper,), name="rates", daemon=True).start()


def processes() -> int:
    """Return among how many processes each rate is shared, as far as this one knows."""
    return _keeper.processes if _keeper else 1


def _run(keeper: ShareKeeper) -> None:
    while True:
        try:
            keeper.turn()
        except Exception:  # limits go on with the parts of before, and so does this thread
            log.exception("The rates could not be shared")
        time.sleep(ROUND_SECONDS)


def _forget() -> None:
    global _keeper, _lock
    _keeper, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
