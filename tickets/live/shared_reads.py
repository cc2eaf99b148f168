"""Share what open pages ask for among those of one process: an answer holds for two seconds, by desk and ticket.

It says who is on a ticket and when something was changed last, and no text. A page has it only by its own token, which
names the desk; the place of the desk is part of the key, so that a move begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from portal.bounded_cache import BoundedCache
from tenants.tenancy.context import TenantContext

SECONDS: float = 2
_MOST: Final = 2_000  # answers of a process, of some hundred bytes each

_answers: Final = BoundedCache[tuple[str, str, str, int], tuple[float, Any]](_MOST)


def latest(desk: TenantContext, what: str, number: int, read: Callable[[], Any]) -> Any:
    """Return what `read` returned at most SECONDS ago, for whichever page of the desk, else call it."""
    now, key = time.monotonic(), _key(desk, what, number)
    known = _answers.get(key)
    if known is not None and now - known[0] < SECONDS:
        return known[1]
    answer = read()
    _answers.put(key, (now, answer))
    return answer


def learned(desk: TenantContext, what: str, number: int, answer: Any) -> None:
    """Take over an answer that a write has brought."""
    _answers.put(_key(desk, what, number), (time.monotonic(), answer))


def _key(desk: TenantContext, what: str, number: int) -> tuple[str, str, str, int]:
    return desk.tenant_id, str(desk.where.placement), what, number
