"""Random histories in the database, while processes die at any request, handlers are called again and clocks jump: in
the end each target that was missed has its one receipt and its one event, as the history alone says."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from delivery.timers import due_worker
from delivery.timers.due_worker import DueWorker
from portal import clock
from portal.dynamo.store import Store
from tenants.tenancy.context import TenantContext
from tests.sla.test_tickets_with_targets import NOON, Time, ada, asked, desk, time  # noqa: F401
from tests.support import outbox
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import Wishes
from tickets.sla import clocks, tracking
from tickets.ticket.fields import Priority, Status

HISTORIES = int(os.environ.get("SLA_KILLS", "3"))  # a night's run takes more
DAY = 24


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killing(draw: random.Random, part: float) -> Iterator[None]:
    """Let a part of the writes end the process, before or after the database has done them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("transact", "update", "delete"):
            patch.setattr(Store, name, _dying(draw, part, getattr(Store, name)))
        with suppress(Killed):
            yield


def _dying(draw: random.Random, part: float, real: Any) -> Any:
    def write(store: Store, *args: Any, **how: Any) -> Any:
        if draw.random() < part:
            raise Killed
        done = real(store, *args, **how)
        if draw.random() < part:
            raise Killed
        return done

    return write


def look(draw: random.Random, time: Time, hours: float, *, ahead: bool) -> None:  # noqa: F811
    """Let workers look at an hour after noon: some die, some have a clock that is a day behind, or `ahead`."""
    for _ in range(draw.randint(1, 3)):
        time.at(hours + draw.choice((0, 0, -DAY, *([DAY] if ahead else []))))
        with killing(draw, draw.choice((0, 0.3))):
            DueWorker().turn()


@pytest.mark.parametrize("ahead", [False, True], ids=["", "some clocks ahead"])
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_kills_repetitions_and_jumps_leave_one_receipt_and_one_event_for_each_missed_target(
    desk: TenantContext,  # noqa: F811
    ada: Any,  # noqa: F811
    time: Time,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    ahead: bool,
) -> None:
    monkeypatch.setattr(due_worker, "THREADS", 1)
    draw, hours = random.Random(seed), 0.0  # noqa: S311
    number = creating.create(desk, title="The printer", requester=ada)
    for _ in range(5):
        hours += draw.choice((0.1, 0.4, 1.1, 2.5, 9))
        look(draw, time, hours, ahead=ahead)
        time.at(hours)
        _step(draw, desk, ada, number)
    hours = _at_rest(time, hours)
    if ahead:  # what a clock that was ahead has told too early is taken out with the next step
        commenting.comment(desk, number, body="And now?")
        _at_rest(time, hours)
    assert tracking.check(desk, number).faults == []
    found = tracking.replayed(desk, number)
    assert found is not None
    missed = clocks.misses(found.passed, found.stored.as_of)
    assert found.receipts.keys() == missed.keys()
    if not ahead:
        events = [one["data"] for one in outbox.told() if one["type"] == "ticket.breached"]
        told = Counter((one["target"], one["due_at"]) for one in events)
        assert told == Counter((miss.target, clock.stamp(NOON.fromtimestamp(miss.due, NOON.tzinfo))) for miss in missed)


def _at_rest(time: Time, hours: float) -> float:  # noqa: F811
    """Let a worker do all that is left, also what one that died has claimed by a clock that was a day ahead."""
    for _ in range(2 * DAY):
        hours += 1
        time.at(hours)
        while DueWorker().turn():
            pass
    return hours


def _step(draw: random.Random, desk: TenantContext, ada: Any, number: int) -> None:  # noqa: F811
    what = draw.choice(("answer", "question", "priority", "pause", "open"))
    if what == "answer":
        commenting.comment(desk, number, body="Yes.")
    elif what == "question":
        asked(desk, number, ada)
    elif what == "priority":
        changing.change(desk, number, Wishes(priority=draw.choice((Priority.URGENT, Priority.LOW))))
    else:
        changing.change(desk, number, Wishes(status=Status.PENDING if what == "pause" else Status.OPEN))
