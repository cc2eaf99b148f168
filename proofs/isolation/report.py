"""Say what was attacked, how often, and what stopped it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from portal.isolation import policies
from proofs.isolation.data_attack import Crossing
from proofs.isolation.mutants import CONTROL
from proofs.isolation.proof import Proof
from proofs.isolation.walk.http_attack import Visits

_PACKAGES: Final = ("Django", "botocore", "pynamodb")


def document(proof: Proof) -> dict[str, Any]:
    """Return everything, for machines. Tenants are numbers of tenants: a report for one customer names no other."""
    tally, visits, calls = proof.tally, proof.visits, proof.calls
    return {
        "verdict": verdict(proof),
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
            {
                "operation": operation,
                "place": place,
                "kind": kind,
                "requests": stopped.total(),
                "stopped_by": dict(stopped),
            }
            for (operation, place, kind), stopped in sorted(tally.attacks.items())
        ],
        "honest": [
            {"operation": operation, "place": place, "requests": count}
            for (operation, place), count in sorted(tally.honest.items())
        ],
        "http": _http(visits),
        "api": _http(calls),
        "mutants": _mutants(proof),
        "data": {"tenants_changed": len(proof.changed), "items_left_behind": proof.left_behind},
        "crossing": _found(proof.crossing),
        "refused": _found(proof.refused),
        "versions": _versions(),
        "policy_sha256": hashlib.sha256(json.dumps(policies.document("tenant"), sort_keys=True).encode()).hexdigest(),
    }


def _http(visits: Visits) -> dict[str, Any]:
    return {
        "visits": visits.total,
        "withheld_writes": visits.withheld,
        "requests_watched": visits.asked,
        "routes": [
            {"route": route, "method": method, "visits": answers.total(), "answers": dict(sorted(answers.items()))}
            for (route, method), answers in sorted(visits.routes.items())
        ],
        "tricks": [
            {"trick": trick, "visits": answers.total(), "answers": dict(sorted(answers.items()))}
            for trick, answers in sorted(visits.tricks.items())
        ],
    }


def _mutants(proof: Proof) -> list[dict[str, Any]]:
    return [
        {
            "mistake": fate.mistake,
            "killed_by": fate.killed_by,
            "attempts": fate.attempts,
            "as_expected": fate.as_expected,
            "control": fate.mistake == CONTROL,
        }
        for fate in proof.fates
    ]


def verdict(proof: Proof) -> str:
    if proof.crossing:
        return "Isolation does NOT hold: a request crossed."
    if proof.refused:
        return "Not proved: an honest request was refused."
    if proof.changed:
        return "Isolation does NOT hold: data changed while nothing was allowed to write."
    if proof.survivors:
        return "Not proved: the attack did not notice a broken layer."
    if proof.left_behind:
        return "Not clean: items of the proof are still there."
    return "Isolation holds: no request crossed." if proof.finished else "Interrupted before the end."


def _found(found: Crossing | None) -> dict[str, Any] | None:
    return {"number": found.number, "why": found.why, "request": found.request} if found else None


def _versions() -> dict[str, str]:
    endpoint = urlsplit(settings.DYNAMODB_ENDPOINT_URL)
    return {
        "Python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "engine": f"{endpoint.hostname}:{endpoint.port}"
        if endpoint.hostname
        else f"Amazon DynamoDB, {settings.AWS_REGION}",
        "guard": "on" if settings.DYNAMODB_GUARD else "off",
        "tenant role": "on" if settings.TENANT_ROLE_ARN else "off",
    }


def by_kind(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each kind of attack with how often each layer stopped it, for people."""
    kinds: dict[str, Counter[str]] = {}
    for attack in found["attacks"]:
        kinds.setdefault(attack["kind"], Counter()).update(attack["stopped_by"])
    return [{"kind": kind, "requests": counted.total(), **counted} for kind, counted in sorted(kinds.items())]
