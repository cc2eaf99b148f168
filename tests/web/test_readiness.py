"""`/readyz` says whether a process can serve people now, to any host, and does not burden the engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings

from delivery.queues import depths
from delivery.queues.queue_transport import Depth
from portal import clock
from portal.dynamo import meter, probe
from portal.dynamo.probe import Probe
from portal.streams import watermark
from portal.version_number import VERSION
from portal.web import readiness
from tests.desk.test_outage import engine_down
from tests.support.world import Browser, World
from tickets.ticket.stored import TICKETS


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    readiness.forget()
    yield
    readiness.forget()


def ready(host: str = "10.0.3.17:8000") -> tuple[int, Any]:
    answer = Browser().get("/readyz", headers={"Host": host})
    return answer.status_code, answer.json()


def test_it_tells_of_engine_clock_streams_and_queues_to_any_host(world: World, settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    depths.write([Depth(2, 1, 0), Depth(0, 0, 4)])
    watermark.write(TICKETS, clock.stamp(clock.now() - timedelta(minutes=10)))
    status, said = ready()
    assert (status, said["ready"], said["engine"]["ok"], said["version"]) == (200, True, True, VERSION)
    assert (said["clock"]["ok"], abs(said["clock"]["ahead"]) < 30) == (True, True)
    assert (said["queues"]["waiting"], said["queues"]["late"]) == (7, False)
    assert 600 <= said["streams"][TICKETS.name]["behind"] < 900
    assert said["streams"][TICKETS.name]["late"], "it is told, and takes no portal away"


def test_where_nobody_has_worked_yet_it_says_so(world: World) -> None:
    status, said = ready()
    assert (status, said["queues"]) == (200, {"waiting": None})
    assert said["streams"]["Events.Outbox"] == {"behind": None, "late": True}


def test_without_its_engine_it_is_not_ready(settings: LazySettings) -> None:
    with engine_down(settings):
        status, said = ready()
    assert (status, said["ready"], said["engine"]["ok"], said["version"]) == (503, False, False, VERSION)


def test_an_engine_that_does_not_answer_is_not_waited_for_and_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, asked = threading.Event(), []

    def ask() -> Probe:
        asked.append(1)
        answered.wait()
        return Probe(1.0, 0.0)

    monkeypatch.setattr(probe, "ask", ask)
    monkeypatch.setattr(readiness, "WAIT_SECONDS", 0.01)
    assert [ready()[0] for _ in range(3)] == [503] * 3
    answered.set()
    assert asked == [1]


@pytest.mark.parametrize(("seconds", "status"), [(0, 200), (29, 200), (-29, 200), (31, 503), (-31, 503), (None, 200)])
def test_a_clock_that_is_wrong_is_not_ready(
    world: World, monkeypatch: pytest.MonkeyPatch, seconds: float | None, status: int
) -> None:
    monkeypatch.setattr(probe, "ask", lambda: Probe(1.0, seconds))
    assert ready()[0] == status


def test_the_engines_time_is_read_from_its_answers(world: World) -> None:
    now = datetime.now(UTC)
    ahead = probe.ask().ahead
    assert ahead is not None
    assert abs(ahead) < 30, now


def test_many_probes_are_one_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(probe, "ask", lambda: asked.append(1) or Probe(1.0, 0.0))
    with meter.measure():
        assert [ready()[0] for _ in range(5)] == [200] * 5
    assert asked == [1]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_it_is_only_asked_for(path: str) -> None:
    assert Browser().post(path).status_code == 405
