"""Tell from a tenant as stored where its content lies and whether it is being moved, and keep that knowledge fresh.

A move stands in the tenant's own item, which each request reads anyway, as JSON of fixed form: so that who changes it
can demand that it is what was seen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from portal.dynamo import platform
from portal.dynamo.placement import Placement
from portal.dynamo.repository import TenantRepository, Transaction
from portal.dynamo.whereabouts import Move, Whereabouts
from portal.errors import TransactionRefused
from tenants.tenancy import shard_layout, tenant_directory
from tenants.tenancy.items import TenantItem


def whereabouts(tenant: Any) -> Whereabouts:
    """Return where the content of a tenant as stored lies."""
    return Whereabouts(
        placement=Placement.parse(tenant.placement),
        former=Placement.parse(tenant.former_placement) if tenant.former_placement else None,
        epoch=int(tenant.placement_epoch or 0),
        move=_decoded(tenant.move) if tenant.move else None,
        purged=tenant.status == tenant_directory.PURGING,
    )


def encoded(move: Move) -> str:
    """Return a move as the tenant's item has it."""
    return json.dumps({"id": move.id, "to": str(move.to), "attempt": move.attempt})


def _decoded(text: str) -> Move:
    stored = json.loads(text)
    return Move(stored["id"], Placement.parse(stored["to"]), int(stored["attempt"]))


def stored(tenant_id: str) -> Whereabouts:
    """Return where a tenant's content lies now: one consistent read. Raises NotFound, Unavailable."""
    return whereabouts(tenant_directory.get(tenant_id))


def repository(tenant: TenantItem) -> TenantRepository:
    """Return the repository of a tenant as it has just been read."""
    return TenantRepository(tenant.tenant_id, MoveLease(tenant.tenant_id, whereabouts(tenant)))


def break_hold(tenant_id: str, move: Move) -> bool:
    """Let writes pass that this attempt of a move holds, which then cannot come to its end. Tell whether it stood."""
    transaction = Transaction()
    transaction.update(
        TenantItem(tenant_id),
        [TenantItem.move.set(encoded(replace(move, attempt=move.attempt + 1)))],
        condition=TenantItem.move == encoded(move),
    )
    try:
        platform.transact(transaction)
    except TransactionRefused:
        return False
    return True


class MoveLease:
    """Where a tenant's content lies as it was read at a moment of the monotonic clock, read anew when it is too old."""

    def __init__(
        self,
        tenant_id: str,
        known: Whereabouts,
        read_at: float | None = None,
        read: Callable[[str], Whereabouts] = stored,
    ) -> None:
        self._tenant_id, self._read = tenant_id, read
        self._known = (known, time.monotonic() if read_at is None else read_at)

    def current(self) -> Whereabouts:
        """Return it, at most CONTEXT_SECONDS old. Raises Unavailable, and NotFound without a tenant."""
        known, read_at = self._known
        return self.again() if time.monotonic() - read_at > shard_layout.CONTEXT_SECONDS else known

    def again(self) -> Whereabouts:
        """Read it, and return it. Raises Unavailable, and NotFound without a tenant."""
        began = time.monotonic()
        known = self._read(self._tenant_id)
        self._known = known, began
        return known

    def break_hold(self, seen: Whereabouts) -> None:
        """Let writes pass that the move that was seen holds, unless it has ended."""
        if seen.move is not None:
            break_hold(self._tenant_id, seen.move)
