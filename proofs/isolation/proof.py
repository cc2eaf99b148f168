"""One proof from beginning to end: who is attacked, in what order, what is left when it ends, and its report."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from portal import clock
from portal.errors import PortalError
from portal.isolation import policies
from portal.management.command import Progress
from portal.version_number import VERSION
from proofs.isolation import data_attack, mutants
from proofs.isolation.data_attack import AttackPlan, Crossing, Tally
from proofs.isolation.mutants import CONTROL, Fate
from proofs.isolation.targets import Target
from proofs.isolation.walk import visitors
from proofs.isolation.walk.http_attack import ApiAttack, PortalAttack, Visits
from proofs.isolation.walk.visitors import Visitors

HOLDS: Final = "Isolation holds: no request crossed."


class CannotRun(PortalError):
    """There is nothing to prove anything on."""


@dataclass
class Proof:
    seed: int
    requests: int
    targets: Sequence[Target]
    with_http: bool = True
    tally: Tally = field(default_factory=Tally)
    visits: Visits = field(default_factory=Visits)
    calls: Visits = field(default_factory=Visits)  # of the API
    fates: list[Fate] = field(default_factory=list)
    changed: int = 0  # tenants whose sampled data are not what they were
    left_behind: int = 0
    began: datetime = field(default_factory=clock.now)
    seconds: float = 0.0
    finished: bool = False

    @property
    def crossing(self) -> Crossing | None:
        return self.tally.crossing or self.visits.crossing or self.calls.crossing

    @property
    def refused(self) -> Crossing | None:
        """Return the first honest request that was not answered."""
        return self.tally.refused or self.visits.refused or self.calls.refused

    @property
    def survivors(self) -> list[Fate]:
        return [fate for fate in self.fates if not fate.as_expected]

    @property
    def holds(self) -> bool:
        return self.verdict == HOLDS

    @property
    def verdict(self) -> str:
        sentences = {
            "Isolation does NOT hold: a request crossed.": self.crossing,
            "Not proved: an honest request was refused.": self.refused,
            "Not decided: data changed during the proof. Run it again while nobody works in these desks.": self.changed,
            "Not proved: the attack did not notice a broken layer.": self.survivors,
            "Not clean: items of the proof are still there.": self.left_behind,
            "Interrupted before the end.": not self.finished,
        }
        return next((said for said, wrong in sentences.items() if wrong), HOLDS)


Stage = Callable[[str, int], Progress]  # of a phase and its number of steps


def prove(proof: Proof, stage: Stage, *, only: str = "") -> None:
    """Attack, and clean up. `only` is the number of the one attempt to make again.

    Raises CannotRun with fewer than two tenants, Unavailable where the engine is away.
    """
    if len(proof.targets) < 2:
        raise CannotRun(
            "Isolation needs at least two tenants, each with a ticket or a member. Run `manage.py seed` first, "
            "or name them with --tenant SLUG."
        )
    started = time.monotonic()
    visitors.remove_scratch(proof.targets)  # of a run that was killed
    before = [target.state() for target in proof.targets]
    plan = AttackPlan(proof.seed, proof.targets)
    try:
        with visitors.visiting(proof.targets) if proof.with_http else nullcontext() as people:
            _attack(proof, plan, people, stage, only)
    finally:
        visitors.remove_scratch(proof.targets)
        proof.seconds = time.monotonic() - started
    proof.changed = sum(target.state() != then for target, then in zip(proof.targets, before, strict=True))
    proof.left_behind = visitors.scratch_left(proof.targets)
    proof.finished = True


def _attack(proof: Proof, plan: AttackPlan, people: Visitors | None, stage: Stage, only: str) -> None:
    attacks: list[tuple[PortalAttack | ApiAttack, Visits, str]] = []
    if people and people.members:
        of = proof.seed, proof.targets, people
        attacks = [(PortalAttack(*of), proof.visits, "Visits"), (ApiAttack(*of), proof.calls, "Calls")]
    if only.isdecimal():
        data_attack.attack(plan, [int(only)], proof.tally, lambda steps: None)
    elif only:
        chosen = [(attack, found) for attack, found, _ in attacks if only.startswith(attack.prefix)]
        if not chosen:
            raise CannotRun("There is nobody who could visit the portal.")
        for attack, found in chosen:
            attack.run([int(only.removeprefix(attack.prefix))], found, lambda steps: None)
    if only:
        return
    with stage("Requests", proof.requests) as progress:
        data_attack.attack(plan, range(proof.requests), proof.tally, progress.advance)
    for attack, found, label in attacks:
        if not proof.crossing and not proof.refused:
            with stage(label, len(attack.plan)) as progress:
                attack.run(range(len(attack.plan)), found, progress.advance)
    if not proof.crossing and not proof.refused:
        with stage("Broken layers", len(mutants.MUTANTS)) as progress:
            proof.fates = mutants.run(plan, progress.advance)


def document(proof: Proof) -> dict[str, Any]:
    """Return everything, for machines. Tenants are numbers of tenants: a report for one customer names no other."""
    tally, visits, calls = proof.tally, proof.visits, proof.calls
    return {
        "verdict": proof.verdict,
        "holds": proof.holds,
        "seed": proof.seed,
        "began": proof.began.isoformat(timespec="seconds"),
        "seconds": round(proof.seconds, 1),
        "tenants": len(proof.targets),
        "requests": {
            "total": tally.total + visits.total + calls.total,
            "hostile": tally.stopped_by.total(),
            "honest": tally.honest.total() + visits.honest + calls.honest,
            "visits": visits.total,
            "calls": calls.total,
            "sent_to_engine": tally.sent,
            "crossings": int(proof.crossing is not None),
            "per_second": round(tally.total / max(tally.seconds, 0.001)),
        },
        "stopped_by": dict(tally.stopped_by.most_common()),
        "security_events": tally.events,
        "attacks": [
            {"kind": kind, "requests": stopped.total(), "stopped_by": dict(stopped)}
            for kind, stopped in sorted(tally.attacks.items())
        ],
        "honest": dict(tally.honest.most_common()),
        "http": _http(visits),
        "api": _http(calls),
        "mutants": [
            asdict(fate) | {"as_expected": fate.as_expected, "control": fate.mistake == CONTROL} for fate in proof.fates
        ],
        "data": {"tenants_changed": proof.changed, "items_left_behind": proof.left_behind},
        "crossing": proof.crossing and asdict(proof.crossing),
        "refused": proof.refused and asdict(proof.refused),
        "versions": _versions(),
        "policy_sha256": hashlib.sha256(json.dumps(policies.document("tenant"), sort_keys=True).encode()).hexdigest(),
    }


def _http(visits: Visits) -> dict[str, Any]:
    routes = [
        {"route": route, "method": method, "visits": answers.total(), "answers": dict(sorted(answers.items()))}
        for (route, method), answers in sorted(visits.routes.items())
    ]
    tricks = {trick: dict(sorted(answers.items())) for trick, answers in sorted(visits.tricks.items())}
    return {"visits": visits.total, "withheld_writes": visits.withheld, "routes": routes, "tricks": tricks}


def _versions() -> dict[str, str]:
    endpoint = urlsplit(settings.DYNAMODB_ENDPOINT_URL)
    engine = f"{endpoint.hostname}:{endpoint.port}" if endpoint.hostname else f"Amazon DynamoDB, {settings.AWS_REGION}"
    layers = {"guard": settings.DYNAMODB_GUARD, "tenant role": settings.TENANT_ROLE_ARN}
    return {
        "Python": platform.python_version(),
        "Pooldesk": VERSION,
        **{package: version(package) for package in ("Django", "botocore", "pynamodb")},
        "engine": engine,
        **{name: "on" if is_on else "off" for name, is_on in layers.items()},
    }
