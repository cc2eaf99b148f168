"""Invent the demonstration's tickets: the same seed, desk, number and day give the same one, to the microsecond.

A ticket is played through as the rules would have it. Things happen in office hours, mostly on weekdays, and never
later than the given day.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Final

from tickets.desk.history import History, PastEntry, changed, opened
from tickets.seeding.cast import CastDesk, Person, Turn, made_id, scenarios, words
from tickets.ticket.fields import UNRESOLVED, Channel, Priority, Rating, Status

SPAN: Final = 30  # days before the given one in which tickets are opened
_BY_WEEKDAY: Final = (10, 11, 10, 9, 8, 1, 1)  # how many of them on which day, Monday first
_OFFICE: Final = (7.0, 18.5)  # hours UTC


def opening_time(day: date, position: float) -> datetime:
    """Return the moment at `position` (0 to 1) among all openings in the SPAN days before `day`; it grows with it."""
    days, until = _calendar(day)
    place = position * until[-1]
    index = min(bisect(until, place), len(days) - 1)
    before = until[index - 1] if index else 0
    share = min((place - before) / (until[index] - before), 0.999999)
    begin, end = _OFFICE
    return days[index] + timedelta(hours=begin + share * (end - begin))


@lru_cache(maxsize=8)
def _calendar(day: date) -> tuple[list[datetime], list[int]]:
    """Return the days and, for each, how many are opened until its end, in arbitrary units."""
    end = datetime(day.year, day.month, day.day, tzinfo=UTC)
    days = [end - timedelta(days=back) for back in range(SPAN, 0, -1)]
    return days, list(accumulate(_BY_WEEKDAY[d.weekday()] for d in days))


def spread(rng: random.Random, start: datetime, end: datetime, mean_hours: Sequence[float]) -> list[datetime]:
    """Return one moment per mean, each that long after the former, give or take; all between start and end."""
    gaps = [1 / 60 + rng.expovariate(1 / mean) for mean in mean_hours]
    room = (end - start) / timedelta(hours=1) * 0.98
    scale = min(1.0, room / sum(gaps)) if gaps else 1.0
    return [start + timedelta(hours=passed * scale) for passed in accumulate(gaps)]


# --- a ticket ---


# Weights of open, pending, resolved and closed for tickets of up to so many days.
_FATES: Final = ((1, (75, 15, 10, 0)), (7, (48, 20, 16, 16)), (14, (32, 14, 18, 36)), (SPAN, (18, 8, 13, 61)))
# By urgency, 0 to 3.
_PRIORITIES: Final = (
    (Priority.LOW, Priority.LOW, Priority.NORMAL),
    (Priority.NORMAL, Priority.NORMAL, Priority.NORMAL, Priority.LOW, Priority.HIGH),
    (Priority.NORMAL, Priority.HIGH, Priority.HIGH),
    (Priority.HIGH, Priority.URGENT, Priority.URGENT),
)
_FIRST_STEP: Final = (20.0, 6.0, 2.5, 0.5)  # mean hours
_NEXT_STEP: Final = (40.0, 20.0, 9.0, 2.0)
_CLOSING: Final = 60.0
# Ways by which customers write, the frequent ones several times.
_RATED, _RATED_BAD = 0.35, 0.2  # shares of resolved tickets, and of the rated ones
_RATING_WORDS: Final = {
    Rating.GOOD: ("", "", "Thank you, that was quick!", "Friendly and clear."),
    Rating.BAD: ("", "It took too long.", "It happened again a day later."),
}
_CHANNELS: Final = (*[Channel.MAIL] * 7, *[Channel.FORM] * 2, Channel.API)


def invent(desk: CastDesk, number: int, *, planned: int, seed: int, day: date) -> History:
    """Return ticket `number` of `planned` on this desk. All its times lie before the beginning of `day`."""
    return _Play(desk, number, planned, seed, day).history()


class _Play:
    """One ticket in the making: steps gather first, and then get their times."""

    def __init__(self, desk: CastDesk, number: int, planned: int, seed: int, day: date) -> None:
        self.identity = f"{seed}/{desk.slug}/{number}"
        self.rng = rng = random.Random(self.identity)  # noqa: S311  # invented tickets need no secrecy
        self.now = datetime(day.year, day.month, day.day, tzinfo=UTC)
        self.created_at = opening_time(day, (number - rng.random()) / planned)
        self.agents = desk.agents
        self.scenario = rng.choice(scenarios())
        self.way = rng.randrange(2)
        contact = rng.choice(desk.contacts)
        self.contact, company = contact.name, contact.company
        self.customer = (contact.id, contact.name)
        self.agent = self._an_agent()
        # Every fourth ticket is written down by an agent, after a call.
        caller = self._an_agent() if rng.random() < 0.25 else None
        self.is_call = caller is not None
        self.requester = (caller.id, caller.name) if caller else self.customer
        # Drawn by a generator of its own, so that all else is what it was before there were channels.
        drawn = random.Random(f"{self.identity}/channel").choice(_CHANNELS)  # noqa: S311
        self.channel = Channel.HAND if caller else drawn
        self.status, self.taken = Status.OPEN, False
        self.priority = rng.choice(_PRIORITIES[self.scenario.urgency])
        self.steps: list[list[PastEntry]] = []  # what happens at the same moment
        self.slots = {name: rng.choice(values) for name, values in words().slots.items()} | {
            "name": self.contact.split()[0],
            "agent": self.agent.name.split()[0],
            "company": company,
            "product": desk.product,
            "n": str(rng.randint(12, 97)),
            "id": made_id(self.identity, "slot")[:8],
            "earlier": str(rng.randint(max(1, number - 60), max(1, number - 1))),
        }

    def history(self) -> History:
        titles = [t for i, t in enumerate(self.scenario.titles) if i % 2 == self.way]
        title = self._fill(self.rng.choice(titles))
        tags = self.rng.sample(self.scenario.tags, self.rng.randint(1, 2))
        self._play(self._fate())
        entries = [opened(self.created_at, *self.requester), *self._timed()]
        rating = self._rate(entries)
        return History(
            identity=self.identity,
            values={
                "title": title,
                "description": self._called() + self._fill(self.scenario.descriptions[self.way]),
                "status": self.status,
                "priority": self.priority,
                "channel": self.channel,
                "rating": rating,
                "tags": tags,
                "resolver": self.agent.id if self.taken else "",
            },
            created_at=self.created_at,
            updated_at=max(e.at for e in entries if e.kind != "note"),
            requester=self.requester[0],
            requester_name=self.requester[1],
            resolver_name=self.agent.name if self.taken else "",
            entries=tuple(entries),
        )

    def _rate(self, entries: list[PastEntry]) -> str:
        """Let some customers rate what was resolved, as the last thing that happens, and return the rating."""
        rng = random.Random(f"{self.identity}/rating")  # noqa: S311  # of its own, as that of the channel
        if self.is_call or self.status in UNRESOLVED or rng.random() > _RATED:
            return ""
        rating = Rating.BAD if rng.random() < _RATED_BAD else Rating.GOOD
        at = entries[-1].at + (self.now - entries[-1].at) * rng.uniform(0.05, 0.5)
        words = rng.choice(_RATING_WORDS[rating])
        change = ("rating", "", rating.value)
        entries.append(PastEntry("event", at, *self.customer, body=words, verb="changed", changes=(change,)))
        return rating

    def _called(self) -> str:
        """Say whose call an agent has written down: answers greet that person."""
        return f"Written down after a call from {self.contact}.\n\n" if self.is_call else ""

    def _fate(self) -> Status:
        age = (self.now - self.created_at) / timedelta(days=1)
        weights = next((weights for days, weights in _FATES if age <= days), _FATES[-1][1])
        return self.rng.choices(list(Status), weights)[0]

    def _play(self, fate: Status) -> None:
        """Take all steps up to where the ticket stands today."""
        turns = [t for t in self.scenario.talk if t.by != "note" or self.rng.random() < 0.7]
        solution = max(i for i, turn in enumerate(turns) if turn.by == "agent")
        stop = self._stop(fate, turns, solution)
        if stop or self.rng.random() < 0.45:
            self._take()
        for index, turn in enumerate(turns[:stop]):
            self._speak(turn, solves=index == solution and fate in (Status.RESOLVED, Status.CLOSED))
        if fate is Status.PENDING and self.status is not fate:
            self.steps[-1].append(self._move(fate, self.agent.id, self.agent.name))
        if self.status is Status.RESOLVED and self.rng.random() < 0.08:
            relapse = self._comment("customer", self.rng.choice(words().relapses))
            self.steps.append([relapse, self._move(Status.OPEN, *self.customer)])
            remedy = self._comment("agent", self.rng.choice(words().remedies))
            self.steps.append([remedy, self._move(Status.RESOLVED, self.agent.id, self.agent.name)])
        if fate is Status.CLOSED:
            self.steps.append([self._move(Status.CLOSED, self.agent.id, self.agent.name)])

    def _stop(self, fate: Status, turns: list[Turn], solution: int) -> int:
        """Return the number of turns that were taken until today."""
        if fate is Status.CLOSED:
            return len(turns)
        if fate is Status.RESOLVED:
            return self.rng.choice((solution + 1, len(turns)))
        waiting_for = "agent" if fate is Status.PENDING else "customer"
        ends = [i + 1 for i, turn in enumerate(turns[:solution]) if turn.by == waiting_for]
        if fate is Status.PENDING:
            return self.rng.choice(ends or [solution + 1])
        return 0 if not ends or self.rng.random() < 0.45 else self.rng.choice(ends)

    def _take(self) -> None:
        """Let somebody give the ticket to its agent, mostly the agent; now and then it gets another priority as
        well."""
        by = self.agent if self.rng.random() < 0.7 else self._an_agent()
        self.taken = True
        self.steps.append([changed(self.now, by.id, by.name, ("resolver", "", self.agent.name))])
        if self.rng.random() < 0.12:
            before = self.priority
            self.priority = Priority.NORMAL if before is Priority.HIGH else Priority.HIGH
            change = ("priority", before.value, self.priority.value)
            self.steps.append([changed(self.now, self.agent.id, self.agent.name, change)])

    def _speak(self, turn: Turn, *, solves: bool) -> None:
        step = [self._comment(turn.by, turn.says[self.way % len(turn.says)])]
        if turn.by == "customer" and self.status is Status.PENDING:
            step.append(self._move(Status.OPEN, *self.customer))
        elif solves:
            step.append(self._move(Status.RESOLVED, self.agent.id, self.agent.name))
        elif turn.by == "agent" and self.status is Status.OPEN and self.rng.random() < 0.8:
            step.append(self._move(Status.PENDING, self.agent.id, self.agent.name))
        self.steps.append(step)

    def _comment(self, by: str, text: str) -> PastEntry:
        if by == "customer":
            return PastEntry("comment", self.now, *self.customer, body=self._fill(text))
        kind = "note" if by == "note" else "comment"
        return PastEntry(kind, self.now, self.agent.id, self.agent.name, body=self._fill(text))

    def _move(self, to: Status, author: str, author_name: str) -> PastEntry:
        before, self.status = self.status, to
        return changed(self.now, author, author_name, ("status", before.value, to.value))

    def _timed(self) -> list[PastEntry]:
        urgency = self.scenario.urgency
        means = [_FIRST_STEP[urgency], *[_NEXT_STEP[urgency]] * (len(self.steps) - 1)][: len(self.steps)]
        if self.status is Status.CLOSED:
            means[-1] = _CLOSING
        moments = spread(self.rng, self.created_at, self.now, means)
        return [replace(e, at=at) for step, at in zip(self.steps, moments, strict=True) for e in step]

    def _an_agent(self) -> Person:
        # Those whom a visitor signs in as have more to do, so that "Mine" is never empty.
        weights = [3 if agent.email.endswith("@example.com") else 1 for agent in self.agents]
        return self.rng.choices(self.agents, weights)[0]

    def _fill(self, text: str) -> str:
        return text.format_map(self.slots)
