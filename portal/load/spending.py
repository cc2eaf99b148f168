"""Add up what this process spends for each tenant, and write it down by UTC day: the source of a desk's statement.

Units are kept in memory by table and kind, and added to the tenant's row of the day by one UpdateItem once they are
worth WORTH write units, once the day is over, when the process ends, and before it shows a statement of the tenant. So
the statement costs a tenant's operator at most one write for each WORTH, for each day and process, and for each look at
it. A killed process loses less than WORTH for each tenant: the row says too little then, never too much.

A statement has nothing but what is written. So no process shows less of a month than another one has shown before.

Each write has an id, which the row keeps: the same write, sent again after a lost answer, adds nothing, unless another
process wrote to the row in between.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from portal.dynamo import meter
from portal.dynamo.store import Item, Store
from portal.errors import ConditionFailed, PortalError
from portal.load.stored import NO_TENANT, CostItem, PlatformCostItem
from portal.schema import keys
from portal.schema.registry import Role

log = logging.getLogger("pooldesk.costs")

WORTH: Final = 500  # write units, by price
READS_OF_A_WRITE: Final = 5  # a write unit costs as much as so many read units
MOST: Final = 5_000  # tenants' days that are kept in memory; beyond it all are written
KEPT: Final = timedelta(days=400)
COUNT: Final = "n"  # the kind of what is counted beside units: requests, mails


@dataclass
class CostBatch:
    """Hold what was spent for one tenant on one day and is not written yet; `tenant_id` is "" for the platform's own.

    `amounts` has names such as `r:Support.Tickets` (the kind of `meter`, and the table) or `n:mails`.
    """

    tenant_id: str
    day: str
    amounts: Counter[str] = field(default_factory=Counter)
    sizes: dict[str, int] = field(default_factory=dict)  # what was measured last
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def worth(self) -> float:
        units = {meter.READ: 1 / READS_OF_A_WRITE, meter.WRITE: 1, meter.INDEX_WRITE: 1}
        return sum(units.get(name[0], 0) * amount for name, amount in self.amounts.items())


class Ledger:
    """Keep what is not written yet, for any number of threads. `clock` gives seconds since the epoch."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._open: dict[tuple[str, str], CostBatch] = {}
        self._waiting: list[CostBatch] = []  # could not be written yet, and keep their ids

    def add(self, tenant_id: str, amounts: Iterable[tuple[str, float]]) -> None:
        """Add amounts for a tenant, "" for none, to those of this day."""
        with self._lock:
            batch = self._of_today(tenant_id)
            for name, amount in amounts:
                batch.amounts[name] += amount  # type: ignore[assignment]  # units have halves

    def of(self, tenant_id: str, sizes: Mapping[str, int]) -> list[CostBatch]:
        """Take what is to be written of one tenant, whatever its worth, with sizes that were measured today."""
        with self._lock:
            if sizes:
                self._of_today(tenant_id).sizes.update(sizes)
            found = [one for one in (*self._waiting, *self._open.values()) if one.tenant_id == tenant_id]
            self._waiting = [one for one in self._waiting if one.tenant_id != tenant_id]
            self._open = {key: one for key, one in self._open.items() if one.tenant_id != tenant_id}
            return found

    def _of_today(self, tenant_id: str) -> CostBatch:
        key = "" if tenant_id == keys.PLATFORM else tenant_id, self._day()
        if key not in self._open:
            self._open[key] = CostBatch(*key)
        return self._open[key]

    def due(self, *, last: bool = False) -> list[CostBatch]:
        """Take what is to be written now, or everything where this is the `last` time; the dearest first."""
        today = self._day()
        with self._lock:
            everything = last or len(self._open) > MOST
            due = [one for one in self._open.values() if everything or one.day != today or one.worth >= WORTH]
            for one in due:
                del self._open[one.tenant_id, one.day]
            waiting, self._waiting = self._waiting, []
        return sorted([*waiting, *due], key=lambda one: -one.worth)

    def keep(self, batches: Iterable[CostBatch]) -> None:
        """Take back what could not be written."""
        with self._lock:
            self._waiting.extend(batches)

    def _day(self) -> str:
        return day_at(self._clock())


def day_of(at: datetime) -> str:
    """Return the name of a moment's day in UTC: `2026-01-31`."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def day_at(seconds: float) -> str:
    """Return the name of the day in UTC of a moment in seconds since the epoch. Each request asks several times."""
    return _day_name(int(seconds // 86400))


@lru_cache(maxsize=4)
def _day_name(day: int) -> str:
    return day_of(datetime.fromtimestamp(day * 86400, UTC))


# --- the ledger of this process ---

ledger = Ledger()
is_kept = False  # only where a reporter writes it down
_own_account: ContextVar[bool] = ContextVar("own_account", default=False)


@contextmanager
def on_own_account() -> Iterator[None]:
    """Charge what is done inside to the platform, whoever it is done for."""
    token = _own_account.set(True)
    try:
        yield
    finally:
        _own_account.reset(token)


def is_on_own_account() -> bool:
    """Tell whether what is done now is the platform's own."""
    return _own_account.get()


