"""Carry out an isolation run, at an even pace and away from the web servers.

The attempts follow from their numbers, and each answer is one letter. So a run that was killed goes on behind the last
attempt that was noted. If the program has changed meanwhile, so that the numbers mean other attempts, it begins anew.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext

from portal import clock
from portal.dynamo.placement import Placement
from portal.dynamo.store import Transaction
from portal.errors import Conflict
from portal.isolation import guard
from portal.version_number import VERSION
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import certificates
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.isolation_runs import attack, run_requests, stored
from tickets.isolation_runs.attack import Attack, OwnAnswers
from tickets.isolation_runs.attempts import RunPlan
from tickets.isolation_runs.run_requests import CANCELLED, CROSSED, HELD, REFUSED
from tickets.isolation_runs.stored import IsolationFileItem, IsolationRunItem
from tickets.jobs.job_follower import JobFollower
from tickets.jobs.leased_job import EndAsked, LeasedJob
from tickets.jobs.stored import past

A_SECOND: Final = 50.0  # attempts; the guard takes a third of a millisecond for one
_NOTED: Final = 50  # attempts, after which the page can show them

Write = Callable[[TenantItem, IsolationRunItem, RunPlan], str]
_writers: Final[list[Write]] = []


def write_with(write: Write) -> None:
    """Let `write` write the page of a run that has ended, as HTML."""
    _writers[:] = [write]


class IsolationRun(LeasedJob[IsolationRunItem]):
    """Makes one run. It needs the rights of the lifecycle role, of tenants and of the platform."""

    kind = run_requests.RUNS

    def __init__(self, item: IsolationRunItem, *, a_second: float = A_SECOND, **how: Any) -> None:
        super().__init__(item, **how)
        self._pause = 1 / a_second
        self._plan = RunPlan()
        same = item.plan == self._plan.digest
        self._answers, self._filled = (item.answers, item.filled) if same else ("", "")
        self._own = OwnAnswers(0, 0, refused=False)

    def _carry_out(self) -> None:
        state = CANCELLED
        tenant = tenant_directory.get(self.item.tenant_id)
        try:
            self._heed()
            state = self._attack(tenant)
        except EndAsked:
            state = CANCELLED
        self._end(tenant, state)

    def _attack(self, tenant: TenantItem) -> str:
        where = Placement.parse(tenant.placement)
        desk, attacker = tenant.tenant_id, self.item.attacker
        if tenant_directory.get_many([attacker]):  # no run is worth an attempt in the name of a real tenant
            raise Conflict(gettext("The attacker is a tenant that exists. Ask for the attack again."))
        samples = attack.sample(self._plan.kinds, desk, where, between=self._look_up)
        self._filled = samples.digits(self._plan.kinds)
        self._own = attack.ask_as_the_desk(samples, desk, where, between=self._look_up)
        if self._own.refused:
            return REFUSED
        with attack.quiet(attacker):
            sender = Attack(self._plan, samples, desk=desk, attacker=attacker)
            for number in range(len(self._answers), int(self.item.total)):
                answer = sender.answer(number)
                self._answers += answer
                self._advance(1)
                if answer == attack.CROSSED:
                    break
                if len(self._answers) % _NOTED == 0:
                    self._note()
                self._rest(self._pause)
        if attack.CROSSED not in self._answers:
            return HELD
        crossed = self._plan.attempt(len(self._answers) - 1)
        guard.log.critical(
            "An isolation run of %s crossed: attempt %s, %s on %s (%s)",
            self.item.slug, crossed.number, crossed.trick.says, crossed.kind.place, crossed.kind.what,
        )  # fmt: skip
        return CROSSED

    def _end(self, tenant: TenantItem, state: str) -> None:
        ended = {**self._always_noted(), "state": state, "holder": "", "trouble": "", "ended_at": clock.stamp()}
        for name, value in ended.items():
            if name != "state":
                setattr(self.item, name, value)
        told = self.kind.kept(self.item, state=state)
        transaction = Transaction()
        if content := self._signed(tenant, told):
            ended["file"] = told.file = certificates.digest(content)
            files = past(stored.FILES, tenant.tenant_id)
            packed = zlib.compress(content, 9)
            transaction.put(IsolationFileItem(files, self.item.begun_at, tenant_id=tenant.tenant_id, content=packed))
        told.answers = ""
        transaction.put(told)
        mine = (IsolationRunItem.holder == self.me) & (IsolationRunItem.state == self.item.state)
        transaction.update(self.kind.of(tenant.tenant_id), self.kind.actions(**ended), condition=mine)
        for item in self.kind.history(tenant.tenant_id)[run_requests.KEPT - 1 :]:
            transaction.delete(self.kind.model(item.kind, item.name))
            transaction.delete(IsolationFileItem(past(stored.FILES, tenant.tenant_id), item.name))
        by = Actor(self.item.by_id, self.item.by_email, self.item.by_origin)
        row = AuditEntry(
            tenant.tenant_id, AuditAction.ISOLATION_RUN_ENDED, by, "isolation_run", "tenant", tenant.name,
            after={"result": state, "attempts": len(self._answers)},
        )  # fmt: skip
        refused = Conflict(gettext("This attack was stopped or taken over meanwhile."))
        recording.commit(transaction, [row], refused=refused)

    def _signed(self, tenant: TenantItem, told: IsolationRunItem) -> bytes:
        """Return the signed page of the run, b"" where no key signs or nothing was tried."""
        if not settings.CERTIFICATE_KEY or not self._answers:
            return b""
        tally = run_requests.tally_of(told)
        facts = {
            "kind": "isolation run",
            "tenant": {"id": tenant.tenant_id, "slug": tenant.slug},
            "result": told.state,
            "attempts": len(self._answers),
            "crossed": tally[attack.CROSSED],
            "release": told.release,
            "began_at": told.begun_at,
            "ended_at": told.ended_at,
        }
        (write,) = _writers
        page = write(tenant, told, self._plan).encode()
        return certificates.sign_page(page, facts, certificates.signing_key())

    def _is_to_end(self) -> bool:
        return bool(self.item.state == run_requests.CANCELLING)

    def _always_noted(self) -> dict[str, Any]:
        return {
            "plan": self._plan.digest,
            "answers": self._answers,
            "filled": self._filled,
            "tally": json.dumps(Counter(self._answers)),
            "tried": len(self._answers),
            "own_asked": self._own.asked,
            "own_answered": self._own.answered,
            "engine": attack.engine(),
            "release": VERSION,
        }


def follower(**how: Any) -> JobFollower[IsolationRunItem]:
    """Return what makes the runs that nobody makes."""
    return JobFollower(run_requests.RUNS, partial(IsolationRun, **how))
