"""Look whether this process can serve people now: the engine answers, and its clock agrees with ours.

How far streams and queues are behind is told beside that, and makes nothing unready: if a worker stopped and the portal
went with it, late numbers would become an outage.

A look is remembered for two seconds, and no more than one is under way: many probes cost the engine nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from portal import clock
from portal.dynamo import probe
from portal.errors import PortalError
from portal.schema import registry
from portal.streams import watermark
from portal.streams.watermark import LATE_SECONDS

KEPT_SECONDS: Final = 2.0
WAIT_SECONDS: Final = 2.0  # for the engine's answer
# AWS refuses a request whose signature is five minutes off; much less puts changes in a wrong order for people.
MOST_CLOCK_SECONDS: Final = 30.0

# Each returns what it saw, or raises PortalError. What a feature adds tells of lags, and makes nothing unready.
_looks: Final[dict[str, Callable[[], Mapping[str, Any]]]] = {}


@dataclass(frozen=True)
class Readiness:
    is_ready: bool
    said: Mapping[str, Any]  # of each part


def declare_look(name: str, look: Callable[[], Mapping[str, Any]]) -> None:
    """Let `/readyz` tell what this function returns."""
    _looks[name] = look


def late() -> list[str]:
    """Return the names of what features tell of that is late now. Raises Unavailable."""
    return [name for name, one in _looks.items() if one().get("late")]


_lock = threading.Lock()
_looker: ThreadPoolExecutor | None = None
_last: Future[Readiness] | None = None
_last_at = 0.0


def look() -> Readiness:
    """Return how things stand, seen at most two seconds ago; unready where the engine takes longer than that."""
    try:
        return _begun().result(timeout=WAIT_SECONDS)
    except TimeoutError:
        return _unready(f"no answer within {WAIT_SECONDS:g} s")


def _begun() -> Future[Readiness]:
    """Return the look that is under way, or was made just now; begin one where there is none."""
    global _looker, _last, _last_at
    with _lock:
        if _looker is None:
            _looker = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        if _last is None or (_last.done() and time.monotonic() - _last_at > KEPT_SECONDS):
            _last, _last_at = _looker.submit(_look), time.monotonic()
        return _last


def forget() -> None:
    """Look anew with the next probe: in a forked child, which has no thread of this one, and for tests."""
    global _lock, _looker, _last
    _lock, _looker, _last = threading.Lock(), None, None


os.register_at_fork(after_in_child=forget)


def _look() -> Readiness:
    try:
        seen = probe.ask()
        lags: dict[str, Any] = {"streams": _streams()} | {name: dict(one()) for name, one in _looks.items()}
    except PortalError as error:
        return _unready(error.message)
    is_right = seen.ahead is None or abs(seen.ahead) <= MOST_CLOCK_SECONDS
    ahead = None if seen.ahead is None else round(seen.ahead)
    parts = {"engine": {"ok": True, "ms": round(seen.ms, 1)}, "clock": {"ok": is_right, "ahead": ahead}}
    return Readiness(is_right, {"ready": is_right, **parts, **lags})


def _unready(why: str) -> Readiness:
    return Readiness(False, {"ready": False, "engine": {"ok": False, "why": why}})


def _streams() -> dict[str, Any]:
    """Return how many seconds each stream of the pool is behind, None where nobody follows it."""
    found: dict[str, Any] = {}
    for table in registry.tables():
        if table.stream:
            known = watermark.read(table)
            behind = round((clock.now() - known.as_of).total_seconds()) if known else None
            found[table.name] = {"behind": behind, "late": behind is None or behind > LATE_SECONDS}
    return found
