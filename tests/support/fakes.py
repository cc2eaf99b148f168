"""Stand-ins for the engine: made-up answers on the real client, and index partitions held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from portal.dynamo import client
from portal.dynamo.models import ByIndex
from portal.dynamo.store import Page
from portal.schema import registry
from tenants.tenancy.context import Role, TenantContext
from tickets.ticket import stored
from tickets.ticket.fields import Status

Answer = tuple[int, dict[str, Any]]  # HTTP status and parsed body


def refusal(code: str, *, status: int = 400, **more: Any) -> Answer:
    """An error as botocore hands it on."""
    body = {"Error": {"Code": code, "Message": "made up"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return status, body | more


@contextmanager
def answering(
    role: registry.Role, operation: str, *answers: Answer | Callable[[dict[str, Any]], Answer | None]
) -> Iterator[list[dict[str, Any]]]:
    """The role's client gives these answers to the operation, one per call, and then asks the engine again. Where an
    answer is a function that returns None, the engine is asked as well.

    Yields the requests that were answered so.
    """
    events = client.connection(role).client.meta.events
    left, seen = list(answers), []

    def answer(model: Any, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if not left:
            return None
        seen.append(params)
        given = left.pop(0)
        answered = given(params) if callable(given) else given
        return answered and (SimpleNamespace(status_code=answered[0]), answered[1])

    events.register(f"before-call.dynamodb.{operation}", answer)
    try:
        yield seen
    finally:
        events.unregister(f"before-call.dynamodb.{operation}", answer)


class IndexInMemory:
    """What `queries.page` needs of a repository: Query on the ticket indexes, as DynamoDB answers it.

    Rows with the same sort key keep an order of the engine's own. A LastEvaluatedKey comes whenever Limit stopped
    the Query, even behind the very last row; a start key need not exist any more, but must lie inside the bounds.
    """

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.rows: list[dict[str, Any]] = []
        self.queries = 0
        self.read = 0  # rows that left the index

    def key(self, build: Callable[..., str], *args: Any) -> str:
        return build(self.tenant_id, *args)

    def query(
        self,
        model: ByIndex[Any],
        build: Callable[..., str],
        *args: Any,
        between: tuple[str, str] | None = None,
        descending: bool = False,
        limit: int,
        start: dict[str, Any] | None = None,
    ) -> Page[Any]:
        self.queries += 1
        index = model.gsi
        partition = self.key(build, *args)
        low, high = between or ("", "\U0010ffff")
        assert low <= high, "DynamoDB refuses BETWEEN with bounds in the wrong order"

        def place(row: dict[str, Any]) -> tuple[str, str]:
            return row[index.range]["S"], hashlib.blake2b(row["pk"]["S"].encode()).hexdigest()

        rows = [
            r
            for r in self.rows
            if {index.hash, index.range} <= r.keys() and r[index.hash]["S"] == partition
            if low <= r[index.range]["S"] <= high
        ]
        rows.sort(key=place, reverse=descending)
        if start is not None:
            assert set(start) == {index.hash, index.range, "pk", "sk"}
            assert start[index.hash]["S"] == partition, "a start key of another partition"
            assert low <= start[index.range]["S"] <= high, "a start key outside the bounds"
            rows = [r for r in rows if (place(r) < place(start) if descending else place(r) > place(start))]
        shown = rows[:limit]
        self.read += len(shown)
        last = shown[-1] if len(shown) == limit else None
        return Page(
            [*map(model.from_raw_data, shown)],
            {n: last[n] for n in (index.hash, index.range, "pk", "sk")} if last else None,
        )


def tenant_in_memory(tenant_id: str, *, shards: int = 1, shard_epoch: int = 0) -> tuple[TenantContext, IndexInMemory]:
    """A context whose repository is an `IndexInMemory`."""
    tenant = TenantContext(tenant_id, "Acme", "acme", Role.OWNER, "a" * 32, "Alice", shards, shard_epoch)
    index = IndexInMemory(tenant_id)
    tenant.__dict__["repository"] = index  # where its cached property looks first
    return tenant, index


def index_row(
    tenant_id: str,
    number: int,
    updated_at: str,
    *,
    shards: int,
    status: Status = Status.OPEN,
    resolver: str = "",
    priority: str = "normal",
    tags: Sequence[str] = (),
    **moments: str,
) -> dict[str, Any]:
    """A ticket's row in the indexes, as far as a list needs it. `moments` are created_at and others; "" is left out."""
    shard = stored.status_shard(number, shards)
    return {
        "pk": {"S": stored.ticket(tenant_id, number)},
        "sk": {"S": stored.SUMMARY},
        "tenant_status": {"S": stored.tenant_status(tenant_id, status.value.upper(), shard)},
        "updated_at": {"S": updated_at},
        "resolver_updated": {"S": stored.resolver_updated(resolver, updated_at)},
        "number": {"N": str(number)},
        "title": {"S": f"Ticket {number}"},
        "status": {"S": status.value},
        "priority": {"S": priority},
        "tags": {"L": [{"S": tag} for tag in tags]},
        "resolver": {"S": resolver},
        "resolver_name": {"S": ""},
        "requester_name": {"S": ""},
        "created_at": {"S": updated_at},
        "comment_count": {"N": "0"},
        "version": {"N": "1"},
        **{name: {"S": moment} for name, moment in moments.items() if moment},
    }
