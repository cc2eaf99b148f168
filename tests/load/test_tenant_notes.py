"""A process keeps in bounded memory who asked for how much, tells it once a minute, and all notes add up."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from django.conf import LazySettings
from django.test import Client

from portal.dynamo import meter, retry
from portal.dynamo.client import connection
from portal.dynamo.store import Store
from portal.errors import Throttled, Unavailable
from portal.heat_sketch import COUNTERS
from portal.load import measurement, noise_report, reporting
from portal.load.measurement import TOLD, NoiseTally, TenantNotes
from portal.load.noise_report import LoadReport
from portal.load.reporting import LoadReporter
from tests.support.noise import telling
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem

NOW = 1_780_000_020.0  # a minute begins
ACME, GLOBEX = "a" * 32, "b" * 32


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    yield
    reporting.stop()


def board(minutes: int = 5, at: float = NOW + 60) -> LoadReport:
    return noise_report.read(minutes=minutes, now=datetime.fromtimestamp(at, UTC))


def zipf(tenants: int, requests: int, seed: int) -> list[str]:
    rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
    names = [f"{number:032x}" for number in range(tenants)]
    rng.shuffle(names)
    return rng.choices(names, [1 / (n + 1) for n in range(tenants)], k=requests)


def tell_of(asked: list[str], time: Clock, *, processes: int = 3) -> tuple[list[TenantNotes], Counter[str]]:
    kept = [TenantNotes(clock=time) for _ in range(processes)]
    for place, tenant_id in enumerate(asked):
        kept[place % processes].note(tenant_id, NoiseTally(requests=1, units=1, reads=2, writes=1))
    time.now += 60
    for notes in kept:
        assert LoadReporter(notes, kind="web", role="platform").turn() == 1
    return kept, Counter(asked)


def test_of_ten_thousand_tenants_the_noisiest_are_known_and_the_sums_are_those_of_all(
    engine: None, time: Clock
) -> None:
    _, true = tell_of(zipf(10_000, 15_000, 1), time)
    found = board()
    top = {name for name, _ in true.most_common(10)}
    assert len(top & {one.tenant_id for one in found.noisiest(10)}) / 10 >= 0.95
    assert (found.total.requests, found.total.writes) == (15_000, 15_000)
    assert found.others.requests > 0, "somebody is named who should be among the others"


def test_the_board_reads_as_much_for_ten_thousand_tenants_as_for_those_that_an_item_names(
    engine: None, time: Clock
) -> None:
    bills = []
    for tenants in (TOLD, 10_000):
        tell_of(zipf(tenants, 4_000, 2), time)
        with meter.measure() as bill:
            board(at=time.now, minutes=1)
        bills.append(([call.operation for call in bill.calls], bill.items, bill.trips))
        assert bill.read_units <= 0.5 * 3 * 2, "three processes, and less than 8 KB each"
    assert bills == [(["Query"], 3, 1)] * 2


def test_memory_and_what_is_told_are_bounded(time: Clock) -> None:
    notes = TenantNotes(clock=time)
    for minute in range(20):
        for tenant_id in zipf(10_000, 1_000, minute):
            notes.note(tenant_id, NoiseTally(requests=1))
        assert len(notes._open.tenants) <= COUNTERS
        time.now += 60
    assert [len(one.tenants) for one in notes.over()] == [TOLD] * 5
    assert sum(one.total().requests for one in notes.over()) == 5_000


def test_who_did_nothing_for_a_tenant_tells_nothing(engine: None, time: Clock) -> None:
    notes = TenantNotes(clock=time)
    notes.note("", NoiseTally(reads=3))
    time.now += 60
    with meter.measure() as bill:
        assert LoadReporter(notes, kind="web", role="platform").turn() == 0
    assert bill.calls == []


def test_a_minute_is_told_once_and_by_one_item(engine: None, time: Clock) -> None:
    notes = TenantNotes(clock=time)
    reporter = LoadReporter(notes, kind="web", role="platform")
    for _ in range(300):
        notes.note(ACME, NoiseTally(requests=1))
    assert reporter.turn() == 0, "the minute is not over"
    time.now += 60
    with meter.measure() as bill:
        assert [reporter.turn(), reporter.turn()] == [1, 0]
    assert [call.operation for call in bill.calls] == ["PutItem"]


def test_a_minute_that_cannot_be_told_is_told_later(engine: None, time: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = TenantNotes(clock=time)
    reporter = LoadReporter(notes, kind="web", role="platform")
    notes.note(ACME, NoiseTally(requests=7))
    time.now += 60

    def away(role: str) -> Any:
        raise Unavailable("The database cannot be reached.")

    with monkeypatch.context() as patched:
        patched.setattr("portal.dynamo.client.connection", away)
        assert reporter.turn() == 0
    assert reporter.turn() == 1
    assert board(at=time.now).tenants[ACME].tally.requests == 7


def test_each_kind_of_process_may_tell_and_none_but_the_portal_may_read(engine: None, time: Clock) -> None:
    for kind, role in (("web", "platform"), ("stream worker", "worker"), ("delivery worker", "delivery")):
        notes = TenantNotes(clock=time)
        notes.note(ACME, NoiseTally(deliveries=1, wait=len(kind)))
        assert LoadReporter(notes, kind=kind, role=role).turn(last=True) == 1
    found = board()
    assert {kind: len(processes) for kind, processes in found.kinds.items()} == {
        "web": 1, "stream worker": 1, "delivery worker": 1,
    }  # fmt: skip
    assert (found.tenants[ACME].tally.deliveries, found.tenants[ACME].tally.wait) == (3, len("delivery worker"))


def test_each_request_that_the_database_throttled_is_noted_for_the_tenant_it_was_sent_for(
    engine: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    body = b'{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "busy"}'
    events = connection("tenant").client.meta.events

    def throttle(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, 400, {}, SimpleNamespace(stream=lambda: [body]))

    events.register("before-send.dynamodb.GetItem", throttle)
    try:
        with telling(settings) as told, pytest.raises(Throttled):
            Store("tenant", ACME).get(SummaryItem, stored.ticket, 7, sort=stored.SUMMARY)
    finally:
        events.unregister("before-send.dynamodb.GetItem", throttle)
    assert told().tenants[ACME].tally.throttles == settings.DYNAMODB_MAX_ATTEMPTS


def test_answers_are_counted_with_those_that_failed_and_a_sample_of_their_times(
    settings: LazySettings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.CLOUDWATCH_METRICS = True
    measurement.answers.take()
    Client().get("/login/")
    measurement.answers.note(503, 2000)
    for ms in range(500):
        measurement.answers.note(200, ms)
    reporting.say_answers("web", at=NOW)
    reporting.say_answers("web", at=NOW)
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["Answers"], line["AnswersWithError"], len(line["AnswerTime"])) == (502, 1, measurement.SAMPLE)
    assert {metric["Name"]: metric["Unit"] for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]} == {
        "Answers": "Count", "AnswersWithError": "Count", "AnswerTime": "Milliseconds",
    }  # fmt: skip


def test_a_line_of_metrics_is_as_cloudwatch_wants_it(
    time: Clock, engine: None, settings: LazySettings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.CLOUDWATCH_METRICS = True
    notes = TenantNotes(clock=time)
    notes.note(ACME, NoiseTally(requests=4, refused=1, dead=2))
    reporter = LoadReporter(notes, kind="web", role="platform", gauges=lambda: {reporting.LAG: 1.5})
    time.now += 60
    reporter.turn()
    reporter.measure()
    said, gauge = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (said["Requests"], said["RequestsRefused"], said["DeadLetters"], gauge["StreamLag"]) == (4, 1, 2, 1.5)
    assert said["_aws"]["Timestamp"] == NOW * 1000
    for line in (said, gauge):
        [directive] = line["_aws"]["CloudWatchMetrics"]
        named = [metric["Name"] for metric in directive["Metrics"]]
        assert {*named, *(name for names in directive["Dimensions"] for name in names)} == set(line) - {"_aws"}
    assert ACME not in json.dumps(said), "each tenant would be metrics that are paid for"


def test_nothing_is_said_where_metrics_are_off(time: Clock, engine: None, capsys: pytest.CaptureFixture[str]) -> None:
    tell_of([ACME], time, processes=1)
    assert capsys.readouterr().out == ""
