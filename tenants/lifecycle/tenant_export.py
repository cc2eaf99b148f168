"""Write all that belongs to a tenant into one file, while its people work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from errno import EEXIST
from pathlib import Path
from typing import Final

from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.placement import Placement
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import Conflict, NotFound
from portal.schema import holdings
from portal.schema.holdings import Holding, Raw, Reader
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import object_rows, tenant_file
from tenants.lifecycle.tenant_file import Manifest
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem, TenantStatus

_TOO_LARGE: Final = "too large for this file: each is on its ticket"


def export(
    tenant: TenantItem,
    path: Path,
    *,
    with_secrets: bool = False,
    with_objects: bool = True,
    by: Actor | None,
    begun: Callable[[str], object] = lambda holding: None,
    advance: Callable[[int], object] = lambda items: None,
) -> Manifest:
    """Write the tenant's file and return what is in it. Nothing is written of one whose purge has begun.

    Each ticket is as it is when it is read, the audit trail as it was at one moment. The export is recorded in the
    trail before anything is written, but for `by` None, where the caller records it. Without `with_secrets` the file
    has no secret of a webhook and no hash of a key, and without `with_objects` no content of a file of a ticket,
    and of letters those that came last.
    `begun` is called with the name of each holding. Raises OSError, also where there is a file with that name,
    Unavailable, Throttled, and Conflict where the tenant was moved to another place meanwhile, or its purge has begun:
    then nothing is written under that name.
    """
    _refuse_purged(tenant)
    if path.exists():
        raise FileExistsError(EEXIST, "there is such a file already", str(path))
    reader = TenantReader(tenant.tenant_id, Placement.parse(tenant.placement))
    left_out: dict[str, str] = {}
    made_at = clock.stamp()
    with tenant_file.writing(path) as file:
        if by is not None:  # only here: of a file that cannot be written the trail has nothing to tell
            what = gettext_noop("with secrets") if with_secrets else gettext_noop("without secrets")
            entry = AuditEntry(
                tenant.tenant_id, AuditAction.EXPORT_MADE, by, "export", "tenant", tenant.name, {}, {"of": what}
            )
            recording.record(entry)
        for holding in holdings.holdings():
            names = holding.exported if with_objects else holding.exported_to_owners
            if why := holding.left_out or (_TOO_LARGE if holding.exported and not names else ""):
                left_out[holding.name] = why
                continue
            begun(holding.name)
            file.write(holding.name, _items(holding, reader, with_secrets, advance, names))
        _check_place(tenant)
        manifest = Manifest(
            tenant.tenant_id, tenant.slug, tenant.name, made_at, with_secrets, tuple(file.entries), left_out
        )
        file.end(manifest)
    return manifest


def _check_place(tenant: TenantItem) -> None:
    """Raise Conflict unless the tenant lies where it lay when its export began: what was read is all that there was."""
    try:
        now = tenant_directory.get(tenant.tenant_id)
    except NotFound as gone:
        raise Conflict(f"{tenant.name} was deleted while it was exported. There is no file.") from gone
    _refuse_purged(now)
    if (now.placement, now.placement_epoch) != (tenant.placement, tenant.placement_epoch):
        raise Conflict(
            f"{tenant.name} was moved to another place while it was exported, and what was written there since is "
            "missing. There is no file. Run it again, and it begins anew."
        )


def _refuse_purged(tenant: TenantItem) -> None:
    if tenant.status == TenantStatus.PURGING:
        raise Conflict(f"{tenant.name} is being deleted: what is left of it is not the whole desk. There is no file.")


def _items(
    holding: Holding,
    reader: TenantReader,
    with_secrets: bool,
    advance: Callable[[int], object],
    names: Callable[[Reader], Iterator[str]] | None,
) -> Iterator[tuple[str, Raw]]:
    if names and holding.objects:
        prefix = holding.objects(reader.tenant_id)
        for row in object_rows.rows(reader.tenant_id, prefix, names(reader)):
            yield row
            advance(1)
        return
    hidden = () if with_secrets else holding.secret
    for stored in (holding.export or holding.find)(reader):
        yield stored.table.name, {name: value for name, value in stored.item.items() if name not in hidden}
        advance(1)
