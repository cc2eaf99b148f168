"""Repeat what was refused for a passing reason: exponential backoff with full jitter, within one budget.

A repetition inside a repetition does not multiply: it spends what is left of the outer one's budget. So one call of
`retrying`, whatever it calls, makes no more repetitions than it was given. botocore's own are off.

Retries for a tenant also take from one bucket of that tenant. While one of its partitions is throttled, its requests
soon fail at once and hold no threads; those of others are repeated as ever.

Source: AWS Architecture Blog, "Exponential Backoff and Jitter": a pause is drawn evenly between nothing and a bound
that doubles, which keeps writers that met once from meeting again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from portal.errors import PortalError
from portal.quotas import RecentTenants, TokenBucket

_T = TypeVar("_T")

TENANT_PER_SECOND: Final = 5.0  # repetitions for one tenant in one process
TENANT_BURST: Final = 30

# Tests replace these two.
sleep = time.sleep
uniform = random.uniform


class Budget:
    """The repetitions that one outermost call of `retrying` and everything inside it may still make."""

    def __init__(self, repetitions: int) -> None:
        self._numbers = iter(range(repetitions))

    def spend(self) -> int | None:
        """Take one repetition and return its number from 0, or None where none is left."""
        return next(self._numbers, None)  # atomic: threads of a fan-out share a budget


_budget: ContextVar[Budget | None] = ContextVar("retry_budget", default=None)
_tenant: ContextVar[str] = ContextVar("retry_tenant", default="")
_lock = threading.Lock()
_buckets: RecentTenants[TokenBucket] = RecentTenants(
    lambda _: TokenBucket(per_second=TENANT_PER_SECOND, burst=TENANT_BURST)
)


@contextmanager
def on_behalf_of(tenant_id: str) -> Iterator[None]:
    """Let what is repeated inside come out of this tenant's bucket. Workers and commands have none."""
    token = _tenant.set(tenant_id)
    try:
        yield
    finally:
        _tenant.reset(token)


def tenant() -> str:
    """Return on whose behalf this is done, "" for nobody's."""
    return _tenant.get()


def pause_before(number: int) -> float | None:
    """Return the seconds to wait before a single request is sent again, counted from 0; None where it may not be.

    Inside of `retrying` it spends that budget.
    """
    budget = _budget.get()
    if (budget is not None and budget.spend() is None) or not _tenant_may():
        return None
    return pause(number, first=0.05, longest=1.0)


def _tenant_may() -> bool:
    """Take a repetition from the bucket of the tenant on whose behalf this is done."""
    tenant_id = _tenant.get()
    if not tenant_id:
        return True
    with _lock:
        return _buckets.of(tenant_id).take()


def retrying(
    attempt: Callable[[], _T],
    *,
    again: Callable[[PortalError], bool],
    attempts: int,
    first: float = 0.01,
    longest: float = 0.3,
    given_up: Callable[[], PortalError] | None = None,
) -> _T:
    """Call until it returns, or raises what `again` does not accept; at most `attempts` times, and return its result.

    `first` bounds the first pause, `longest` every pause, in seconds. Without a repetition left, raises what
    `given_up` makes, or the last error where that is None.
    """
    with _shared(attempts - 1) as budget:
        while True:
            try:
                return attempt()
            except PortalError as error:
                if not again(error):
                    raise
                number = budget.spend()
                if number is None or not _tenant_may():
                    if given_up is None:
                        raise
                    raise given_up() from error
            sleep(pause(number, first=first, longest=longest))


def pause(number: int, *, first: float, longest: float) -> float:
    """Return the seconds to wait before a repetition, counted from 0: drawn evenly below a bound that doubles."""
    return uniform(0, min(longest, first * 2 ** min(number, 16)))


@contextmanager
def _shared(repetitions: int) -> Iterator[Budget]:
    """Return the budget of the repetition that this one is a part of, or a new one."""
    outer = _budget.get()
    if outer is not None:
        yield outer
        return
    budget = Budget(repetitions)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)
