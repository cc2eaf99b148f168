"""Try the to-do lists in a process of their own and print as JSON what was seen.

The registry of declared tables is one for a process. In that of the other tests the lists would be a part of the
template, the data model and the policies that those tests are about.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

from examples.todo import stored, todo_lists
from examples.todo.counting import fold
from examples.todo.todo_lists import Lists
from portal.dynamo import client, provisioning
from portal.dynamo.store import Store
from portal.errors import PortalError
from portal.isolation import guard
from portal.load.tenant_limiter import BURST_SECONDS, TenantLimiter
from portal.schema import keys
from portal.streams.batch import Batch, BatchResult
from portal.streams.poller import Poller
from tests.examples import A, B

LIST_OF_A = stored.list_key(A, "groceries")
OF_A = {"pk": {"S": LIST_OF_A}, "sk": {"S": stored.number_key(1)}}
OF_B = {"pk": {"S": stored.list_key(B, "groceries")}, "sk": {"S": stored.number_key(1)}}
PLANTED = {":s": {"S": stored.state_key(A, done=False)}}
IN_INDEX = {"KeyConditionExpression": "state_key = :s", "ExpressionAttributeValues": PLANTED}
THEFTS: dict[str, tuple[str, dict[str, Any]]] = {
    "reads the other's to-do": ("GetItem", {"Key": OF_A}),
    "deletes the other's to-do": ("DeleteItem", {"Key": OF_A}),
    "writes into the other's list": ("PutItem", {"Item": OF_A}),
    "reads the other's part of the index": ("Query", {"IndexName": stored.TodoByState.gsi.name, **IN_INDEX}),
    "plants a row in the other's part of the index": (
        "UpdateItem",
        {"Key": OF_B, "UpdateExpression": "SET state_key = :s", "ExpressionAttributeValues": PLANTED},
    ),
    "reads a whole table": ("Scan", {}),
}


def refused(act: Callable[[], object]) -> str:
    try:
        act()
    except (PortalError, ValueError) as error:
        return type(error).__name__
    return "let through"


def said(act: Callable[[], object]) -> str:
    """What a refusal tells the programmer."""
    try:
        act()
    except guard.IsolationError as error:
        return error.why
    except ValueError as error:
        return str(error)
    return ""


def stolen() -> dict[str, str]:
    """Send each request as B, past the lists and the store."""

    def send(operation: str, params: dict[str, Any]) -> None:
        with guard.acting_for(B):
            client.connection("tenant").call(operation, TableName=stored.TODOS.full_name, **params)

    return {name: refused(lambda one=one: send(*one)) for name, one in THEFTS.items()}  # type: ignore[misc]


def signatures() -> dict[str, set[str]]:
    """Collect the access keys of what is sent from here on, by the tenant acted for."""
    seen: dict[str, set[str]] = defaultdict(set)

    def note(request: Any, **_: Any) -> None:
        header = request.headers["Authorization"]
        text = header.decode() if isinstance(header, bytes) else header
        seen[guard.acted_for()].update(re.findall(r"Credential=([^/]+)/", text))

    client.connection("tenant").client.meta.events.register_last("before-send.dynamodb", note)
    return seen


def changed() -> tuple[Lists, Lists]:
    of_a, of_b = Lists(Store("tenant", A)), Lists(Store("tenant", B))
    for number in range(6):
        of_a.add("groceries", f"Thing {number}")
    of_a.finish("groceries", 1)
    of_a.finish("groceries", 2)
    of_a.remove("groceries", 2)
    of_a.remove("groceries", 3)
    of_a.add("office", "Paper")
    of_b.add("groceries", "Bread")
    return of_a, of_b


def spent(tenant_id: str) -> None:
    """Take all that a tenant may have at once, by a clock that stands still."""
    todo_lists.limiter = TenantLimiter(clock=lambda: 0.0)
    todo_lists.limiter.spend(tenant_id, todo_lists.RATE * BURST_SECONDS, per_second=todo_lists.RATE)


def followed() -> list[Batch]:
    batches: list[Batch] = []

    def take(batch: Batch) -> BatchResult:
        batches.append(batch)
        return BatchResult()

    poller = Poller(stored.TODOS, take, idle_seconds=0.05)
    poller.run(lambda: sum(len(batch.records) for batch in batches) < 15)
    return batches


def of_two_shards(batches: list[Batch]) -> tuple[Batch, Batch]:
    """Deal the records out to two shards, as a split of a partition could have."""
    arn, records = batches[0].stream_arn, tuple(record for batch in batches for record in batch.records)
    return Batch(arn, "one", records[: len(records) // 2]), Batch(arn, "two", records[len(records) // 2 :])


def overtaken(batch: Batch, by: Batch) -> None:
    """Count a batch, and another one between its first read and write."""
    put, waiting = Store.put, [by]

    def late(self: Store, *args: Any, **named: Any) -> None:
        if waiting:
            fold(waiting.pop())
        put(self, *args, **named)

    with patch.object(Store, "put", late):
        fold(batch)


def delivered_again(batches: tuple[Batch, Batch]) -> None:
    """Deliver all of it by four at once, and parts after that."""
    for batch in batches:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(fold, [batch] * 4))
    for batch in batches:
        for begin in range(len(batch.records)):
            fold(Batch(batch.stream_arn, batch.shard_id, batch.records[begin : begin + 3]))


def main() -> None:
    provisioning.create_all(wait=True)
    seen = signatures()
    of_a, of_b = changed()
    by_other = Store("tenant", B)
    wrong = {
        "a name with a delimiter": lambda: of_a.add(f"x|{A}", "no"),
        "no text": lambda: of_a.add("groceries", ""),
        "what is done": lambda: of_a.finish("groceries", 1),
        "what is not there": lambda: of_b.finish("groceries", 4),
        "the number 0": lambda: of_b.remove("groceries", 0),
        "the key of another tenant": lambda: by_other.get(stored.TodoItem, LIST_OF_A, sort=stored.number_key(1)),
        "more than the rate": lambda: spent(B) or of_b.finish("groceries", 1),
    }
    mistakes = {
        "no sort key": lambda: by_other.get(stored.TodoItem, stored.list_key, "groceries"),
        "an operation that is not granted": lambda: by_other.put(stored.CountItem(B)),
        "a key of another form": lambda: by_other.put(stored.TodoItem(B, "1", text="", added_at="", state_key=B)),
        "a role without a grant": lambda: Store("seed", B).get(stored.CountItem, keys.tenant),
    }
    one, two = of_two_shards(followed())
    overtaken(one, by=two)
    counts = [of_a.counts(), of_b.counts()]
    delivered_again((one, two))
    found = {
        "stolen": stolen(),
        "wrong": {name: refused(act) for name, act in wrong.items()},
        "said": {name: said(act) for name, act in mistakes.items()},
        "counts": counts,
        "counts after all": [of_a.counts(), of_b.counts()],
        "open": [[todo.text for todo in of_a.open()], [todo.text for todo in of_b.open()]],
        "signed": [sorted(seen[A]), sorted(seen[B])],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
