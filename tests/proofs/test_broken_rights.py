"""What a role may not do: each sentence of the document is a promise, and each promise has a mistake that breaks it."""

from __future__ import annotations

import pytest

from portal.schema.registry import ROLES
from proofs.isolation import privileges
from proofs.isolation.mutants import MISTAKES, MUTANTS


@pytest.fixture(scope="module")
def broken() -> dict[str, str]:
    """The promise that each mistake breaks, "" where it breaks none."""
    found = {}
    for mistake, wrong in MISTAKES.items():
        with wrong.patched():
            found[mistake] = privileges.first_broken()[0]
    return found


def test_the_roles_as_they_are_keep_every_promise_and_nothing_of_a_mistake_is_left(broken: dict[str, str]) -> None:
    found, looked_at = privileges.first_broken()
    assert (found, looked_at > 300) == ("", True)


def test_each_mistake_in_the_rights_of_a_role_breaks_a_promise(broken: dict[str, str]) -> None:
    assert [mistake for mistake, promise in broken.items() if not promise] == []


def test_each_mistake_is_among_the_layers_that_the_proof_breaks() -> None:
    assert MISTAKES.items() <= MUTANTS.items()


def test_each_promise_has_a_mistake_that_breaks_it_and_no_other_promise_hides_it(broken: dict[str, str]) -> None:
    found = {promise.partition(" (")[0] for promise in broken.values()}
    assert found == {promise.words for promise in privileges.promises()}


def test_a_mistake_is_found_in_the_role_that_it_was_made_in(broken: dict[str, str]) -> None:
    for role in ROLES:
        for mistake in (m for m in MISTAKES if f"the {role} role" in m):
            assert broken[mistake].endswith(f"(IAM, {role})"), mistake
