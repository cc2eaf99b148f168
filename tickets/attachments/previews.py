"""Show files that are pictures as small ones, which are made anew: no page shows what somebody sent.

The rule that attaches a picture tells a destination of ours, in its own transaction. A worker makes the preview, stores
it beside the file, and notes its size where the file is listed, so that a page with previews reads nothing more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _

from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from portal.dynamo.retry import retrying
from portal.errors import ConditionFailed, Conflict, NotFound
from portal.objects.object_store import ObjectStore
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tickets.attachments import attachments, downloads, file_types, scanning, stored, thumbnail
from tickets.ticket import stored as tickets
from tickets.ticket.stored import ActivityItem, DetailItem, FileMap

TYPE: Final = "image/webp"  # of each preview
NONE: Final = "none"  # stands where a file has no preview: it is no picture, or too large
_SCANS: Final = 5  # deliveries by which a scanner should have looked at a file
_SCAN_SECONDS: Final = 30.0
_SOON: Final = 1.0  # second, until the rest of many pictures is made
_RESERVE: Final = 3.0  # seconds that remain to store a preview and to note it


def deliver(work: Work) -> Outcome:
    """Make the previews of an entry: two reads, for each picture two requests to the bucket, and one write.

    Pictures for which there is no time are made by the next delivery. Raises what database and bucket raise; the
    delivery is then made again.
    """
    event = json.loads(work.row.events[work.index])["data"]
    number, sort = int(event["number"]), str(event.get("entry", "")) or tickets.DETAIL
    try:
        found = tenant_directory.get(work.tenant_id)
    except NotFound:
        return Outcome("answered", note="The desk is gone.")
    tenant = context.of_tenant(found, role=Role.VIEWER, user_id="", user_name=found.name)
    files = _files(tenant, number, sort)
    waits, made, is_late = False, dict[str, str](), False
    for file in files:
        if file.type not in file_types.PICTURES or file.preview:
            continue
        state = file.state
        if state == scanning.WAITING:
            state = scanning.look_at_finding(tenant, downloads.file_of(tenant, number, file.id))
        if state == scanning.WAITING:
            waits = True
        elif state in scanning.READABLE:
            left = work.deadline - time.monotonic() - thumbnail.SECONDS - _RESERVE
            try:
                made[file.id] = _make(tenant, file, left)
            except TimeoutError:
                is_late = True
                break
    if made:
        _note(tenant, number, sort, made)
    if is_late:
        return Outcome("failed", _SOON, "There are more pictures.")
    if waits and work.attempt <= _SCANS:
        return Outcome("failed", _SCAN_SECONDS, "A file is still being looked at.")
    return Outcome("answered", note="" if made else "There was nothing to make.")


def _model(sort: str) -> Any:
    return DetailItem if sort == tickets.DETAIL else ActivityItem


def _files(tenant: TenantContext, number: int, sort: str) -> list[FileMap]:
    entry = tenant.repository.get(_model(sort), tickets.ticket, number, sort=sort, consistent=True)
    return list(entry.files or ()) if entry else []


def _make(tenant: TenantContext, file: FileMap, patience: float) -> str:
    """Store the preview of a picture and return its size, as "400x300", or NONE."""
    if patience <= 0:
        raise TimeoutError
    objects = ObjectStore("tenant", tenant.tenant_id)
    try:
        content = objects.get(
            stored.object_key(tenant.tenant_id, stored.object_of(file)), most=settings.FILE_MOST_BYTES
        )
    except NotFound:
        return NONE
    made = thumbnail.make(content, patience=patience)
    if made is None:
        return NONE
    objects.put(stored.preview_key(tenant.tenant_id, stored.object_of(file)), made.content, content_type=TYPE)
    return f"{made.width}x{made.height}"


def _note(tenant: TenantContext, number: int, sort: str, made: Mapping[str, str]) -> None:
    """Write where the files are listed that they have previews. That of a file which was removed meanwhile goes."""

    def attempt() -> None:
        known = _files(tenant, number, sort)
        kept = {file.id for file in known if file.state in scanning.READABLE}
        noted = [
            stored.listed(file, preview=made[file.id]) if file.id in made and file.id in kept else file
            for file in known
        ]
        if noted != known:
            model = _model(sort)
            item = model(tenant.repository.key(tickets.ticket, number), sort)
            tenant.repository.update(item, [model.files.set(noted)], condition=model.files == known)
        for file in known:
            if file.id in made and file.id not in kept:
                attachments.delete_preview(tenant, file)

    retrying(
        attempt,
        again=lambda error: isinstance(error, ConditionFailed),
        attempts=4,
        given_up=lambda: Conflict(_("This entry is being changed by others at this moment.")),
    )


def address_of(tenant: TenantContext, number: int, file_id: str) -> str:
    """Return a signed address of the preview of a file of a ticket, as `downloads.address_of` does of the file."""
    return downloads.address_of(tenant, number, file_id, preview=TYPE)
