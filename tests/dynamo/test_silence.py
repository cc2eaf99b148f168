"""An endpoint that gives no answers is not waited for by every request, and is found again at once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from portal.dynamo import item_protocol
from portal.dynamo.item_protocol import PROBE_SECONDS, Silence


class Clock:
    now = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(item_protocol, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    monkeypatch.setattr(Clock, "now", 100.0)
    return Clock()


def passed(here: Silence, requests: int = 5) -> int:
    return sum(here.lets_pass() for _ in range(requests))


def test_after_a_request_without_answer_one_in_each_half_second_goes_out(clock: Clock) -> None:
    here = Silence()
    Clock.now = 103.0
    here.note_timeout(since=101.5)
    assert passed(here) == 0
    Clock.now += PROBE_SECONDS
    assert passed(here) == 1
    Clock.now += PROBE_SECONDS
    assert passed(here) == 1


def test_a_slow_request_proves_nothing_while_others_are_answered(clock: Clock) -> None:
    here = Silence()
    Clock.now = 102.0
    here.end()
    Clock.now = 103.0
    here.note_timeout(since=101.5)
    assert passed(here) == 5


def test_the_first_answer_ends_it_for_all(clock: Clock) -> None:
    here = Silence()
    Clock.now = 103.0
    here.note_timeout(since=101.5)
    here.end()
    assert passed(here) == 5
