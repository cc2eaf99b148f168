"""The end of a process at any of its calls to the database, without a process: what kills try in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from portal.dynamo import client

_WRITES = ("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem", "TransactWriteItems")


class Killed(BaseException):
    """The process is no more."""


@contextmanager
def killed_at(
    monkeypatch: pytest.MonkeyPatch, calls: int, *, sent: bool = True, writes_only: bool = False
) -> Iterator[None]:
    """The process ends at its call of this number, or its write, before it is sent or after; nothing later arrives."""
    dispatch, left = client.SharedConnection.dispatch, calls

    def dying(self: client.SharedConnection, operation: str, *request: Any, **more: Any) -> Any:
        nonlocal left
        counts = operation in _WRITES or not writes_only
        left -= counts
        if left < 0 or (counts and left == 0 and not sent):
            raise Killed
        answer = dispatch(self, operation, *request, **more)
        if counts and left == 0:
            left -= 1
            raise Killed
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(client.SharedConnection, "dispatch", dying)
        yield


def one_by_one(calls: list[Callable[[], Any]]) -> list[Any]:
    """What fans out otherwise, in an order that a kill can be told by."""
    return [call() for call in calls]
