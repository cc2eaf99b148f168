from __future__ import annotations

import pytest

from tests.support.api_client import ApiClient, api_client
from tests.support.world import World


@pytest.fixture
def client(world: World) -> ApiClient:
    """Calls with a key of Acme that may do everything."""
    return api_client(world)
