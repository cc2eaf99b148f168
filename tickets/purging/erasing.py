"""Delete what the holdings of a tenant find, each item in the role that may, and no faster than others can bear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from portal.dynamo import client, platform
from portal.dynamo.placement import Placement, at
from portal.dynamo.store import BATCH_WRITE_LIMIT, batch_write, chunked
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import ConditionFailed
from portal.isolation import guard
from portal.objects.object_store import ObjectStore
from portal.schema import registry
from portal.schema.holdings import Holding, Raw, StoredItem
from portal.schema.registry import Table

_LISTED: Final = 1000  # objects that one request lists
RATE: Final = 200.0  # items a second, each some write units with its indexes


class Eraser:
    """Deletes items of one tenant, whose content lies or lay at these placements, the present one first.

    `between` is called before each request that reads.
    """

    def __init__(
        self,
        tenant_id: str,
        places: Sequence[Placement],
        *,
        rate: float = RATE,
        sleep: Callable[[float], object] = time.sleep,
        between: Callable[[], object] = lambda: None,
    ) -> None:
        self.tenant_id = tenant_id
        self._readers = [TenantReader(tenant_id, place, between=between) for place in places]
        self._rate, self._sleep, self._between = rate, sleep, between
        self._bucket = ObjectStore("lifecycle", tenant_id)

    def find(self, holding: Holding) -> Iterator[StoredItem]:
        """Read all that is stored of a holding: what is placed wherever it may be, and everything once."""
        yield from holding.find(self._readers[0])
        if not all(table.placed for table in holding.tables):
            return
        seen = {_identity(stored) for stored in holding.find(self._readers[0])} if self._readers[1:] else set()
        for reader in self._readers[1:]:
            for stored in holding.find(reader):
                if _identity(stored) not in seen:
                    seen.add(_identity(stored))
                    yield stored

    def count(self, holding: Holding) -> int:
        return sum(1 for _ in self._objects(holding)) + sum(1 for _ in self.find(holding))

    def _objects(self, holding: Holding) -> Iterator[str]:
        if holding.objects is None:
            return
        self._between()
        for number, found in enumerate(self._bucket.list(holding.objects(self.tenant_id)), start=1):
            yield found.key
            if number % _LISTED == 0:
                self._between()

    def clear(self, holding: Holding, *, deleted: Callable[[int], object]) -> int:
        """Delete all that is found of a holding and return how many that were; each batch is told to `deleted`."""
        total = 0
        for keys in chunked(self._objects(holding), BATCH_WRITE_LIMIT):
            for key in keys:
                self._bucket.delete(key)
            total += len(keys)
            deleted(len(keys))
            self._sleep(len(keys) / self._rate)
        for some in chunked(self.find(holding), BATCH_WRITE_LIMIT):
            self._delete(holding, some)
            total += len(some)
            deleted(len(some))
            self._sleep(len(some) / self._rate)
        return total

    def _delete(self, holding: Holding, some: Sequence[StoredItem]) -> None:
        if holding.without is not None:
            rests = [(stored, holding.without(self.tenant_id, stored.item)) for stored in some]
            for stored, rest in rests:
                if rest is not None:
                    self._write_without(stored.table, stored.item, rest)
            some = [stored for stored, rest in rests if rest is None]
        with guard.purging(self.tenant_id):
            for place, members in groupby(some, key=lambda stored: stored.placement):
                with at(Placement.parse(place)):
                    _delete_here([*members])

    def _write_without(self, table: Table, before: Raw, after: Raw) -> None:
        """Write a row of several tenants over as it is without this one, unless somebody has just changed it."""
        changed = [name for name in before if before[name] != after.get(name)]
        request: dict[str, Any] = {
            "TableName": table.full_name,
            "Item": after,
            "ConditionExpression": " AND ".join(f"#{place} = :{place}" for place in range(len(changed))),
            "ExpressionAttributeNames": {f"#{place}": name for place, name in enumerate(changed)},
            "ExpressionAttributeValues": {f":{place}": before[name] for place, name in enumerate(changed)},
        }
        try:
            platform.PLATFORM.send("PutItem", request)
        except ConditionFailed:
            return  # it is found again, as it is by then


def role_for(table: Table) -> registry.Role:
    """Return the role that deletes from a table: the lifecycle role where it may, else the platform's."""
    own = any(g.table is table and "DeleteItem" in g.actions for g in registry.grants("lifecycle"))
    return "lifecycle" if own or table.scope == "tenant" else "platform"


def _delete_here(some: Sequence[StoredItem]) -> None:
    in_batch = [stored for stored in some if stored.table.scope == "tenant"]
    if in_batch:
        members = [(stored.table.full_name, {"DeleteRequest": {"Key": stored.key}}) for stored in in_batch]
        batch_write(client.connection("lifecycle"), members)
    for stored in some:
        if stored.table.scope != "tenant":
            request = {"TableName": stored.table.full_name, "Key": stored.key}
            client.connection(role_for(stored.table)).dispatch("DeleteItem", request)


def _identity(stored: StoredItem) -> tuple[str, str, str]:
    return stored.table.name, stored.placement, repr(sorted(stored.key.items()))
