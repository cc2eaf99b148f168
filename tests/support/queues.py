"""Made-up answers of Amazon SQS on the real client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from portal.queueing import sqs_client


@contextmanager
def sqs_answering(operation: str, answer: dict[str, Any], *, status: int = 200) -> Iterator[list[dict[str, Any]]]:
    """The workers' client gives this answer to an operation, however often. Yields the requests answered so."""
    client = sqs_client.queue_connection("worker").client
    requests: list[dict[str, Any]] = []

    def given(params: dict[str, Any], **_: Any) -> None:
        requests.append(params)

    def answered(**_: Any) -> tuple[Any, dict[str, Any]]:
        return SimpleNamespace(status_code=status), answer

    client.meta.events.register(f"provide-client-params.sqs.{operation}", given)
    client.meta.events.register(f"before-call.sqs.{operation}", answered)
    try:
        yield requests
    finally:
        client.meta.events.unregister(f"provide-client-params.sqs.{operation}", given)
        client.meta.events.unregister(f"before-call.sqs.{operation}", answered)
