"""Work beside a stream goes on whatever happens in it, and says once that the database is away."""

from __future__ import annotations

import logging
import threading

import pytest

from portal.errors import Unavailable
from portal.streams import background


def test_errors_end_nothing_and_an_absent_database_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "AWAY_SECONDS", 0.0)
    errors, done = [Unavailable("away"), Unavailable("away"), ValueError("odd")], threading.Event()

    def turn(again: object) -> None:
        if errors:
            raise errors.pop(0)
        done.set()

    with background.working(turn, pause=lambda: 0.01, name="sending", log=logging.getLogger("pooldesk.test")):
        assert done.wait(120)
    assert [record.getMessage() for record in caplog.records] == [
        "The sending waits, it is tried again: away",
        "The sending failed, it is tried again.",
    ]
