"""What is stored, written past every role: as no code of the portal can."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from django.conf import settings

from portal.dynamo import client
from portal.dynamo.client import Item
from portal.dynamo.store import batch_put


def unguarded() -> client.SharedConnection:
    """A connection to the engine of this moment, without guard and meter."""
    return _unguarded(settings.DYNAMODB_ENDPOINT_URL)


@cache
def _unguarded(url: str) -> client.SharedConnection:
    return client.SharedConnection(partial(client._create, "dynamodb", client._session(url), url))


def put_all(items: Iterable[Item]) -> None:
    """Write many items, of any tables."""
    batch_put(unguarded(), items)


def send(operation: str, **params: Any) -> dict[str, Any]:
    """Send one request to the engine."""
    answer: dict[str, Any] = unguarded().dispatch(operation, params)
    return answer
