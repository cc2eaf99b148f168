"""Report what this process did, once a minute, in a thread beside its work: one item a minute at most, usage, costs.

A process that did nothing for any tenant writes nothing. Where the database is away, a few minutes are kept and written
later. Capacity is measured by itself: the meter says what each request to DynamoDB was charged.

Sums are also printed as a line of JSON, from which CloudWatch makes metrics without a call or an agent. Tenants are no
dimension: each value of one is a metric that is paid for. The operators' page names the tenants.

Source: AWS, "Specification: Embedded metric format": the line is one JSON object and nothing else, Timestamp is in
milliseconds, and each dimension and metric that is named is a member of the object.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings

from portal import clock
from portal.dynamo.store import Store
from portal.errors import PortalError
from portal.faults import fault_board
from portal.load import excess_costs, incidents, measurement, route_costs, spending, stored, usage
from portal.load.measurement import MINUTE, MinuteNotes, NoiseTally, TenantNotes
from portal.load.stored import NoiseItem
from portal.schema.keys import joined, whole_number
from portal.schema.registry import Role

log = logging.getLogger("pooldesk.noise")

KEPT_SECONDS: Final = 6 * 3600
OTHERS, NOBODY = "others", "nobody"
_TURN_SECONDS: Final = 5.0
_COMPARED_SECONDS: Final = 3600.0  # between two comparisons of what routes cost: 14 Queries
_LAST_SECONDS: Final = 10.0  # that a command waits for its costs to be written
_LATEST: Final = 30.0  # seconds after a minute, by which processes spread what they write

Value = float | Sequence[float]  # of a metric; several are measurements, of which CloudWatch makes percentiles

NAMESPACE: Final = "Pooldesk"
PREFIX, PROCESS = "TablePrefix", "Process"  # the dimensions: an installation, and a kind of process
METRICS: Final = {
    "requests": "Requests",
    "refused": "RequestsRefused",
    "reads": "ReadUnits",
    "writes": "WriteUnits",
    "throttles": "Throttles",
    "deliveries": "Deliveries",
    "failed": "DeliveriesFailed",
    "put_off": "DeliveriesPutOff",
    "dead": "DeadLetters",
}
DEARER: Final = "DearerRoutes"
LAG: Final = "StreamLag"
DUE_LAG: Final = "DueLag"
ANSWERS: Final = {"Answers": "Count", "AnswersWithError": "Count", "AnswerTime": "Milliseconds"}


def say(kind: str, total: NoiseTally, *, at: int) -> None:
    """Print what was done in a minute that began `at`, in seconds since the epoch; nothing where that is not wanted."""
    _print(
        kind,
        {name: getattr(total, field) for field, name in METRICS.items()},
        dict.fromkeys(METRICS.values(), "Count"),
        at,
    )


def say_gauges(kind: str, seconds: Mapping[str, float], *, at: int) -> None:
    """Print what was measured at a moment, in seconds each."""
    _print(kind, seconds, dict.fromkeys(seconds, "Seconds"), at)


def say_answers(kind: str, *, at: int) -> None:
    """Print how many requests were answered since the last call, how many by an error of the portal, and a sample of
    the times; nothing where none was."""
    total, errors, times = measurement.answers.take()
    if total:
        _print(kind, dict(zip(ANSWERS, (total, errors, times), strict=True)), ANSWERS, at)


def document(kind: str, values: Mapping[str, Value], units: Mapping[str, str], at: int) -> dict[str, Any]:
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [[PREFIX], [PREFIX, PROCESS]],
        "Metrics": [{"Name": name, "Unit": units[name]} for name in values],
    }
    return {
        "_aws": {"Timestamp": at * 1000, "CloudWatchMetrics": [directive]},
        PREFIX: settings.DYNAMODB_TABLE_PREFIX,
        PROCESS: kind,
        **{name: _rounded(value) for name, value in values.items()},
    }


def _rounded(value: Value) -> Value:
    return round(value, 1) if isinstance(value, float | int) else [round(one, 1) for one in value]


def _print(kind: str, values: Mapping[str, Value], units: Mapping[str, str], at: int) -> None:
    if settings.CLOUDWATCH_METRICS:
        line = json.dumps(document(kind, values, units, at), separators=(",", ":"))
        with suppress(OSError):  # whoever read it is gone
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


Gauges = Callable[[], Mapping[str, float]]


class LoadReporter:
    """Tell what the notes of one process say. `kind` names such processes, and `role` is what it writes as.

    `gauges` returns what is measured beside that, by the name of a metric.
    """

    def __init__(self, notes: TenantNotes, *, kind: str, role: Role, gauges: Gauges = dict) -> None:
        self._notes, self._kind, self._role, self._gauges = notes, kind, role, gauges
        self._me, self._told = uuid.uuid4().hex, 0
        self._away = False
        self._compared_after = 0.0  # by the monotonic clock

    def turn(self, *, last: bool = False) -> int:
        """Tell of the minutes that are over, `last` of the one that is not as well. Return how many were told."""
        minutes = self._notes.all() if last else self._notes.over()
        for told, notes in enumerate(minutes):
            try:
                self._tell(notes)
            except PortalError as error:
                if not self._away:
                    log.warning("What was done cannot be written down, it is tried again: %s", error.message)
                self._away = True
                return told
            self._away = False
            self._notes.told(notes)
            usage.write(notes.asked, at=datetime.fromtimestamp(notes.minute * MINUTE, UTC))
            if self._role == "platform":  # a web process, which refuses requests; others work in the background
                incidents.write(notes)
            say(self._kind, notes.total(), at=notes.minute * MINUTE)
        return len(minutes)

    def measure(self) -> None:
        if gauges := self._gauges():
            say_gauges(self._kind, gauges, at=int(time.time()))
        self.say_answers()

    def say_answers(self) -> None:
        """Say what was answered since the last time."""
        say_answers(self._kind, at=int(time.time()))

    def tell_costs(self, *, last: bool = False, seconds: float | None = None) -> None:
        """Write down the costs that are due; with what routes cost, say how many got dearer with this release."""
        spending.write_due(self._role, last=last, seconds=seconds)
        if self._role == "platform" and route_costs.route_costs.write_due(last=last) and not last:
            self._say_dearer()

    def _say_dearer(self) -> None:
        if time.monotonic() < self._compared_after:
            return
        self._compared_after = time.monotonic() + _COMPARED_SECONDS
        with spending.on_own_account():
            found = route_costs.dearer(route_costs.read(route_costs.latest(clock.now())))
        route_costs.route_costs.dearer = found
        for one in found:
            log.warning("A route costs more than before the release: %s", one)
        _print(self._kind, {DEARER: len(found)}, {DEARER: "Count"}, int(time.time()))

    def tell_faults(self) -> None:
        """Write down the errors of this process; those that cannot be written now are written later."""
        try:
            fault_board.write(self._kind, self._role)
        except PortalError as error:
            log.warning("Errors cannot be written down, it is tried again: %s", error.message)

    def tell_excesses(self) -> None:
        """Write down the routes that took more than they declare; what cannot be written now is written later."""
        try:
            excess_costs.write(self._role)
        except PortalError as error:
            log.warning("Routes that cost too much cannot be written down, it is tried again: %s", error.message)

    def _tell(self, notes: MinuteNotes) -> None:
        tallies = {tenant_id: tally.stored() for tenant_id, tally in notes.tenants.items()}
        tallies |= {OTHERS: notes.others.stored(), NOBODY: notes.nobody.stored()}
        self._told += 1
        item = NoiseItem(
            stored.notes_of(notes.minute),
            joined(self._kind, self._me, whole_number(self._told, "a count")),
            tallies=json.dumps(tallies, separators=(",", ":")),
            expires_at=int(time.time()) + KEPT_SECONDS,
        )
        Store(self._role).put(item)


_lock = threading.Lock()
_reporter: LoadReporter | None = None


def start(kind: str, role: Role, *, gauges: Gauges = dict, in_thread: bool = True) -> None:
    """Begin to take notes, once, and to tell them; does nothing where NOISE_NOTED is off.

    Without `in_thread` the caller calls `turn` now and then: a Lambda function has no time between two calls.
    """
    global _reporter
    with _lock:
        if _reporter is None and settings.NOISE_NOTED:
            _reporter = LoadReporter(measurement.take(True), kind=kind, role=role, gauges=gauges)
            if in_thread:
                threading.Thread(target=_run, args=(_reporter,), name="noise", daemon=True).start()


def turn() -> None:
    """Tell of the minutes that are over, and of errors, where somebody takes notes."""
    if _reporter is not None:
        _reporter.turn()
        _reporter.tell_costs()
        _reporter.tell_faults()


def stop(*, seconds: float | None = None) -> None:
    """Write down what is left, costs for so many seconds at most, and take no more notes."""
    global _reporter
    with _lock:
        ending, _reporter = _reporter, None
        measurement.take(False)
    if ending is not None:
        ending.turn(last=True)
        ending.tell_costs(last=True, seconds=seconds)
        ending.say_answers()
        ending.tell_excesses()
        ending.tell_faults()


@contextmanager
def costs_of_command() -> Iterator[None]:
    """Write down what a command spends, once a minute and at its end, where it is no process that reports by itself.

    The command is never the worse for it: costs that cannot be written, for example since the role of the command may
    not, are given up with a warning.
    """
    if spending.is_kept or not settings.NOISE_NOTED:  # kept already: a command that another one calls
        yield
        return
    measurement.take(True)
    ended = threading.Event()
    thread = threading.Thread(target=_write_costs, args=(ended,), name="costs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LAST_SECONDS)
        _write_now(last=True)
        measurement.take(False)


def _write_costs(ended: threading.Event) -> None:
    while not ended.wait(MINUTE) and _write_now():
        pass


def _write_now(*, last: bool = False) -> bool:
    try:
        spending.write_due("platform", last=last, seconds=_LAST_SECONDS)
    except Exception as error:  # whatever it is, the command has done its work
        log.warning("What this command has spent is not written down: %s", error)
        return False
    return True


def _run(reporter: LoadReporter) -> None:
    after, minute = random.uniform(0, _LATEST), int(time.time() // MINUTE)  # noqa: S311  # no secret
    while _reporter is reporter:
        time.sleep(_TURN_SECONDS)
        reporter.tell_faults()
        now = time.time() - after
        if int(now // MINUTE) == minute:
            continue
        minute = int(now // MINUTE)
        try:
            reporter.turn()
            reporter.tell_excesses()
            reporter.measure()
            reporter.tell_costs()
        except Exception:  # whatever it is, the process has other work to do
            log.exception("What was done could not be told")


def _forget() -> None:
    global _lock, _reporter
    _lock, _reporter = threading.Lock(), None
    measurement.forget()
    excess_costs.take()


os.register_at_fork(after_in_child=_forget)
