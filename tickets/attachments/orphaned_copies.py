"""Delete copies of files that no ticket names: those of a process that died between a copy and its transaction.

The bucket is listed before the items are read, and a copy is left alone until every transaction that could name it has
ended. So a copy that is old and has no name then gets none any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Conflict
from portal.objects import object_store
from portal.objects.object_store import ObjectStore
from tenants.tenancy import context, placements, tenant_directory
from tickets.attachments import stored
from tickets.attachments.stored import FILE_PREFIX, FileItem

GRACE: Final = timedelta(hours=1)  # no request and no transaction lasts as long


@dataclass
class CopiesFound:
    """Count the copies that were looked at, and those that no ticket names, which are deleted. `size` is in bytes."""

    copies: int = 0
    orphans: int = 0
    size: int = 0


def delete_of(tenant_id: str) -> CopiesFound:
    """Delete the copies of a desk's files that no ticket names. Raises Conflict for one that is being moved or brought
    in.

    Costs a list of the bucket for each 1,000 files, and where there are files a Query for each megabyte of their items.
    """
    before, found = clock.now() - GRACE, CopiesFound()
    tenant = tenant_directory.get(tenant_id)
    if tenant.arriving:
        raise Conflict(_("The desk is being brought in. Try again when that is done."))
    objects = ObjectStore("lifecycle", tenant_id)
    copies = [
        one for one in objects.list(object_store.tenant_prefix(tenant_id, stored.KIND)) if one.changed_at <= before
    ]
    if not copies:
        return found
    where = placements.location(tenant)
    named = _named(context.for_system(tenant))
    # A copy of the items that a move leaves behind names too little.
    now = placements.location(tenant_directory.get(tenant_id))
    if now.move is not None or now.epoch != where.epoch or now.placement != where.placement:
        raise Conflict(_("The desk is being moved. Try again when that is done."))
    for one in copies:
        found.copies += 1
        if one.key.rpartition("/")[2] not in named:
            objects.delete(one.key)
            found.orphans, found.size = found.orphans + 1, found.size + one.size
    return found


def _named(system: context.TenantContext) -> set[str]:
    items = (
        item
        for bucket in stored.BUCKETS
        for item in system.repository.query_all(
            FileItem, stored.files, bucket, begins_with=FILE_PREFIX, consistent=True
        )
    )
    return {stored.object_of(item) for item in items if item.entry}
