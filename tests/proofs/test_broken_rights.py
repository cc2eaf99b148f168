"""What a role may not do: each sentence of the document is a promise, and each promise has a mistake that breaks it."""

from __future__ import annotations

import pytest

from portal.schema.registry import ROLES
from proofs.isolation import privileges
from proofs.isolation.broken_rights import MISTAKES


def broken_by(mistake: str) -> str:
    with MISTAKES[mistake].patched():
        return privileges.first_broken()[0]


def test_the_roles_as_they_are_keep_every_promise() -> None:
    broken, looked_at = privileges.first_broken()
    assert (broken, looked_at > 300) == ("", True)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_rights_of_a_role_breaks_a_promise(mistake: str) -> None:
    assert broken_by(mistake)
    assert privileges.first_broken()[0] == ""  # and nothing of it is left


def test_each_promise_has_a_mistake_that_breaks_it_and_no_other_promise_hides_it() -> None:
    broken = {broken_by(mistake).partition(" (")[0] for mistake in MISTAKES}
    assert broken == {promise.words for promise in privileges.promises()}


def test_a_mistake_is_found_in_the_role_that_it_was_made_in() -> None:
    for role in ROLES:
        for mistake in (m for m in MISTAKES if f"the {role} role" in m):
            assert broken_by(mistake).endswith(f"(IAM, {role})"), mistake
