"""Root, who runs the platform and has access to what the people of Acme wrote."""

from __future__ import annotations

import pytest

from tests.support.operators import Operator, make_operator
from tests.support.world import World


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    return Operator.signed_in().open("acme")
