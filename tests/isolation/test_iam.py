"""The evaluator of policies, held against the rules as AWS states them and against a second, naive evaluator."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.isolation import policies
from portal.isolation.policies import LEADING_KEYS, TAG, Policy, PolicyError, Request
from portal.schema import registry
from portal.schema.registry import ROLES
from tests.support import commands
from tickets.ticket.stored import TICKETS

A, B = "a" * 32, "b" * 32
TABLE = "arn:aws:dynamodb:eu-central-1:000000000000:table/T"


def policy(*statements: dict[str, Any]) -> Policy:
    return Policy({"Version": "2012-10-17", "Statement": list(statements)})


def allow(**changes: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": TABLE, **changes}


def ask(*keys: str, action: str = "dynamodb:GetItem", resource: str = TABLE, tag: str | None = A) -> Request:
    return Request(action, resource, keys, tag)


def bound(pattern: str, operator: str = "ForAllValues:StringLike", *, null: bool = True) -> dict[str, Any]:
    condition: dict[str, Any] = {operator: {LEADING_KEYS: pattern}}
    if null:
        condition["Null"] = {LEADING_KEYS: "false"}
    return allow(Condition=condition)


OWN = f"TENANT#${{{TAG}}}|*"


DENY = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": "*"}
EITHER = allow(Condition={"ForAllValues:StringLike": {LEADING_KEYS: ["x*", "y*"]}})
BOTH = allow(Condition={"ForAllValues:StringLike": {LEADING_KEYS: "x*"}, "StringEquals": {TAG: [A]}})
TAGGED = allow(Condition={"Null": {TAG: False}})
EQUALS = bound("a*", "ForAllValues:StringEquals")
LITERAL = bound("${*}${?}${$}x")
TICKET = f"TENANT#{A}|TICKET#1"
WILD = ("*", "?", "a*", "[a]", ".*")
Statements = tuple[dict[str, Any], ...]
# What is granted, what is asked, and the answer.
CASES: dict[str, tuple[Statements, Request, bool]] = {
    "a leading key that begins with a digit": ((bound("0a", "ForAllValues:StringEquals"),), ask("0a"), True),
    "another action": ((allow(),), ask(action="dynamodb:PutItem"), False),
    "another resource": ((allow(),), ask(resource=TABLE + "2"), False),
    "a deny after an allow": ((allow(), DENY), ask(), False),
    "a deny before an allow": ((DENY, allow()), ask(), False),
    **{
        f"the action {action}": ((allow(Action=action),), ask(), True)
        for action in ("dynamodb:getitem", "DynamoDB:GetItem", "dynamodb:Get*", "*", "dynamodb:Get?tem")
    },
    **{
        f"the resource {resource}": ((allow(Resource=resource),), ask(), True)
        for resource in ("*", TABLE, TABLE[:-1] + "?", "arn:aws:dynamodb:*:*:table/T")
    },
    "a resource in another case": ((allow(),), ask(resource=TABLE.replace("table/T", "table/t")), False),
    "two own keys": ((bound(OWN),), ask(TICKET, f"TENANT#{A}|COUNTER"), True),
    "a foreign key beside an own one": ((bound(OWN),), ask(TICKET, f"TENANT#{B}|TICKET#1"), False),
    "tenant 10 by 1, without the delimiter": (
        (bound(f"TENANT#${{{TAG}}}*"),), ask("TENANT#10|TICKET#1", tag="1"), True
    ),
    "tenant 10 by 1": ((bound(OWN),), ask("TENANT#10|TICKET#1", tag="1"), False),
    "no keys, where ForAllValues passes": ((bound(OWN, null=False),), ask(), True),
    "no keys, where Null closes that": ((bound(OWN),), ask(), False),
    "a variable without a value": ((bound(OWN),), ask("TENANT#|TICKET#1", tag=None), False),
    "a variable's own text": ((bound(OWN),), ask(f"TENANT#${{{TAG}}}|TICKET#1", tag=None), False),
    **{f"the value {tag} as a wildcard": ((bound(OWN),), ask(TICKET, tag=tag), False) for tag in WILD},
    **{f"the value {tag} as itself": ((bound(OWN),), ask(f"TENANT#{tag}|TICKET#1", tag=tag), True) for tag in WILD},
    "StringEquals of the text": ((EQUALS,), ask("a*"), True),
    "StringEquals of a wildcard": ((EQUALS,), ask("ab"), False),
    "literals of special characters": ((LITERAL,), ask("*?$x"), True),
    "literals as wildcards": ((LITERAL,), ask("ab$x"), False),
    "a line break by a wildcard": ((bound(OWN),), ask(f"TENANT#{A}|x\ny"), True),
    "one of several patterns for each key": ((EITHER,), ask("x1", "y1"), True),
    "both conditions": ((BOTH,), ask("x"), True),
    "one of both conditions": ((BOTH,), ask("x", tag=B), False),
    "the tag that is required": ((TAGGED,), ask(), True),
    "without the tag that is required": ((TAGGED,), ask(tag=None), False),
    "an empty tag is no tag": ((TAGGED,), ask(tag=""), False),
    "an empty tag is like nothing": ((allow(Condition={"StringLike": {TAG: "*"}}),), ask(tag=""), False),
    "an empty tag as a value": ((bound(OWN),), ask("TENANT#|TICKET#1", tag=""), False),
    "a NUL behind the tag": ((bound(OWN),), ask(TICKET, tag=f"{A}\0"), False),
    "a NUL in a key": ((bound(OWN),), ask(f"{A}\0TENANT#{A}|TICKET#1"), False),
    "a NUL before a key": ((bound("x"),), ask("\0x", tag=None), False),
    "a variable in a resource": ((allow(Resource=TABLE + f"-${{{TAG}}}"),), ask(resource=f"{TABLE}-{A}"), True),
    "another's resource": ((allow(Resource=TABLE + f"-${{{TAG}}}"),), ask(resource=f"{TABLE}-{B}"), False),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "asked", "allowed"), CASES.values(), ids=CASES.keys())
def test_the_evaluator_answers_as_aws_states_it(statements: Statements, asked: Request, allowed: bool) -> None:
    assert policy(*statements).allows(asked) is allowed


def test_a_policy_is_compiled_once_for_all_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_one = policies._compiled
    monkeypatch.setattr(policies, "_compiled", lambda text: (compiled.append(text), compile_one(text))[1])
    loaded = policy(bound(OWN))
    when_loaded = len(compiled)
    for number in range(5000):
        tenant = f"{number:032x}"
        assert loaded.allows(ask(f"TENANT#{tenant}|TICKET#1", tag=tenant))
    assert len(compiled) == when_loaded > 0


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"Version": "2008-10-17", "Statement": [allow()]},
        {"Statement": [allow()]},
        {"Version": "2012-10-17", "Statement": []},
        {"Version": "2012-10-17", "Statement": [allow()], "Extra": 1},
        *(
            {"Version": "2012-10-17", "Statement": [s]}
            for s in (
                {"Effect": "Allow", "NotAction": "x", "Resource": "*"},
                {"Effect": "Allow", "Action": "x", "NotResource": "*"},
                allow(Principal="*"),
                allow(Effect="allow"),
                allow(Action=[]),
                allow(Action=1),
                allow(Resource=None),
                allow(Condition=[]),
                allow(Condition={"ForAnyValue:StringLike": {LEADING_KEYS: "x"}}),
                allow(Condition={"StringLikeIfExists": {TAG: "x"}}),
                allow(Condition={"StringLike": {LEADING_KEYS: "x"}}),
                allow(Condition={"ForAllValues:StringLike": {TAG: "x"}}),
                allow(Condition={"StringEquals": {"aws:SourceIp": "x"}}),
                allow(Condition={"Null": {LEADING_KEYS: "perhaps"}}),
                bound("${aws:username}"),
                bound("${aws:PrincipalTag/Other}"),
                bound("${aws:PrincipalTag/TenantId"),
                "text",
            )
        ),
    ],
    ids=lambda d: json.dumps(d)[:60],
)
def test_a_document_with_anything_else_is_refused(document: Any) -> None:
    with pytest.raises(PolicyError):
        Policy(document)


# --- a second evaluator, written from the documentation without a look at the first ---


def like(pattern: str, value: str) -> bool:
    """Glob matching by dynamic programming: no regular expressions, nothing shared with the evaluator."""
    reachable = {0}
    for character in pattern:
        if character == "*":
            reachable = set(range(min(reachable), len(value) + 1)) if reachable else set()
        else:
            reachable = {i + 1 for i in reachable if i < len(value) and character in ("?", value[i])}
    return len(value) in reachable


def naive(document: dict[str, Any], request: Request) -> bool:
    verdict = False
    for s in document["Statement"]:
        if not any(like(a.lower(), request.action.lower()) for a in s["Action"]):
            continue
        if not any(like(r, request.resource) for r in s["Resource"]):
            continue
        holds = True
        for operator, entries in s.get("Condition", {}).items():
            for values in entries.values():
                if operator == "Null":
                    holds = holds and (not request.keys) == (values == "true")
                    continue
                for key in request.keys:
                    matched = False
                    for v in values:
                        before, variable, after = v.partition(f"${{{TAG}}}")
                        if variable and request.tag is None:
                            continue
                        # The variable's value is plain text: it is compared character by character.
                        middle = request.tag if variable else ""
                        head = before + (middle or "")
                        if operator.endswith("Equals"):
                            matched = matched or key == head + after
                        elif "*" not in before:
                            matched = matched or (key.startswith(head) and like(after, key[len(head) :]))
                        else:
                            matched = matched or like(v, key)
                    holds = holds and matched
        if holds:
            if s["Effect"] == "Deny":
                return False
            verdict = True
    return verdict


ARNS = [policies.table_arn(t.full_name) for t in registry.tables()] + [
    policies.table_arn(t.full_name, i.name) for t in registry.tables() for i in t.indexes
]
ACTIONS = [
    f"dynamodb:{a}"
    for a in (
        "GetItem",
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "Query",
        "Scan",
        "BatchGetItem",
        "BatchWriteItem",
        "ConditionCheckItem",
    )
] + ["dynamodb:PartiQLSelect", "dynamodb:ExecuteStatement", "dynamodb:query", "s3:GetObject", "*"]
IDS = st.sampled_from([A, B, A + "0", A[:-1], A.upper(), "", "*", "${aws:PrincipalTag/TenantId}", "\u0430" * 32])
KEYS = st.one_of(
    st.builds(
        lambda t, rest: f"TENANT#{t}{rest}", IDS, st.sampled_from(["|TICKET#1", "|", "", "|OPEN#0", "#", "*", "|\n"])
    ),
    IDS,
    st.text(max_size=40),
)


@settings(max_examples=400)
@given(
    role=st.sampled_from(ROLES),
    action=st.sampled_from(ACTIONS),
    resource=st.sampled_from([*ARNS, "*", ARNS[0] + "x"]),
    keys=st.lists(KEYS, max_size=4),
    tag=st.one_of(st.none(), IDS),
)
def test_both_evaluators_agree_on_our_policies(
    role: str, action: str, resource: str, keys: list[str], tag: str | None
) -> None:
    document = policies.document(role)
    request = Request(action, resource, tuple(keys), tag)
    assert Policy(document).allows(request) == naive(document, request)


# --- the command ---


def stored(tmp_path: Path, document: Any) -> str:
    file = tmp_path / "policy.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(file)


def test_the_command_answers_one_verdict_a_line(tmp_path: Path) -> None:
    tickets = policies.table_arn(TICKETS.full_name)
    case = {"action": "dynamodb:GetItem", "resource": tickets, "keys": [f"TENANT#{A}|TICKET#1"], "tag": A}
    lines = "\n".join(json.dumps(c) for c in (case, case | {"tag": B}, case | {"keys": []}, case | {"tag": None}))
    process = commands.start("iam_evaluate", "--policy", stored(tmp_path, policies.document("tenant")))
    ended = commands.finish(process, stdin=lines)
    assert ended.status == 0, ended.err
    assert ended.out.split() == ["Allowed", "Denied", "Denied", "Denied"]


@pytest.mark.parametrize(
    "line", ["{", "[]", "null", '{"action": 1, "resource": "x"}', '{"action":"a","resource":"r","keys":"k"}']
)
def test_the_command_names_the_line_of_a_bad_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("\n" + line))
    ended = commands.run("iam_evaluate", "--policy", stored(tmp_path, policies.document("tenant")))
    assert ended.status == 1
    assert "Line 2" in ended.err


@pytest.mark.parametrize("document", ["{", "[]", '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow"}]}'])
def test_the_command_refuses_a_policy_that_it_does_not_understand(tmp_path: Path, document: str) -> None:
    ended = commands.run("iam_evaluate", "--policy", stored(tmp_path, document))
    assert ended.status == 1
    assert "refused" in ended.err


@pytest.mark.parametrize("role", ROLES)
def test_no_policy_grants_a_scan_partiql_or_a_wildcard(role: str) -> None:
    for statement in policies.document(role)["Statement"]:
        for action in statement["Action"]:
            assert "*" not in action
            assert not any(word in action.lower() for word in ("scan", "partiql", "statement"))
