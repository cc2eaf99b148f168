"""Key conditions, tens of thousands of them: what the guard accepts binds the partition to the key that it has read.

Each accepted one is read again by moto, which knows the whole grammar and shares nothing with the guard, and is tried
on items of all kinds.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Any

import pytest
from boto3.dynamodb.conditions import ConditionBase, ConditionExpressionBuilder, Key
from hypothesis import example, given, settings
from hypothesis import strategies as st
from moto.dynamodb.comparisons import get_filter_expression
from moto.dynamodb.models import DynamoType, Item

from portal.isolation import expressions, guard
from portal.isolation.guard import IsolationError, acting_for, refuse_foreign
from portal.isolation.policies import Policy, document
from tests.support.guarded import A, B
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

OWN, FOREIGN = stored.ticket(A, 7), stored.ticket(B, 7)
TEXTS = (OWN, FOREIGN, stored.ticket(A, 77), "", "SUMMARY", "~")
NAMES = {"#h": "pk", "#g": "pk", "#r": "sk", "#t": "title"}
VALUES = {":o": OWN, ":f": FOREIGN, ":x": "SUMMARY", ":e": ""}

WORDS = [
    *NAMES, *VALUES, "pk", "sk", "PK", "=", "=", "=", "<>", "<", "<=", ">", ">=", "AND", "AND", "and", "OR", "or",
    "NOT", "BETWEEN", "between", "IN", "begins_with", "begins_with (", "begins_with(", "contains(", "size(", "(", ")",
    "(", ")", ",", ".", "#unknown", ":unknown", "\n", "\t", "  ", "\u00a0", "--", "'", '"', "0",
]  # fmt: skip
CLAUSES = [
    *(f"{n} {o} {v}" for n in ("#h", "#g", "#r", "pk", "sk") for o in ("=", "<", ">=", "<>") for v in VALUES),
    *(f"{n} BETWEEN {a} AND {b}" for n in ("#h", "#r", "pk") for a in VALUES for b in VALUES),
    *(f"begins_with{s}({n}, {v})" for s in ("", " ") for n in ("#h", "#r", "sk") for v in VALUES),
]


def query(condition: str, names: dict[str, str], values: dict[str, str]) -> dict[str, Any]:
    return {
        "TableName": TICKETS.full_name,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {name: {"S": text} for name, text in values.items()},
    }


def extracted(params: dict[str, Any]) -> str | None:
    """The key that the guard reads in this Query; None where it refuses to read one."""
    try:
        (request,) = guard.requests_of("Query", params, A)
    except (guard.NotUnderstood, LookupError, ValueError):
        return None
    (key,) = request.keys
    return key


@cache
def item(pk: str, sk: str) -> Item:
    return Item(DynamoType({"S": pk}), None, {"pk": {"S": pk}, "sk": {"S": sk}, "title": {"S": pk}})


def check(condition: str, names: dict[str, str], values: dict[str, str]) -> bool:
    """Whether the guard accepts it. Fails where it has read another key than the condition binds."""
    params = query(condition, names, values)
    key = extracted(params)
    if key is None:
        return False
    try:
        read = get_filter_expression(" ".join(condition.split()), names, params["ExpressionAttributeValues"])
    except KeyError:  # a value that is not there: the engine refuses it
        return True
    for pk, sk in product({*TEXTS, key, key + "0", key[:-1]}, TEXTS):
        assert pk == key or not read.expr(item(pk, sk)), f"{condition} also finds {pk!r}"
    return True


def made_up(rng: random.Random) -> tuple[str, dict[str, str], dict[str, str]]:
    """A condition of clauses and of loose words, with names and values in their places or not."""
    kind = rng.random()
    if kind < 0.3:  # nearly right: one clause binds the partition, the other may spoil it
        clauses = [f"{rng.choice(['#h', '#g', 'pk'])} = {rng.choice([*VALUES])}", rng.choice(CLAUSES)]
        condition = " AND ".join(rng.sample(clauses, rng.randint(1, 2)))
    elif kind < 0.55:
        condition = rng.choice([" AND ", " AND ", " and ", " OR ", ""]).join(rng.choices(CLAUSES, k=rng.randint(1, 3)))
    elif kind < 0.75:
        condition = f"({' AND '.join(rng.choices(CLAUSES, k=rng.randint(1, 2)))})"
    else:
        condition = rng.choice(["", " "]).join(rng.choices(WORDS, k=rng.randint(1, 9)))
    if rng.random() < 0.2:
        place = rng.randrange(len(condition) + 1)
        condition = condition[:place] + rng.choice([*WORDS, " ", "", "#", ":"]) + condition[place + rng.randint(0, 2) :]
    names = {name: rng.choice([real, real, real, "pk", "sk"]) for name, real in NAMES.items()}
    values = {name: rng.choice([text, text, text, OWN, FOREIGN]) for name, text in VALUES.items()}
    return condition, names, values


@settings(max_examples=200)
@given(st.integers(0, 2**64))
@example(0)
def test_twenty_thousand_conditions_bind_exactly_the_key_that_was_read(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # hypothesis has to be able to repeat it
    for _ in range(100):
        check(*made_up(rng))


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*WORDS, *CLAUSES]) | st.text(max_size=3), max_size=7), st.sampled_from(["", " "]))
def test_no_sequence_of_words_is_read_wrongly(words: list[str], between: str) -> None:
    check(between.join(words), NAMES, VALUES)


def test_the_fuzzing_reaches_both_verdicts() -> None:
    rng = random.Random(1)  # noqa: S311
    accepted = sum(check(*made_up(rng)) for _ in range(3000))
    assert 300 < accepted < 2500


@pytest.mark.parametrize(
    "condition",
    [
        "#h = :o",
        "(#h = :o)",
        " pk=:o ",
        "#h = :o AND #r = :x",
        "#r BETWEEN :x AND :x AND #h = :o",
        "(#h = :o AND begins_with (#r, :x))",
        "#h = :o AND begins_with(#r, :x)",
        "#h = :o AND sk >= :x",
    ],
)
def test_what_the_repositories_and_pynamodb_write_is_understood(condition: str) -> None:
    assert check(condition, NAMES, VALUES)


@pytest.mark.parametrize(
    "rest", [Key("sk").begins_with("x"), Key("sk").between("a", "b"), Key("sk").gte("x"), Key("sk").eq("x")]
)
def test_what_boto3_makes_of_its_own_conditions_is_understood(rest: ConditionBase) -> None:
    own = Key("pk").eq(OWN)
    for condition in (own, own & rest, rest & own):
        assert check(*ConditionExpressionBuilder().build_expression(condition, is_key_condition=True))


@pytest.mark.parametrize(
    "condition",
    [
        "#h = :o OR #h = :f",
        "#h = :f AND #h = :o",
        "#h = :o AND #g = :f",
        "pk = :o AND #h = :f",
        "NOT #h = :o",
        "#h BETWEEN :o AND :f",
        "begins_with(#h, :o)",
        "#h IN (:o)",
        "#h <> :f",
        "#r = :o",
        "#h = :o and #r = :x",
        "#h = :o AND #r = :x AND #t = :x",
        "((#h = :o))",
        "(#h = :o) AND (#r = :x)",
        ":o = #h",
        "#h = :o #",
        "#h = :unknown",
        "#unknown = :o",
        "and = :o",
        "",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(condition: str) -> None:
    params = query(condition, NAMES, VALUES)
    with acting_for(A), pytest.raises(IsolationError):
        refuse_foreign(Policy(document("tenant")), "Query", params)


# --- updates ---


PARTS = [
    "SET", "REMOVE", "ADD", "DELETE", "set", "#i", "tenant_status", "title", ":o", ":f", "=", "=", ",", "+", "(", ")",
    "if_not_exists(", "list_append(", ".", "[0]", " ", "SET #i = :o", ", #i = :f", "title = #i",
]  # fmt: skip


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PARTS), max_size=9), st.sampled_from(["", " "]))
def test_a_mention_is_never_missed_and_only_a_plain_assignment_has_a_value(words: list[str], between: str) -> None:
    text = between.join(words)
    found = expressions.mentions(text)
    for name, value in found:
        assert not value or f"{name}={value}" in "".join(text.split())
    for name in ("#i", "tenant_status"):
        alone = [w for w in text.replace("(", " ").replace(")", " ").replace(",", " ").split() if w == name]
        assert len(alone) <= sum(mentioned == name for mentioned, _ in found)
