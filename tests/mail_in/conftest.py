from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import letters_in
from tests.support.world import World


@pytest.fixture
def mail(world: World) -> Iterator[World]:
    """The world with mail coming in."""
    with letters_in.mail():
        yield world
