"""Let members have the files of tickets: one by an address that is signed for a minute, or all of a ticket as a zip.

A file is sent by the bucket, from another host than the portal's pages, always to be saved and never to be shown. The
zip passes through the portal piece by piece, because the bucket makes none: as heavy work, of which a desk has little
under way at a time.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Conflict, NotFound
from portal.load import spending
from portal.objects.object_store import ObjectStore
from portal.zip_stream import Pipe
from tenants.tenancy.context import TenantContext
from tickets.attachments import scanning, stored
from tickets.attachments.stored import FileItem
from tickets.ticket import stored as tickets
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, DetailItem, FileMap, SummaryItem

SECONDS: Final = 60  # for which an address is good: the browser follows it at once


def address_of(
    tenant: TenantContext, number: int, file_id: str, *, preview: str = "", merged: Collection[int] = ()
) -> str:
    """Return a signed address of a file of a ticket. Raises NotFound, and Conflict for a file that nobody can have.

    One read, and a second one for people who may not read notes: a file of a note is none of theirs. Of a file that
    waits for a scanner, its finding is asked for. With the media type of a `preview`, the address is that of the
    preview, which a browser shows. `merged` are other tickets whose files it may be.
    """
    file = file_of(tenant, number, file_id, merged=merged)
    if not tenant.is_agent and file.entry != tickets.DETAIL:
        entry = tenant.repository.get(ActivityItem, tickets.ticket, int(file.number or 0), sort=file.entry)
        if entry is None or entry.kind == "note":
            raise _missing()
    state = scanning.look_at_finding(tenant, file) if file.state == scanning.WAITING else file.state
    if state not in scanning.READABLE:
        raise NotReadable(file.name, state)
    objects, name = ObjectStore("tenant", tenant.tenant_id), stored.object_of(file)
    if preview:
        key = stored.preview_key(tenant.tenant_id, name)
        return objects.download_url(key, name="preview", seconds=SECONDS, content_type=preview)
    key = stored.object_key(tenant.tenant_id, name)
    spending.count(tenant.tenant_id, downloads=1, download_bytes=int(file.size))
    return objects.download_url(key, name=file.name, seconds=SECONDS)


def file_of(tenant: TenantContext, number: int, file_id: str, *, merged: Collection[int] = ()) -> FileItem:
    """Return a file of a ticket, whoever asks: one GetItem. Raises NotFound."""
    if not stored.is_file_id(file_id):
        raise _missing()
    file = tenant.repository.get(FileItem, stored.files, stored.bucket_of(file_id), sort=stored.file(file_id))
    if file is None or not file.entry or int(file.number or 0) not in (number, *merged):
        raise _missing()
    return file


class NotReadable(Conflict):
    """The file cannot be had: it is being scanned, was refused, or was removed."""

    code = "file_not_readable"

    def __init__(self, name: str, state: str) -> None:
        sentences = {
            scanning.WAITING: _("%(name)s is being scanned for malware. Try again in a moment."),
            scanning.REFUSED: _("%(name)s was refused: malware was found in it."),
        }
        super().__init__(sentences.get(state, _("%(name)s was removed.")) % {"name": name})


def _missing() -> NotFound:
    return NotFound(_("There is no such file."))


def files_of(tenant: TenantContext, number: int) -> list[FileMap]:
    """Return the files of a ticket that this caller may have, oldest first, then those of tickets that were merged into
    it. Raises NotFound for no ticket."""
    found, summary = _own_files(tenant, number)
    if summary is None:
        raise NotFound(_("There is no ticket %(number)s.") % {"number": number})
    return found + [file for one in summary.merged or () for file in _own_files(tenant, int(one))[0]]


def _own_files(tenant: TenantContext, number: int) -> tuple[list[FileMap], SummaryItem | None]:
    found: list[FileMap] = []
    summary: SummaryItem | None = None
    for item in tenant.repository.query_all(TICKET_ITEMS, tickets.ticket, number):
        is_hidden = isinstance(item, ActivityItem) and item.kind == "note" and not tenant.is_agent
        if isinstance(item, DetailItem | ActivityItem) and not is_hidden:
            found += [file for file in item.files or () if file.state in scanning.READABLE]
        elif isinstance(item, SummaryItem):
            summary = item
    return found, summary


def files_of_desk(tenant: TenantContext, part: str) -> Iterator[FileItem]:
    found = tenant.repository.query_all(FileItem, stored.files, part, begins_with=stored.FILE_PREFIX)
    return (file for file in found if file.entry and file.state in scanning.READABLE)


def zipped(
    tenant: TenantContext, files: Iterable[FileMap] | Iterable[FileItem], *, by_ticket: bool = False
) -> Iterator[bytes]:
    """Yield a zip of files while it is made, some 64 KB at a time; nothing is compressed. A file that has gone since is
    left out. `by_ticket` puts each FileItem into a folder that has the number of its ticket."""
    objects, out = ObjectStore("tenant", tenant.tenant_id), Pipe()
    now = clock.now()
    at = (now.year, now.month, now.day, now.hour, now.minute, now.second)
    names: set[str] = set()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for file in files:
            try:
                pieces = objects.pieces(stored.object_key(tenant.tenant_id, stored.object_of(file)))
            except NotFound:
                continue
            spending.count(tenant.tenant_id, downloads=1, download_bytes=int(file.size))
            folder = f"{int(file.number or 0)}/" if by_ticket and isinstance(file, FileItem) else ""
            entry = zipfile.ZipInfo(_free(folder + file.name, names), at)
            with archive.open(entry, "w", force_zip64=True) as inner:
                for piece in pieces:
                    inner.write(piece)
                    yield out.taken()
    yield out.taken()


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no other file of the archive has."""
    stem, dot, ending = name.rpartition(".")
    chosen, count = name, 1
    while chosen.casefold() in taken:
        count += 1
        chosen = f"{stem} ({count}).{ending}" if dot and stem else f"{name} ({count})"
    taken.add(chosen.casefold())
    return chosen
