"""Operators see what each role may do, which statement allows it, and what would change without one sentence."""

from __future__ import annotations

import pytest

from portal.isolation import policies, rights
from portal.isolation.policies import Policy
from portal.isolation.rights import WHOLE, Sentence
from portal.schema import registry
from portal.schema.registry import ROLES
from proofs.isolation.mutants import MUTANTS
from tests.support.operators import Operator, text_of
from tickets.isolation_runs import platform_proofs

PAGE = "/admin/rights/"
TICKETS = "OwnSupportTickets"


REPORT = {
    "began": "2026-11-20T10:00:00.000000Z", "verdict": "held", "holds": True, "tenants": 5,
    "requests": {"hostile": 20_000, "honest": 10}, "versions": {"engine": "moto", "Pooldesk": "1.2.0"},
    "policy_sha256": "0",
    "mutants": [
        {"mistake": "guard: lets all through", "killed_by": "not kept: tickets", "attempts": 75, "control": False,
         "as_expected": True},
    ],
}  # fmt: skip


def without(root: Operator, role: str, sentence: str) -> str:
    return text_of(root.get(PAGE, {"role": role, "without": sentence}))


def test_each_table_index_and_statement_is_in_the_matrix_of_its_roles(root: Operator) -> None:
    page = text_of(root.get(PAGE))
    assert all(table.name in page for table in registry.tables())
    assert all(index.label in page for table in registry.tables() for index in table.indexes)
    for role in ROLES:
        shown = {sid for sids in rights.decided(role).values() for sid in sids}
        about_tables = {one.sid for one in rights.sentences(role) if one.part == WHOLE}
        streams = {s["Sid"] for s in policies.document(role)["Statement"] if "/stream/" in str(s["Resource"])}
        others = {"CountTables", "MakeTablesOfTheirOwn", "SeeHowTablesOfAllAreKept"}  # of no operation on items
        assert about_tables - shown <= streams | others, role


def test_the_matrix_says_what_the_policy_decides() -> None:
    for role in ROLES:
        policy, tag = Policy(policies.document(role)), "a" * 32 if role == "tenant" else None
        for (place, operation, whose), sids in rights.decided(role).items():
            if whose == "bound":
                continue
            asked = policies.Request(f"dynamodb:{operation}", place.arn, place.key(whose), tag)
            assert policy.allows(asked) == bool(sids)
    allowed = {whose for (_, _, whose), sids in rights.decided("tenant").items() if sids}
    assert allowed == {"own"}


def test_without_a_condition_another_tenants_keys_would_be_allowed_and_a_proof_breaks_it_so(root: Operator) -> None:
    page = without(root, "tenant", f"{TICKETS}/ForAllValues:StringLike")
    assert (
        "Would be allowed Support.Tickets: GetItem, BatchGetItem, Query, ConditionCheckItem, PutItem, UpdateItem, "
        in page
    )
    assert "DeleteItem with another tenant's keys, keys of any other form" in page
    assert "Would be refused" not in page
    assert "“policy: a pattern that fits every tenant”" in page
    assert "DeleteItem with no key" in without(root, "tenant", f"{TICKETS}/Null")
    assert "breaks this in all statements at once" in page


def test_without_a_statement_what_it_allows_is_refused(root: Operator) -> None:
    page = without(root, "tenant", f"{TICKETS}/statement")
    assert "Would be refused Support.Tickets: GetItem, BatchGetItem, Query" in page
    assert "DeleteItem with the tenant's own keys" in page
    assert "Would be allowed" not in page
    assert "Nobody could do more" in page
    assert '"dynamodb:DeleteItem"' in page


@pytest.mark.parametrize(
    ("role", "sid", "place"),
    [
        ("worker", "MaintainSearch", "Support.Search"),
        ("seed", "WriteInBulk", "Support.Tickets"),
        ("seed", "WriteRequesters", "Support.Requesters"),
    ],
)
def test_without_the_condition_of_a_role_that_serves_all_tenants_keys_of_other_forms_would_be_allowed(
    root: Operator, role: str, sid: str, place: str
) -> None:
    page = without(root, role, f"{sid}/ForAllValues:StringLike")
    assert f"Would be allowed {place}: " in page
    assert "with keys of any other form" in page
    assert "Nothing would change" not in page


def test_a_statement_about_keys_of_one_form_is_not_replaced_by_one_about_another(root: Operator) -> None:
    page = without(root, "platform", "ReadPurges/statement")
    assert "Would be refused Platform.Directory: " in page
    assert "with keys of a stated form" in page
    assert "Nothing would change" not in page


def test_a_statement_that_the_matrix_does_not_show_says_so_and_what_it_allows(root: Operator) -> None:
    page = without(root, "worker", "ReadStream/statement")
    assert "The matrix does not show what this statement is about" in page
    assert '"dynamodb:GetRecords"' in page
    assert "Nothing would change" not in page
    assert "ReadStream" in text_of(root.get(PAGE, {"role": "worker"})).partition("not in the matrix")[2]


def test_the_rights_of_all_roles_to_one_table_are_on_one_page(root: Operator) -> None:
    page = text_of(root.get(PAGE, {"table": "Platform.Users"}))
    assert "platform: Platform.Users account USER#<person>" in page
    assert "delivery: Platform.Users" in page
    assert "No right to: worker: Platform.Users" not in page.partition("As it is now")[0]
    assert root.get(PAGE, {"table": "nobody's"}).status_code == 404


def test_the_page_says_what_the_last_proof_found_and_the_front_page_that_there_is_none(root: Operator) -> None:
    assert "Isolation was not proved here." in text_of(root.get("/admin/"))
    assert "No proof was kept here." in text_of(root.get(PAGE))
    platform_proofs.record(REPORT)
    page = text_of(root.get(PAGE))
    said = "It sent 20,000 hostile requests, and 1 of 1 mistakes that were made on purpose were noticed."
    assert f"{REPORT['verdict']} {said}" in page
    assert "guard: lets all through: not kept: tickets, after 75 attempts" in page
    assert "Isolation was not proved here." not in text_of(root.get("/admin/"))


def test_each_mutant_that_the_page_names_is_one_of_the_proofs() -> None:
    named = {rights.mutant_of(role, one) for role in ROLES for one in rights.sentences(role)} - {""}
    assert named <= MUTANTS.keys()
    assert len(named) == 3


def test_a_sentence_or_role_that_is_none_changes_nothing(root: Operator) -> None:
    assert root.get(PAGE, {"role": "nobody"}).status_code == 404
    for query in ({"without": "x"}, {"without": "OwnSupportTickets/Scan"}, {"without": "\0/"}):
        assert "Would be" not in text_of(root.get(PAGE, query))
    assert Sentence("OwnSupportTickets") in rights.sentences("tenant")
