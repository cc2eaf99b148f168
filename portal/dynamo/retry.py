"""Repeat what was refused for a passing reason: exponential backoff with full jitter, within one budget.

A repetition inside a repetition does not multiply: it spends what is left of the outer one's budget. So one call of
`retrying`, whatever it calls, makes no more repetitions than it was given.

Source: AWS Architecture Blog, "Exponential Backoff and Jitter": a pause is drawn evenly between nothing and a bound
that doubles, which keeps writers that met once from meeting again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from portal.errors import PortalError

_T = TypeVar("_T")

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


def retrying(
    attempt: Callable[[], _T],
    *,
    again: Callable[[PortalError], bool],
    attempts: int,
    first: float = 0.01,
    longest: float = 0.3,
    given_up: PortalError | None = None,
) -> _T:
    """Call until it returns, or raises what `again` does not accept; at most `attempts` times, and return its result.

    `first` bounds the first pause, `longest` every pause, in seconds. Without a repetition left, raises `given_up`, or
    the last error where that is None.
    """
    with _shared(attempts - 1) as budget:
        while True:
            try:
                return attempt()
            except PortalError as error:
                if not again(error):
                    raise
                number = budget.spend()
                if number is None:
                    if given_up is None:
                        raise
                    raise given_up from error
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
