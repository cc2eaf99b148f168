"""Follow the clocks of a ticket through its history: pure functions, in which the time of day does not occur.

A ticket has up to three clocks: for the first answer, the next answer and the solution. They run while it is open, in
business time, and stand still while it waits for somebody or is resolved. An answer ends the first two; a question of
the requester starts the second. Each step of the history names the version of the policy that holds from then on: the
time before it counts by the former one. A clock that has missed its target stays as it was at that moment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from tickets.sla.policy import Facts, SlaPolicy
from tickets.ticket.due_marks import FIRST, NEXT, SOLUTION, DueMarks

PolicyOf = Callable[[int], SlaPolicy]  # by the number of a version
ANSWER, QUESTION = "answer", "question"
_FORM: Final = 1


class Clock(NamedTuple):
    """`used` are open seconds up to the last step. While it runs towards a target, `due` is that moment and `warn` that
    of the warning, 0 for none; `due` stays where it was missed."""

    used: int = 0
    due: int = 0
    warn: int = 0


class Step(NamedTuple):
    """The state of a ticket from a moment on. `said` is ANSWER or QUESTION where one was written then, else ""."""

    at: int
    version: int
    facts: Facts
    runs: bool
    said: str = ""


@dataclass(frozen=True)
class Clocks:
    """The clocks after `steps` steps, the last of them `at` a moment, from which on `version` holds.

    `as_of` is the moment up to which people know of what was missed; a step puts it back to its own moment. `missed` is
    the last missed target. `waits` says that the clocks stand still and at least one has a target. `told` is the due
    moment of each clock of which people were warned last; the history says nothing of it.
    """

    steps: int
    first_version: int
    version: int
    at: int
    as_of: int
    runs: bool
    clocks: Mapping[str, Clock]
    missed: int = 0
    waits: bool = False
    told: Mapping[str, int] = field(default_factory=dict, compare=False)

    def is_missed(self, name: str) -> bool:
        """Tell whether the target of a clock is known to be missed."""
        return 0 < self.clocks[name].due <= self.as_of

    def known(self, moment: int) -> Clocks:
        """Return them as of a later moment at which nothing was done, when people know of what is due soon."""
        now = replace(self, as_of=max(self.as_of, moment))
        return replace(now, told={**self.told, **now.unwarned})

    @property
    def due_soon(self) -> dict[str, int]:
        """Return the due moments of clocks whose warning has come and whose target is not missed, by their names."""
        return {name: one.due for name, one in self.clocks.items() if 0 < one.warn <= self.as_of < one.due}

    @property
    def unwarned(self) -> dict[str, int]:
        """Return those of `due_soon` of which people were not told, or were told another moment."""
        return dict(self.due_soon.items() - self.told.items())

    @property
    def next_moment(self) -> int:
        """Return when something is to be told next: a warning, or a missed target. 0 for never."""
        if self.unwarned:
            return self.as_of
        moments = (moment for clock in self.clocks.values() for moment in (clock.warn, clock.due))
        return min((moment for moment in moments if moment > self.as_of), default=0)

    def marks(self, others: DueMarks) -> DueMarks:
        """Return what lists are told of them, and of `others` what is not theirs."""
        running = [(clock.due, name) for name, clock in self.clocks.items() if clock.due and self.runs]
        due, name = min(running, default=(0, ""))
        known = [clock.due for name, clock in self.clocks.items() if self.is_missed(name)]
        is_overdue = bool(name) and self.is_missed(name)
        missed = max([self.missed, *known])
        return replace(
            others,
            target=name,
            at=due,
            is_overdue=is_overdue,
            is_warned=bool(self.due_soon) and not is_overdue,
            is_paused=self.waits,
            missed=missed,
        )

    def dump(self) -> str:
        held = [self.steps, self.first_version, self.version, self.at, self.as_of, int(self.runs), self.missed]
        return json.dumps([_FORM, *held, int(self.waits), self.clocks, self.told], separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Clocks:
        """Return what `dump` wrote. Raises ValueError, TypeError."""
        _, steps, first, version, at, as_of, runs, missed, waits, clocks, told = json.loads(text)[:11]
        held = {name: Clock(*map(int, clock[:3])) for name, clock in clocks.items()}
        return cls(steps, first, version, at, as_of, bool(runs), held, missed, bool(waits), told)


def begin(step: Step, policy_of: PolicyOf) -> Clocks:
    fresh = Clocks(0, step.version, step.version, step.at, step.at, False, {FIRST: Clock(), SOLUTION: Clock()})
    return follow(fresh, step, policy_of)


def follow(before: Clocks, step: Step, policy_of: PolicyOf) -> Clocks:
    at = max(step.at, before.at)  # clocks of two machines may differ
    passed = policy_of(before.version).calendar.between(before.at, at) if before.runs else 0
    missed = [clock.due for clock in before.clocks.values() if 0 < clock.due <= at]
    held = {n: c if 0 < c.due <= at else Clock(c.used + passed) for n, c in before.clocks.items()}
    if step.said == ANSWER:
        held = {name: clock for name, clock in held.items() if name == SOLUTION}
    elif step.said == QUESTION and not {FIRST, NEXT} & held.keys():
        held[NEXT] = Clock()
    policy = policy_of(step.version)
    targets = policy.targets(step.facts)
    aiming = [name for name, clock in held.items() if name in targets and not clock.due]
    if step.runs:
        held |= {name: _running(held[name], at, targets[name], policy) for name in aiming}
    return Clocks(
        before.steps + 1,
        before.first_version,
        step.version,
        at,
        at,
        step.runs,
        held,
        max([before.missed, *missed]),
        bool(aiming) and not step.runs,
        before.told,
    )


def _running(clock: Clock, at: int, target: int, policy: SlaPolicy) -> Clock:
    left, margin = target - clock.used, target * policy.warning // 100
    due = policy.calendar.after(at, left)
    warn = policy.calendar.after(at, left - margin) if margin else 0
    return Clock(clock.used, due, warn if warn < due else 0)


# --- receipts ---


class Miss(NamedTuple):
    """A target that was missed: which one, and when."""

    target: str
    due: int


def trail(steps: Iterable[Step], policy_of: PolicyOf) -> list[Clocks]:
    """Return the clocks after each step of a history, from the one that opened the ticket."""
    found: list[Clocks] = []
    for step in steps:
        found.append(follow(found[-1], step, policy_of) if found else begin(step, policy_of))
    return found


def misses(passed: Sequence[Clocks], until: int) -> dict[Miss, int]:
    """Return what was missed up to a moment, each with the place in the trail of the clocks that missed it."""
    found: dict[Miss, int] = {}
    for place, clocks in enumerate(passed):
        end = passed[place + 1].at if place + 1 < len(passed) else max(until, clocks.at)
        for name, clock in clocks.clocks.items():
            if 0 < clock.due <= end:
                found.setdefault(Miss(name, clock.due), place)
    return found


def receipt(miss: Miss, place: int, passed: Sequence[Clocks], facts: Facts, policy_of: PolicyOf) -> dict[str, Any]:
    """Return how a missed target was counted: for each piece of time the version of the policy that held, and the open
    spans in it. The time between the pieces was a pause. `facts` are the ticket's at that time."""
    first = place
    while first and miss.target in passed[first - 1].clocks:
        first -= 1
    pieces, counted = list[dict[str, Any]](), 0
    for now, then in zip(passed[first : place + 1], [*passed[first + 1 : place + 1], None], strict=True):
        end = then.at if then else miss.due
        if now.runs and now.at < end:
            spans = [*policy_of(now.version).calendar.spans(now.at, end)]
            pieces.append({"from": now.at, "until": end, "policy": now.version, "open": spans})
            counted += sum(closes - opens for opens, closes in spans)
    policy = policy_of(passed[place].version)
    return {
        "target": miss.target,
        "due": miss.due,
        "allowed": policy.targets(facts)[miss.target],
        "policy": policy.version,
        "zone": policy.calendar.zone,
        "ticket": list(facts),
        "counted": counted,
        "pieces": pieces,
    }
