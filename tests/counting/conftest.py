"""A worker of tomorrow, for tests of what one of today has put aside."""

from __future__ import annotations

import pytest

from tickets.counting import contributions
from tickets.counting.stored import DeadLetterItem
from tickets.ticket.fields import Status


@pytest.fixture
def knows_escalated(letter: DeadLetterItem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of tomorrow takes the new status for a resolved one."""
    real = Status
    monkeypatch.setattr(contributions, "Status", lambda text: real("resolved" if text == "escalated" else text))
