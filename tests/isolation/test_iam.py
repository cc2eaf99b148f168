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


def test_without_a_statement_that_matches_the_answer_is_no() -> None:
    assert not policy(allow()).allows(ask(action="dynamodb:PutItem"))
    assert not policy(allow()).allows(ask(resource=TABLE + "2"))


def test_an_explicit_deny_wins_over_any_allow_in_any_order() -> None:
    deny = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": "*"}
    assert not policy(allow(), deny).allows(ask())
    assert not policy(deny, allow()).allows(ask())


@pytest.mark.parametrize("action", ["dynamodb:getitem", "DynamoDB:GetItem", "dynamodb:Get*", "*", "dynamodb:Get?tem"])
def test_actions_match_in_any_case_and_with_wildcards(action: str) -> None:
    assert policy(allow(Action=action)).allows(ask())


@pytest.mark.parametrize("resource", ["*", TABLE, TABLE[:-1] + "?", "arn:aws:dynamodb:*:*:table/T"])
def test_resources_match_with_wildcards(resource: str) -> None:
    assert policy(allow(Resource=resource)).allows(ask())


def test_resources_match_in_their_own_case_only() -> None:
    assert not policy(allow()).allows(ask(resource=TABLE.replace("table/T", "table/t")))


def test_each_leading_key_must_match() -> None:
    own = policy(bound(OWN))
    assert own.allows(ask(f"TENANT#{A}|TICKET#1", f"TENANT#{A}|COUNTER"))
    assert not own.allows(ask(f"TENANT#{A}|TICKET#1", f"TENANT#{B}|TICKET#1"))


def test_without_the_delimiter_tenant_1_reads_tenant_10() -> None:
    assert policy(bound(f"TENANT#${{{TAG}}}*")).allows(ask("TENANT#10|TICKET#1", tag="1"))
    assert not policy(bound(OWN)).allows(ask("TENANT#10|TICKET#1", tag="1"))


def test_an_empty_set_of_keys_passes_for_all_values_and_null_closes_that() -> None:
    assert policy(bound(OWN, null=False)).allows(ask())
    assert not policy(bound(OWN)).allows(ask())


def test_a_variable_without_a_value_matches_nothing() -> None:
    assert not policy(bound(OWN)).allows(ask("TENANT#|TICKET#1", tag=None))
    assert not policy(bound(OWN)).allows(ask(f"TENANT#${{{TAG}}}|TICKET#1", tag=None))


@pytest.mark.parametrize("tag", ["*", "?", "a*", "[a]", ".*"])
def test_the_value_of_a_variable_is_never_a_wildcard(tag: str) -> None:
    assert not policy(bound(OWN)).allows(ask(f"TENANT#{A}|TICKET#1", tag=tag))
    assert policy(bound(OWN)).allows(ask(f"TENANT#{tag}|TICKET#1", tag=tag))


def test_string_equals_has_no_wildcards() -> None:
    equals = policy(bound("a*", "ForAllValues:StringEquals"))
    assert equals.allows(ask("a*"))
    assert not equals.allows(ask("ab"))


def test_literals_of_special_characters_are_not_wildcards() -> None:
    literal = policy(bound("${*}${?}${$}x"))
    assert literal.allows(ask("*?$x"))
    assert not literal.allows(ask("ab$x"))


def test_a_wildcard_also_matches_line_breaks() -> None:
    assert policy(bound(OWN)).allows(ask(f"TENANT#{A}|x\ny"))


def test_several_patterns_are_alternatives_and_several_conditions_all_hold() -> None:
    either = allow(Condition={"ForAllValues:StringLike": {LEADING_KEYS: ["x*", "y*"]}})
    assert policy(either).allows(ask("x1", "y1"))
    both = allow(Condition={"ForAllValues:StringLike": {LEADING_KEYS: "x*"}, "StringEquals": {TAG: [A]}})
    assert policy(both).allows(ask("x"))
    assert not policy(both).allows(ask("x", tag=B))


def test_the_tag_can_be_required() -> None:
    tagged = policy(allow(Condition={"Null": {TAG: False}}))
    assert tagged.allows(ask())
    assert not tagged.allows(ask(tag=None))


def test_an_empty_tag_is_no_tag() -> None:
    assert not policy(allow(Condition={"Null": {TAG: False}})).allows(ask(tag=""))
    assert not policy(allow(Condition={"StringLike": {TAG: "*"}})).allows(ask(tag=""))
    assert not policy(bound(OWN)).allows(ask("TENANT#|TICKET#1", tag=""))


def test_a_nul_in_tag_or_value_shifts_nothing() -> None:
    assert not policy(bound(OWN)).allows(ask(f"TENANT#{A}|TICKET#1", tag=f"{A}\0"))
    assert not policy(bound(OWN)).allows(ask(f"{A}\0TENANT#{A}|TICKET#1"))
    assert not policy(bound("x")).allows(ask("\0x", tag=None))


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


def test_a_variable_can_stand_in_a_resource() -> None:
    own = policy(allow(Resource=TABLE + f"-${{{TAG}}}"))
    assert own.allows(ask(resource=f"{TABLE}-{A}"))
    assert not own.allows(ask(resource=f"{TABLE}-{B}"))


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


@settings(max_examples=400, deadline=None)
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
