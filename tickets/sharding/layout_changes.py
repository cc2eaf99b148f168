"""Read and change a tenant's layout as the stream worker. Each change holds only if nobody made another one before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from portal.errors import ConditionFailed, Conflict, NotFound
from portal.isolation import guard
from portal.schema import keys
from portal.streams import worker
from tenants.tenancy.shard_layout import ShardLayout
from tenants.tenancy.stored import TENANTS, TenantItem


def stored(tenant_id: str) -> TenantItem:
    """Read the tenant consistently. Raises NotFound, Unavailable."""
    key = {TENANTS.hash: {"S": keys.tenant(tenant_id)}}
    with guard.acting_for(tenant_id):
        answer = worker.dispatch("GetItem", {"TableName": TENANTS.full_name, "Key": key, "ConsistentRead": True})
    if not answer.get("Item"):
        raise NotFound("There is no such tenant.")
    return TenantItem.from_raw_data(answer["Item"])


def read(tenant_id: str) -> ShardLayout:
    """Return the layout as it is now: one consistent read. Raises NotFound, Unavailable."""
    return ShardLayout.of(stored(tenant_id))


def change(tenant_id: str, seen: ShardLayout, **to: int) -> ShardLayout:
    """Change `readers`, `writers` or `moving_to` of the layout that was seen, and return it as it is then.

    Costs nothing where that changes nothing. Raises Conflict where somebody else has changed it since.
    """
    wanted = replace(seen, **to)
    if wanted == seen:
        return seen
    wanted = replace(wanted, epoch=seen.epoch + 1)
    actions: list[Any] = [
        TenantItem.shards.set(wanted.readers),
        TenantItem.write_shards.set(wanted.writers),
        TenantItem.shard_epoch.set(wanted.epoch),
        TenantItem.moving_to.set(wanted.moving_to) if wanted.moving_to else TenantItem.moving_to.remove(),
    ]
    try:
        with guard.acting_for(tenant_id):
            worker.change(TenantItem(tenant_id), actions, condition=TenantItem.shard_epoch == seen.epoch)
    except ConditionFailed as failed:
        # A lost answer is sent again, and the second time it meets what the first has written.
        if failed.item is None or ShardLayout.of(TenantItem.from_raw_data(failed.item)) != wanted:
            raise Conflict("Somebody else has changed this tenant's shards.") from failed
    return wanted
