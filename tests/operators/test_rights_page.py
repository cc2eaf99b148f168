"""Operators see what each role may do, which statement allows it, and what would change without one sentence."""

from __future__ import annotations

from portal.isolation import policies, rights
from portal.isolation.policies import Policy
from portal.isolation.rights import WHOLE, Sentence
from portal.schema import registry
from portal.schema.registry import ROLES
from proofs.isolation.mutants import MUTANTS
from tests.support.operators import Operator, text_of
from tests.support.world import World

PAGE = "/admin/rights/"
TICKETS = "OwnSupportTickets"


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
    assert "Would be allowed Support.Tickets, with another tenant's key: GetItem, BatchGetItem, Query" in page
    assert "Would be refused" not in page
    assert "“policy: a pattern that fits every tenant”" in page
    assert "Support.Tickets, without a key: GetItem" in without(root, "tenant", f"{TICKETS}/Null")


def test_without_a_statement_what_it_allows_is_refused(root: Operator) -> None:
    page = without(root, "tenant", f"{TICKETS}/statement")
    assert "Would be refused Support.Tickets, with its own key: GetItem, BatchGetItem, Query" in page
    assert "Would be allowed" not in page
    assert "It lets nobody do more" in page


def test_each_mutant_that_the_page_names_is_one_of_the_proofs() -> None:
    named = {rights.mutant_of(role, one) for role in ROLES for one in rights.sentences(role)} - {""}
    assert named <= MUTANTS.keys()
    assert len(named) == 3


def test_a_sentence_or_role_that_is_none_changes_nothing(root: Operator) -> None:
    for query in ({"role": "nobody"}, {"without": "x"}, {"without": "OwnSupportTickets/Scan"}, {"without": "\0/"}):
        assert "Would be" not in text_of(root.get(PAGE, query))
    assert Sentence("OwnSupportTickets") in rights.sentences("tenant")


def test_only_operators_see_it(world: World) -> None:
    assert world.browser("alice", "acme").get(PAGE).status_code == 403
