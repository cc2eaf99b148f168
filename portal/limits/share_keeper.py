"""Keep this process's part of the tenants' rates up to date, in a thread beside the requests. Rules are in sharing.py.

A round costs one Query of all posts, and one PutItem where there is something to tell, or now and then to say that the
process lives. docs/adr/0020-limits-at-the-door.md has the formula.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from typing import Final

from django.conf import settings

from portal.dynamo import platform
from portal.errors import PortalError
from portal.limits import keys
from portal.limits.items import SharePostItem
from portal.limits.sharing import ROUND_SECONDS, RateSharing, SharePost
from portal.limits.tables import SHARES
from portal.limits.tenant_limiter import TenantLimiter, limiter

log = logging.getLogger("pooldesk.limits")

_KEPT_SECONDS: Final = 3600  # of the post of a process that has ended


class ShareKeeper:
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
        self._sharing.count(self._limiter.counts())
        try:
            self._exchange()
            self._away = False
        except PortalError as error:
            if not self._away:
                log.warning("What other processes are asked for is not known: %s", error.message)
            self._away = True
        self._limiter.divide(*self._sharing.shares())

    def _exchange(self) -> None:
        post = self._sharing.post()
        if post is not None:
            expires = int(time.time()) + _KEPT_SECONDS
            asked = json.dumps(post.asked)
            SharePostItem(keys.POSTS, post.process, counter=post.counter, asked=asked, expires_at=expires).save()
        stored = [SharePostItem.from_raw_data(raw) for raw in platform.query_all(SHARES, keys.POSTS)]
        self._sharing.read(SharePost(one.process, int(one.counter), json.loads(one.asked)) for one in stored)


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
