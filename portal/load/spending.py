"""Add up what this process spends for each tenant, and write it down by UTC day: the source of a desk's statement.

Units are kept in memory by table and kind, and added to the tenant's row of the day by one UpdateItem once they are
worth WORTH write units, once the day is over, and when the process ends. So the statement costs a tenant's operator at
most one write for each WORTH, and one for each day and process. A killed process loses less than WORTH for each tenant:
the row says too little then, never too much.

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
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def worth(self) -> float:
        """Return its worth in write units."""
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
        key = "" if tenant_id == keys.PLATFORM else tenant_id, self._day()
        with self._lock:
            batch = self._open.get(key)
            if batch is None:
                batch = self._open[key] = CostBatch(*key)
            for name, amount in amounts:
                batch.amounts[name] += amount  # type: ignore[assignment]  # units have halves

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

    def due_of(self, tenant_id: str) -> list[CostBatch]:
        """Take what was spent for one tenant."""
        with self._lock:
            return [self._open.pop(key) for key in [*self._open] if key[0] == tenant_id]

    def keep(self, batches: Iterable[CostBatch]) -> None:
        """Take back what could not be written."""
        with self._lock:
            self._waiting.extend(batches)

    def _day(self) -> str:
        return day_of(datetime.fromtimestamp(self._clock(), UTC))


def day_of(at: datetime) -> str:
    """Return the name of a moment's day in UTC: `2026-01-31`."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


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


def write_of(tenant_id: str) -> None:
    """Write what this process has spent for a tenant, whose statement is about to be looked at."""
    _write_all(ledger.due_of(tenant_id), "platform", until=None)


def _write_all(batches: list[CostBatch], role: Role, *, until: float | None) -> int:
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
            add(Store("tenant", batch.tenant_id), CostItem(batch.tenant_id, batch.day), batch.amounts, batch.id)
        else:
            add(Store(role), PlatformCostItem(NO_TENANT, batch.day), batch.amounts, batch.id)


def add(store: Store, item: Item, amounts: Mapping[str, float], batch_id: str, *, kept: timedelta = KEPT) -> None:
    """Add numbers to the attributes of a row that have their names. Raises ConditionFailed where it was done before."""
    named = {f"#a{place}": name for place, name in enumerate(amounts)}
    values = {f":a{place}": {"N": f"{amount:.1f}"} for place, amount in enumerate(amounts.values())}
    added = ", ".join(f"{name} :{name[1:]}" for name in named)
    key = item.get_update_kwargs_from_instance(actions=[type(item).batch.set("")])["Key"]  # type: ignore[attr-defined]
    request: dict[str, Any] = {
        "TableName": item.table.full_name,
        "Key": key,
        "UpdateExpression": f"SET #b = :b, #e = :e ADD {added}",
        "ConditionExpression": "attribute_not_exists(#b) OR #b <> :b",
        "ExpressionAttributeNames": {**named, "#b": "batch", "#e": "expires_at"},
        "ExpressionAttributeValues": {
            **values,
            ":b": {"S": batch_id},
            ":e": {"N": str(int(time.time() + kept.total_seconds()))},
        },
    }
    store.send("UpdateItem", request)


def expiry(model: type[CostItem]) -> Any:
    """Return the action that sets when a row is forgotten, for what else is written to it."""
    return model.expires_at.set(int(time.time() + KEPT.total_seconds()))


# --- what was written ---


def amounts_of(item: CostItem | PlatformCostItem) -> Counter[str]:
    """Return the amounts of a row by their names."""
    return Counter({name: float(value["N"]) for name, value in item.unknown.items() if ":" in name})


def days_of(store: Store, first: str, last: str) -> dict[str, CostItem]:
    """Return a tenant's rows of the days from `first` to `last` by day: one Query. Raises Unavailable, Throttled."""
    return {item.day: item for item in store.query_all(CostItem, keys.tenant, between=(first, last))}


def platform_days(store: Store, first: str, last: str) -> dict[str, PlatformCostItem]:
    """Return the rows of what belongs to no tenant, as `days_of` does."""
    return {item.name: item for item in store.query_all(PlatformCostItem, NO_TENANT, between=(first, last))}
