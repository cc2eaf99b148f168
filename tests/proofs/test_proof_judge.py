"""The judge of the proof, and what keeps the proof harmless: neither shares anything with the layers."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as django_settings

from portal.dynamo import client
from portal.dynamo.placement import POOL
from portal.isolation import guard, policies
from portal.schema import registry
from proofs.isolation import mutants
from proofs.isolation.attempts import requests
from proofs.isolation.attempts.attempt import Draw, is_harmless
from proofs.isolation.data_attack import AttackPlan
from proofs.isolation.oracle import Oracle
from proofs.isolation.transport import IAM, NOT_SENT, Crossed, Wire, hooks_of
from proofs.isolation.walk import visitors
from tests.architecture.test_layers import imports
from tests.support.proving import plan, three
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

__all__ = ["plan", "three"]  # fixtures

A, B = "a" * 32, "b" * 32


def test_the_judge_shares_no_code_with_the_layers_that_it_judges() -> None:
    path = Path(django_settings.BASE_DIR) / "proofs" / "isolation" / "oracle.py"
    used = {use.what for use in imports(ast.walk(ast.parse(path.read_text())), "proofs.isolation.oracle")}
    assert "re" in used
    assert not {what for what in used if what.startswith(("portal.isolation", "portal.dynamo"))}


# --- the judge ---


def key(pk: str, **more: Any) -> dict[str, Any]:
    return {"TableName": TICKETS.full_name, "Key": {"pk": {"S": pk}, "sk": {"S": "SUMMARY"}}, **more}


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (stored.ticket(A, 1), True),
        (A, True),
        (stored.ticket(B, 1), False),
        (A + "0", False),
        (f"TENANT#{A}0|", False),
        ("", False),
    ],
)
def test_the_judge_knows_one_rule(text: str, own: bool) -> None:
    oracle = Oracle(A)
    assert oracle.allows("GetItem", key(text)) is own
    assert oracle.allows("Scan", key(text)) is False
    assert oracle.allows("DeleteItem", key(text)) is False
    assert [*oracle.foreign_in({"Items": [{"pk": {"S": text}}]})] == ([] if own else [text])


@pytest.mark.parametrize(("sort", "may"), [("SUMMARY", False), ("ACTIVITY#1", True)])
def test_the_hunt_for_broken_layers_asks_all_that_guards_a_request(plan: AttackPlan, sort: str, may: bool) -> None:
    me = plan.targets[0]
    params = key(stored.ticket(me.id, 1)) | {"Key": {"pk": {"S": stored.ticket(me.id, 1)}, "sk": {"S": sort}}}
    attempt: Any = SimpleNamespace(operation="DeleteItem", params=params, draw=SimpleNamespace(me=me))
    policy = policies.Policy(policies.document("tenant"))
    assert mutants._passes(policy, attempt, POOL)[0] is may is Oracle(me.id).allows("DeleteItem", params)


@pytest.mark.parametrize("operation", [*requests.SINGLE, "TransactWriteItems"])
def test_the_judge_and_the_guard_agree_on_requests_that_were_tampered_with(plan: AttackPlan, operation: str) -> None:
    policy = policies.Policy(policies.document("tenant"))
    for table in (t for t in registry.tables() if t.scope == "tenant"):
        for seed in range(40):
            draw = Draw(random.Random(seed), *plan.targets[:2])  # noqa: S311
            made = requests.own(draw, operation, table)
            attempt = made.attempt(requests._tampered(draw, made))
            if mutants._passes(policy, attempt, POOL)[0]:
                assert Oracle(draw.me.id).allows(operation, attempt.params), attempt.described


def test_no_write_of_the_plan_could_harm_anybody_if_it_were_sent(plan: AttackPlan) -> None:
    oracles = {t.id: Oracle(t.id) for t in plan.targets}
    for number in range(4000):
        attempt = plan.attempt(number)
        if attempt.call is None and oracles[attempt.draw.me.id].allows(attempt.operation, attempt.params):
            assert is_harmless(attempt.operation, attempt.params), attempt.described


# --- with IAM as the layer ---


def behind_iam(made: AttackPlan, answer: tuple[int, dict[str, Any]], settings: LazySettings) -> dict[str, int]:
    """What becomes of hostile requests where the guard is off and the engine answers so to whatever is forbidden."""
    settings.DYNAMODB_GUARD = False
    client.reset()
    wire = Wire({t.id: Oracle(t.id) for t in made.targets}, behind_iam=True)

    def refuse(**_: Any) -> Any:
        return (SimpleNamespace(status_code=answer[0]), answer[1]) if wire._forbidden else None

    for events in hooks_of("tenant"):  # each placement asks its own IAM
        events.register("before-call.dynamodb", refuse)
    stopped: dict[str, int] = {}
    try:
        with wire.attached("tenant"):
            for number in range(300):
                attempt = made.attempt(number)
                how = wire.attempt(attempt)
                stopped[how] = stopped.get(how, 0) + 1
    finally:
        settings.DYNAMODB_GUARD = True
        client.reset()
        visitors.remove_scratch(made.targets)
    return stopped


def test_with_the_guard_off_iam_has_to_deny(plan: AttackPlan, settings: LazySettings) -> None:
    denied = {"Error": {"Code": "AccessDeniedException", "Message": "no"}, "ResponseMetadata": {}}
    stopped = behind_iam(plan, (400, denied), settings)
    assert stopped[IAM] > 20
    assert stopped[NOT_SENT] > 20
    assert not [how for how in stopped if how.startswith("guard")]
    with pytest.raises(guard.IsolationError):
        guard.current_tenant()


@pytest.mark.parametrize("code", ["", "ConditionalCheckFailedException"])
def test_an_engine_that_looks_at_the_item_has_not_denied(code: str, plan: AttackPlan, settings: LazySettings) -> None:
    answer: dict[str, Any] = {"Error": {"Code": code, "Message": ""}} if code else {}
    with pytest.raises(Crossed, match="IAM let through"):
        behind_iam(plan, (400 if code else 200, answer), settings)
