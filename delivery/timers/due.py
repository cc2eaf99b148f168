"""Let something happen at a moment: a row of the due index in the transaction of the change that waits for it.

A row is never moved or taken back. Another moment is another row, under another version; the handler reads the entity,
and does nothing for a version that is not the entity's any more. So a change pays for its own row alone.

    due.put(transaction, tenant, at, "snooze", "ticket/7", version)

    due.handler("snooze")(wake)   # in the app's `ready`

Cost: 2 write units in the transaction and 1 for the index; a claim 1 and 2, the end 1 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol

from delivery.timers import stored
from delivery.timers.stored import SHARDS, DueRow, Waiting
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction
from portal.errors import Unavailable
from portal.streams import stream_source
from portal.streams.stream_source import POOLED
from tenants.tenancy.context import TenantContext

# Called with the desk, the entity, the version and the moment that was waited for. It may be called more than once,
# late, and also early, where the worker's clock is ahead. It reads the entity, skips a version that is stale, and does
# its work in one conditional transaction. Where it raises, it is called again later.
Handler = Callable[[TenantContext, str, str, datetime], None]

_handlers: Final[dict[str, Handler]] = {}


class OfTenant(Protocol):
    """A context, a store or an item of a tenant."""

    @property
    def tenant_id(self) -> str: ...


def put(
    transaction: Transaction, tenant: OfTenant, at: datetime | str, kind: str, entity: str, version: int | str
) -> None:
    """Add to the transaction that `kind` of work on `entity` waits for `at`, a moment or a stamp.

    It is called once for each version. The same kind, entity and version written again replaces its row.
    Raises ValueError for parts that cannot stand in a key.
    """
    stamp = at if isinstance(at, str) else clock.stamp(at)
    if not clock.is_stamp(stamp):
        raise ValueError("a moment in the due index is a stamp")
    transaction.put(stored.due_item(Waiting(kind, entity, str(version)), stamp, of=tenant.tenant_id))


def handler(kind: str) -> Callable[[Handler], Handler]:
    """Let this function do the work of a kind. Raises ValueError where another does already."""

    def register(function: Handler) -> Handler:
        if _handlers.setdefault(kind, function) is not function:
            raise ValueError(f"the kind {kind} has two handlers")
        return function

    return register


def handler_of(kind: str) -> Handler | None:
    """Return who does the work of a kind, None for one of a newer version."""
    return _handlers.get(kind)


LATE_SECONDS: Final = 60  # a Lambda function looks once a minute, and ahead


def worst_lag(store: Store = PLATFORM) -> float:
    """Return for how many seconds the row that is due longest has waited, in the tables of all and in tenants' own; 0
    where none is due.

    Costs a Query of one row for each shard of each placement. Raises Unavailable.
    """
    found = 0.0
    for source in (POOLED, *stream_source.placed()):
        try:
            with source.entered():
                found = max(found, _seconds(store))
        except Unavailable:  # of one tenant's site the others do not hear
            if source is POOLED:
                raise
    return found


def summary_of_lag() -> dict[str, Any]:
    """Return the same of the tables of all, for `/readyz` and `check_health`, and whether it is too much.

    Costs a Query of one row for each shard. Raises Unavailable.
    """
    behind = round(_seconds(PLATFORM))
    return {"behind": behind, "late": behind > LATE_SECONDS}


def _seconds(store: Store) -> float:
    now = clock.stamp()
    between = (stored.FIRST, stored.behind(stored.minute(now)))
    pages = fan_out([partial(store.query, DueRow, stored.shard(n), between=between, limit=1) for n in range(SHARDS)])
    since = min((stored.wakes_parts(row.wakes)[2] for page in pages for row in page.items), default=now)
    return max((clock.now() - clock.parse(since)).total_seconds(), 0)