def charge(tenant_id: str, parts: Iterable[meter.CapacityPart]) -> None:
    """Add the units of a request to what was spent for a tenant, "" for none."""
    if is_kept:
        ledger.add(tenant_id, [(f"{part.kind}:{part.table}", part.units) for part in parts if part.units])


def count(tenant_id: str, **numbers: float) -> None:
    """Add to what is counted for a tenant beside units: `count(tenant_id, mails=1)`."""
    if is_kept:
        ledger.add(tenant_id, [(f"{COUNT}:{name}", number) for name, number in numbers.items() if number])


def write_due(role: Role, *, last: bool = False, seconds: float | None = None) -> int:
    """Write what is due; `role` is that of the process. Return how many rows were written.

    Rows that cannot be written, or not within `seconds`, are tried again the next time.
    """
    return _write_all(ledger.due(last=last), role, until=None if seconds is None else time.monotonic() + seconds)


def _write_all(batches: list[CostBatch], role: Role, *, until: float | None = None) -> int:
    failed = list[CostBatch]()
    for place, batch in enumerate(batches):
        if until is not None and time.monotonic() > until:
            failed += batches[place:]
            break
        try:
            write(batch, role)
        except PortalError as error:
            failed.append(batch)
            log.warning("A sum of costs is not written yet: %s", error.message)
    ledger.keep(failed)
    return len(batches) - len(failed)


def write(batch: CostBatch, role: Role) -> None:
    """Add a batch to its row: one UpdateItem, on the platform's account. Raises Unavailable, Throttled."""
    with on_own_account(), suppress(ConditionFailed):  # it was added before, and the answer was lost
        if batch.tenant_id:
            row = CostItem(batch.tenant_id, batch.day)
            add(Store("tenant", batch.tenant_id), row, batch.amounts, batch.id, sizes=batch.sizes)
        else:
            add(Store(role), PlatformCostItem(NO_TENANT, batch.day), batch.amounts, batch.id)


def add(
    store: Store,
    item: Item,
    amounts: Mapping[str, float],
    batch_id: str,
    *,
    kept: timedelta = KEPT,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Add numbers to the attributes of a row that have their names, and set its sizes. Raises ConditionFailed where it
    was done before."""
    stated = {"batch": {"S": batch_id}, "expires_at": {"N": str(int(time.time() + kept.total_seconds()))}}
    stated |= {name: {"N": str(size)} for name, size in sizes.items()}
    added = {name: {"N": f"{amount:.1f}"} for name, amount in amounts.items()}
    names = {f"#v{place}": name for place, name in enumerate([*stated, *added])}
    values = {f":v{place}": value for place, value in enumerate([*stated.values(), *added.values()])}
    sets = ", ".join(f"#v{place} = :v{place}" for place in range(len(stated)))
    adds = ", ".join(f"#v{place} :v{place}" for place in range(len(stated), len(names)))
    request: dict[str, Any] = {
        "TableName": item.table.full_name,
        "Key": item.get_update_kwargs_from_instance(actions=[type(item).batch.set("")])["Key"],  # type: ignore[attr-defined]
        "UpdateExpression": f"SET {sets} ADD {adds}" if adds else f"SET {sets}",
        "ConditionExpression": "attribute_not_exists(#v0) OR #v0 <> :v0",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    store.send("UpdateItem", request)


# --- what was written ---


def amounts_of(item: CostItem | PlatformCostItem) -> Counter[str]:
    return Counter({name: float(value["N"]) for name, value in item.unknown.items() if ":" in name})


@dataclass
class SpentDay:
    """Hold what was spent on a day, by the names of CostBatch; the sizes are None where nobody measured them."""

    amounts: Counter[str]
    stored_bytes: int | None = None
    file_bytes: int | None = None


def days_of(store: Store, first: str, last: str, *, consistent: bool = False) -> dict[str, SpentDay]:
    """Return a tenant's days from `first` to `last` as they are written: one Query. Raises Unavailable, Throttled."""
    return {
        item.day: SpentDay(amounts_of(item), _whole(item.stored_bytes), _whole(item.file_bytes))
        for item in store.query_all(CostItem, keys.tenant, between=(first, last), consistent=consistent)
    }


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def write_of(tenant_id: str, **sizes: int) -> None:
    """Write what this process spent for a tenant, with sizes that were just measured: one UpdateItem for each day of
    which something is not written. Rows that cannot be written now are written later."""
    if is_kept:
        _write_all(ledger.of(tenant_id, sizes), "tenant")


def platform_days(first: str, last: str) -> dict[str, SpentDay]:
    """Return the days of what belongs to no tenant, as `days_of` does, as they are written."""
    items = Store("platform").query_all(PlatformCostItem, NO_TENANT, between=(first, last))
    return {item.name: SpentDay(amounts_of(item)) for item in items}
