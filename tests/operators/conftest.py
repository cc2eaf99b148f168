"""Root, who runs the platform and has access to what the people of Acme wrote."""

from __future__ import annotations

import pytest

from tests.support import engine_memory
from tests.support.operators import Operator, make_operator
from tests.support.world import World


def _cookies() -> dict[str, str]:
    make_operator()
    return {name: one.value for name, one in Operator.signed_in().open("acme").cookies.items()}


@pytest.fixture
def root(world: World) -> Operator:
    browser = Operator()
    browser.cookies.load(engine_memory.continued("root-with-acme", _cookies))
    return browser
