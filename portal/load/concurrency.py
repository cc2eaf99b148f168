"""Bound what of one tenant is at work at the same time in this process.

Requests over it are refused; a search first waits a moment, because searches of one person who types come close
together."""

from __future__ import annotations

import threading
from typing import Final

from django.conf import settings

from portal.errors import LimitReached
from portal.quotas import TenantPlaces

SEARCH_WAIT_SECONDS = 2.0  # that a search waits for a place; it holds a thread of its tenant meanwhile
TOO_MANY: Final = "too_many_at_once"  # the code of what is refused here, for programs
_threads: int | None = None
stopping: Final = threading.Event()  # set when this process is to end
jobs: Final[set[threading.Thread]] = set()  # work beside requests, which ends itself soon after `stopping` is set


class TooHeavy(LimitReached):
    """The tenant has as much heavy work under way as it may have at a time."""

    code = TOO_MANY


def serve_with(threads: int) -> None:
    """Take note of how many threads this process answers requests with, where that is not WEB_THREADS."""
    global _threads
    _threads = threads


def _half_of_the_threads() -> int:
    return max(1, (_threads or settings.WEB_THREADS) // 2)


requests: Final = TenantPlaces(_half_of_the_threads)
heavy: Final = TenantPlaces(lambda: settings.HEAVY_AT_A_TIME)  # bulk changes, exports and the like
searches: Final = TenantPlaces(lambda: settings.SEARCHES_AT_A_TIME)  # those while somebody types among them
