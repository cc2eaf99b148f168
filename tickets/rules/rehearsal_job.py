"""Carry out the rehearsal of a rule: list the tickets that changed in the last month, then try the rule on each.

It changes no ticket. Its findings are written for PART tickets at a time, under a key that follows from their place in
the list; so a part is right however often it is written, and what a killed process has not noted is done again.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext_noop

from portal.errors import Conflict, Invalid
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.jobs.job_follower import JobFollower
from tickets.jobs.leased_job import EndAsked, LeasedJob
from tickets.rules import rehearsal, rehearsal_requests, rule_changes
from tickets.rules.definition import Rule
from tickets.rules.rehearsal_requests import (
    CANCELLED,
    DONE,
    FAILED,
    LISTING,
    PER_SECOND,
    REHEARSALS,
    TRYING,
    RuleFinding,
)
from tickets.rules.stored import RehearsalItem
from tickets.time_machine import past_events
from tickets.time_machine.past_events import PastEvent

PART: Final = 20  # tickets
KEPT: Final = 100  # findings of a part; those beyond are counted only
TALLIED: Final = 20  # kinds of changes of which it says how often
_COUNTS: Final = ("met", "events", "would_act", "touched", "refused", "circles")


class Rehearsal(LeasedJob[RehearsalItem]):
    """Carries one rehearsal out. It needs the rights of tenants and of the platform."""

    kind = REHEARSALS

    def __init__(self, item: RehearsalItem, *, per_second: float = PER_SECOND, **how: Any) -> None:
        super().__init__(item, **how)
        self._per_second = per_second
        self._counts = {name: int(getattr(item, name)) for name in _COUNTS}
        self._tally = Counter({(name, value): times for name, value, times in json.loads(item.tally)})

    @cached_property
    def _tenant(self) -> TenantContext:
        system = context.for_system(tenant_directory.get(self.item.tenant_id))
        if system.suspended or system.closes_at:
            raise Conflict(gettext_noop("The desk is suspended, or is being closed."))
        return system

    @cached_property
    def _rule(self) -> Rule:
        version = rule_changes.find_version(self._tenant, self.item.rule_id, int(self.item.rule_version))
        return rule_changes.of_item(version)

    @cached_property
    def _others(self) -> list[Rule]:
        return rule_changes.active(self._tenant)

    def _carry_out(self) -> None:
        state, why = DONE, ""
        try:
            self._heed()
            self._go_through((LISTING, TRYING))
        except EndAsked:
            state = CANCELLED
        except Invalid as error:
            state, why = FAILED, error.message
        self.item = self.kind.note(
            self.item, me=self.me, holder="", trouble="", state=state, why=why, **self._always_noted()
        )

    def _listing(self) -> None:
        """Store the list of this process's own; it counts once it is noted with the next phase."""
        plan, most = uuid.uuid4().hex[:12], rehearsal_requests.MOST
        rows = past_events.changed_since(self._tenant, self.item.since, look_up=self._look_up)
        numbers = [int(row.number) for row in islice(rows, most + 1)]
        rehearsal_requests.put_part(self._tenant, plan, 0, numbers[:most])
        self._note(phase=TRYING, plan=plan, total=min(len(numbers), most), is_cut=int(len(numbers) > most))

    def _trying(self) -> None:
        numbers = rehearsal_requests.numbers(self._tenant, self.item.plan)
        for begin in range(self._counts["met"], len(numbers), PART):
            some = numbers[begin : begin + PART]
            found, counts, tally = list[RuleFinding](), Counter[str](met=len(some)), Counter[tuple[str, str]]()
            for number in some:
                self._rest(1 / self._per_second)
                self._try(number, found, counts, tally)
            if found:
                kept = [one.dump() for one in found[:KEPT]]
                rehearsal_requests.put_part(self._tenant, self.item.plan, begin // PART + 1, kept)
            for name, count in counts.items():
                self._counts[name] += count
            self._tally += tally
            self._advance(len(some))

    def _try(
        self, number: int, found: list[RuleFinding], counts: Counter[str], tally: Counter[tuple[str, str]]
    ) -> None:
        past = past_events.of_ticket(self._tenant, number, since=self.item.since, until=self.item.begun_at)
        touched = False
        for would in rehearsal.of_ticket(self._rule, map(self._seen, past), self._others):
            counts["events"] += 1
            if would is None:
                continue
            found.append(RuleFinding.of(number, would))
            counts["would_act"] += not would.plan.refused
            counts["refused"] += bool(would.plan.refused)
            counts["circles"] += bool(would.circle)
            touched = touched or not would.plan.refused
            tally.update(part for change in would.plan.changes for part in rehearsal.parts(*change))
        counts["touched"] += touched

    def _seen(self, one: PastEvent) -> PastEvent:
        """Give a heartbeat where one is due: going through a long history takes longer than a lease."""
        self._look_up()
        return one

    def _is_to_end(self) -> bool:
        return bool(self.item.state == rehearsal_requests.CANCELLING)

    def _always_noted(self) -> dict[str, Any]:
        tally = [(name, value, times) for (name, value), times in self._tally.most_common(TALLIED)]
        return {**self._counts, "tally": json.dumps(tally)}


def follower(**how: Any) -> JobFollower[RehearsalItem]:
    """Return what carries out the rehearsals that nobody carries out."""
    return JobFollower(REHEARSALS, partial(Rehearsal, **how))
