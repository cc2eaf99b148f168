"""The clocks of random histories against a slow reference, which walks through them minute by minute by zoneinfo."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tickets.sla import clocks
from tickets.sla.clocks import ANSWER, QUESTION, Clocks, Miss, Step
from tickets.sla.policy import Calendar, SlaPolicy, TargetRule
from tickets.ticket.due_marks import FIRST, NEXT, SOLUTION, TARGETS, DueMarks

HISTORIES = int(os.environ.get("SLA_HISTORIES", "30"))  # a night's run takes more
MINUTE, DAY = 60, 1440
# Around changes of the clocks by an hour and by half of one, a leap day, and the skipped end of a year.
STARTS = ("2026-03-27", "2026-10-23", "2026-03-06", "2026-10-30", "2026-04-03", "2028-02-26", "2026-12-28")
ZONES = (
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Chatham", "Africa/Casablanca",
    "America/St_Johns", "UTC",
)  # fmt: skip
OFFICE = (((540, 720), (780, 1020)),) * 5 + ((), ())
NIGHT = (((0, 150), (1380, 1440)),) * 7
ALWAYS = (((0, 1440),),) * 7
DAYS_OFF = frozenset({"2026-10-26", "2026-12-31", "2027-01-01", "2028-02-29", "2026-03-30"})

MINUTES = (0, 2, 30, 60, 240, 480, 2400)


def history_of(seed: int) -> tuple[list[SlaPolicy], list[Step], int]:
    """Return a few versions of a policy, steps on whole minutes that name them in order, and a minute after them: half
    of the time the one at which something is told next."""
    draw = random.Random(seed)  # noqa: S311
    policies = [_policy(draw, version) for version in range(1, draw.randint(1, 3) + 1)]
    begin = int(datetime.fromisoformat(draw.choice(STARTS)).replace(tzinfo=UTC).timestamp())
    at, version, steps = begin + MINUTE * draw.randrange(DAY), 1, list[Step]()
    for _ in range(draw.randint(1, 9)):
        facts = draw.choice(("urgent", "low")), draw.choice(("", "g1")), "kind_1"
        runs, said = not steps or draw.random() < 0.7, draw.choice(("", ANSWER, QUESTION)) if steps else ""
        steps.append(Step(at, version, facts, runs, said))
        at += MINUTE * draw.choice((*MINUTES, draw.randrange(90), draw.randrange(2 * DAY)))
        version = min(len(policies), version + draw.choice((0, 0, 1)))
    last, told = steps[-1].at // MINUTE, passed_of(policies, steps)[-1].next_moment // MINUTE
    end = (
        told - draw.randrange(2)
        if last < told < last + 4 * DAY and draw.random() < 0.5
        else last + draw.randrange(3 * DAY)
    )
    return policies, steps, end


def _policy(draw: random.Random, version: int) -> SlaPolicy:
    hours, days_off = draw.choice((OFFICE, NIGHT, ALWAYS)), draw.choice((frozenset[str](), DAYS_OFF))
    rules = [
        TargetRule(
            draw.choice(("", "urgent")),
            draw.choice(("", "g1")),
            draw.choice(("", "kind_1")),
            *(draw.choice(MINUTES) * MINUTE for _ in TARGETS),
        )
        for _ in range(draw.randint(1, 3))
    ]
    return SlaPolicy(version, Calendar(draw.choice(ZONES), hours, days_off), tuple(rules), draw.choice((0, 50)))


histories = st.integers(0, 1 << 48).map(history_of)
History = tuple[list[SlaPolicy], list[Step], int]


@lru_cache(maxsize=1_000_000)
def on_the_wall(zone: str, minute: int) -> tuple[int, int, str]:
    """Return the minute of the day, the weekday and the day that the clock on the wall shows."""
    local = datetime.fromtimestamp(minute * MINUTE, UTC).astimezone(ZoneInfo(zone))
    return local.hour * 60 + local.minute, local.weekday(), local.date().isoformat()


def is_open(calendar: Calendar, minute: int) -> bool:
    of_day, weekday, day = on_the_wall(calendar.zone, minute)
    return day not in calendar.days_off and any(a <= of_day < b for a, b in calendar.hours[weekday])


class Reference:
    """One ticket, minute by minute."""

    def __init__(self) -> None:
        self.used = {FIRST: 0, SOLUTION: 0}
        self.missed: dict[str, int] = {}
        self.all: set[Miss] = set()
        self.targets: dict[str, int] = {}
        self.step: Step | None = None
        self.soon: set[str] = set()
        self.asked: set[str] = set()
        self.warned: dict[str, int] = {}
        self.warnings: list[Miss] = []

    def look(self, minute: int, policy: SlaPolicy) -> None:
        """Note what is missed at this minute, and of what people are warned."""
        self.soon = set()
        if self.step is None or not self.step.runs:
            return
        for name, target in self.targets.items():
            if name in self.used and name not in self.missed:
                if self.used[name] * MINUTE >= target:
                    self.missed[name] = minute
                    self.all.add(Miss(name, minute * MINUTE))
                elif policy.warning and (target - self.used[name] * MINUTE) * 100 <= target * policy.warning:
                    self.soon.add(name)
                    if name not in self.asked:  # its due moment changes with a step alone
                        self.asked.add(name)
                        self.warn(name, self.due_of(name, minute, policy))

    def due_of(self, name: str, minute: int, policy: SlaPolicy) -> int:
        """Look for the minute at which a target will be missed."""
        left = self.targets[name] // MINUTE - self.used[name]
        while left:
            left -= is_open(policy.calendar, minute)
            minute += 1
        return minute

    def warn(self, name: str, due: int) -> None:
        """Tell people, unless they were told this moment last."""
        if self.warned.get(name) != due:
            self.warned[name] = due
            self.warnings.append(Miss(name, due * MINUTE))

    def take(self, step: Step, policy: SlaPolicy) -> None:
        if step.said == ANSWER:
            for name in (FIRST, NEXT):
                self.used.pop(name, None)
                self.missed.pop(name, None)
        elif step.said == QUESTION and not {FIRST, NEXT} & self.used.keys():
            self.used[NEXT] = 0
        self.step, self.targets, self.asked = step, dict(policy.targets(step.facts)), set()

    def run(self, policies: list[SlaPolicy], steps: list[Step], end: int) -> None:
        left, policy = list(steps), policies[0]
        for minute in range(steps[0].at // MINUTE, end + 1):
            self.look(minute, policy)
            while left and left[0].at == minute * MINUTE:
                step = left.pop(0)
                policy = policies[step.version - 1]
                self.take(step, policy)
                self.look(minute, policy)
            if self.step and self.step.runs and is_open(policy.calendar, minute):
                for name in self.used:
                    self.used[name] += name not in self.missed


def passed_of(policies: list[SlaPolicy], steps: list[Step]) -> list[Clocks]:
    return clocks.trail(steps, lambda version: policies[version - 1])


@settings(max_examples=HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
def test_clocks_miss_what_a_walk_through_each_minute_misses(history: History) -> None:
    policies, steps, end = history
    reference = Reference()
    reference.run(policies, steps, end)
    passed = passed_of(policies, steps)
    assert clocks.misses(passed, end * MINUTE).keys() == reference.all
    now = passed[-1].known(end * MINUTE)
    assert {name for name in now.clocks if now.is_missed(name)} == reference.missed.keys()
    marks = now.marks(DueMarks())
    assert marks.missed == max((miss.due for miss in reference.all), default=0)
    assert marks.is_warned == (bool(reference.soon) and not marks.is_overdue)


@settings(max_examples=HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
def test_people_are_warned_once_of_each_due_moment_as_a_walk_through_each_minute_says(history: History) -> None:
    policies, steps, end = history
    reference = Reference()
    reference.run(policies, steps, end)
    now, warnings = clocks.begin(steps[0], lambda version: policies[version - 1]), list[Miss]()
    for step in [*steps[1:], None]:
        until = step.at if step else max(end * MINUTE, now.at)
        while 0 < (moment := now.next_moment) <= until:
            before, now = now, Clocks.load(now.known(moment).dump())
            warnings += [Miss(*one) for one in now.told.items() - before.told.items()]
        if step:
            now = clocks.follow(now, step, lambda version: policies[version - 1])
    assert sorted(warnings) == sorted(reference.warnings)


@settings(max_examples=HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories, st.randoms())
def test_clocks_do_not_depend_on_who_looked_at_them_and_when(history: History, draw: random.Random) -> None:
    """A worker that is late, early by a day, or killed changes nothing; neither does storing them in between."""
    policies, steps, _ = history
    passed = passed_of(policies, steps)
    held = clocks.begin(steps[0], lambda version: policies[version - 1])
    for step in steps[1:]:
        held = Clocks.load(held.known(held.at + draw.randint(-DAY, 3 * DAY) * MINUTE).dump())
        held = clocks.follow(held, step, lambda version: policies[version - 1])
    assert held == passed[-1]


@settings(max_examples=HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
def test_the_timers_of_a_history_lead_to_each_warning_and_each_missed_target(
    history: History,
) -> None:
    policies, steps, _ = history
    now, told = passed_of(policies, steps)[-1], list[int]()
    while (moment := now.next_moment) and len(told) < 9:
        assert moment > now.as_of or now.unwarned
        told.append(moment)
        now = now.known(moment)
    due = [clock.due for clock in now.clocks.values() if clock.due]
    assert not now.next_moment
    assert all(moment <= now.as_of for moment in due)


@settings(max_examples=HISTORIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
def test_a_receipt_counts_to_its_target(history: History) -> None:
    policies, steps, _ = history
    passed = passed_of(policies, steps)
    for miss, place in clocks.misses(passed, steps[-1].at + 12 * DAY * MINUTE).items():
        told = clocks.receipt(miss, place, passed, steps[place].facts, lambda version: policies[version - 1])
        pieces = told["pieces"]
        # Where a shorter target came when more had been used, it was missed at once.
        assert told["counted"] == told["allowed"] or (told["counted"] > told["allowed"] and miss.due == steps[place].at)
        assert all(one["until"] <= other["from"] for one, other in pairwise(pieces))
        assert all(one["from"] < one["until"] <= miss.due for one in pieces)


def moments(*texts: str) -> Iterator[int]:
    return (int(datetime.fromisoformat(text).timestamp()) for text in texts)


@pytest.mark.parametrize(
    ("zone", "start", "hours", "end"),
    [
        ("Europe/Berlin", "2026-11-27T16:30+01:00", 1, "2026-11-30T09:30+01:00"),  # over a weekend
        ("Europe/Berlin", "2026-11-26T11:30+01:00", 1, "2026-11-26T13:30+01:00"),  # over a break
        ("Europe/Berlin", "2026-03-27T16:00+01:00", 2, "2026-03-30T10:00+02:00"),  # into summer time
        ("Europe/Berlin", "2028-02-28T16:00+01:00", 2, "2028-02-29T10:00+01:00"),  # a leap day
        ("Europe/Berlin", "2026-12-24T16:00+01:00", 2, "2026-12-28T10:00+01:00"),  # a day off
        ("America/New_York", "2026-11-26T03:00+01:00", 1, "2026-11-26T10:00-05:00"),  # before it opens
    ],
)
def test_a_target_is_due_in_business_time(zone: str, start: str, hours: int, end: str) -> None:
    calendar = Calendar(zone, OFFICE, frozenset({"2026-12-25"}))
    begin, due = moments(start, end)
    assert calendar.after(begin, hours * 3600) == due
    assert calendar.between(begin, due) == hours * 3600


def test_an_hour_that_the_clock_repeats_counts_twice_and_one_that_it_skips_not_at_all() -> None:
    calendar = Calendar("Europe/Berlin", (((60, 240),),) * 7)
    for day, hours in (("2026-10-25", 4), ("2026-03-29", 2), ("2026-05-05", 3)):
        (begin,) = moments(f"{day}T00:00+00:00")
        assert calendar.between(begin - 4 * 3600, begin + 12 * 3600) == hours * 3600


def test_a_policy_is_read_as_it_was_written() -> None:
    calendar = Calendar("Europe/Berlin", OFFICE, DAYS_OFF)
    policy = SlaPolicy(
        3, calendar, (TargetRule("urgent", "g1", "kind_1", 60, 120, 180), TargetRule(first=60)), 25, "DE", "BE"
    )
    assert SlaPolicy.load(policy.dump()) == policy
    assert SlaPolicy.load(policy.dump().replace('"version":3', '"version":3,"newer":[]')) == policy


def test_marks_are_read_as_they_were_written_with_what_a_newer_version_added() -> None:
    for text in ("", "f1764158400", "S1764158400 w p x1764158000 z0", "n1764158400 z1764158400 q17 k"):
        assert str(DueMarks.read(text)) == text
    assert DueMarks.read("S5 x4").target in TARGETS
