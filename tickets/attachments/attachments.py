"""Store files and put them on tickets.

A file comes in two steps. First it is stored: by a form that the portal signs for a browser (`begin`, `guest_form`), or
by the portal itself where it has the content already (`store`). Then a rule that writes a ticket or a comment attaches
a copy of it (`Copies`, `attach`), in the same transaction: so no ticket shows a file that is not stored, whoever dies
in between, and nobody changes it by sending the form once more. An upload goes after a day.
"""

from __future__ import annotations

import random
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Self

from django.conf import settings
from django.utils.translation import gettext as _

from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.store import Action, Transaction
from portal.errors import (
    TRANSACTION_CONFLICT,
    ConditionFailed,
    Conflict,
    Invalid,
    NotFound,
    PortalError,
    TransactionRefused,
    Unavailable,
)
from portal.objects.object_store import ObjectStore, UploadForm
from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tickets.attachments import file_types, scanning, stored
from tickets.attachments.stored import FileItem, FileUsageItem
from tickets.ticket.stored import FileMap, SummaryItem

Wanted = tuple[Callable[..., str], tuple[Any, ...], str | None]  # as Store.get_many takes it

MOST_FILES: Final = 10  # of one comment or description
MOST_OF_TICKET: Final = 200
GUEST_FILES: Final = 5  # of one form of somebody outside the desk
GUEST_BYTES: Final = 10_000_000  # of each of them
_GUEST_UPLOADS: Final = 10  # that such a form begins, those included that the person removes again
MAIL_BYTES: Final = 10_000_000  # of the files of a letter; many mailboxes refuse one that is much larger
TICKET_BYTES: Final = 500_000_000
FORM_SECONDS: Final = 60 * 10  # for which a signed form is good: an upload of 25 MB over a slow line has to begin in it
_KEPT_SECONDS: Final = 24 * 3600  # of a file that is on its way to a ticket
_NAME_LIMIT: Final = 150  # characters
_TAG: Final = "pooldesk"
UNATTACHED: Final = {_TAG: "unattached"}  # which the bucket's rule deletes
ATTACHED: Final = {_TAG: "attached"}
MEMBER: Final = "file"  # the name of our members of a transaction


@dataclass(frozen=True)
class FileRef:
    """A stored file. `size` is in bytes, `type` what the content looks like, `state` what a scanner says of it.
    `object` is the name of the copy that belongs to a ticket, "" where there is none yet."""

    id: str
    name: str
    size: int
    type: str
    state: str
    object: str = ""

    @classmethod
    def of(cls, item: FileItem) -> FileRef:
        made = stored.object_of(item) if item.entry else ""
        return cls(item.id, item.name, int(item.size), item.type, item.state, made)


@dataclass(frozen=True)
class Upload:
    """A file that a browser is about to send, and the form by which it does."""

    file: FileRef
    form: UploadForm


@dataclass(frozen=True)
class FilePart:
    """A sixteenth of the files of a desk, by their ids. `size` is in bytes."""

    name: str
    count: int
    size: int


@dataclass(frozen=True)
class Usage:
    """The files that a desk's tickets have, and the bytes that they may have at most."""

    count: int
    size: int
    most: int


def clean_name(name: str) -> str:
    """Return the name that a file is shown and saved by: one line, no path, nothing invisible; "file" for none."""
    plain = plain_text.visible(unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2]))
    kept = "".join("_" if char in '<>:"|?*' or unicodedata.category(char).startswith("C") else char for char in plain)
    kept = " ".join(kept.split()).strip(". ")
    stem, dot, ending = kept.rpartition(".")
    if len(kept) > _NAME_LIMIT and dot and len(ending) <= 10:
        return f"{stem[: _NAME_LIMIT - len(ending) - 2]}….{ending}"
    return kept[:_NAME_LIMIT] or "file"


def begin(tenant: TenantContext, name: str, size: int) -> Upload:
    """Make a file that a browser is about to send, and the form for it: one read, one write. Raises Invalid."""
    _check_size(name, size)
    check_room(tenant, size)
    item = _item(tenant, stored.new_id(), name, size, file_types.UNKNOWN)
    tenant.repository.put(item)
    return _signed(tenant, item)


def guest_form(desk: TenantContext, form_id: str, name: str, size: int) -> Upload:
    """Make a file that somebody outside the desk is about to send, as `begin` does for members: two reads, one write.

    `form_id` is the random one-time id of the form that they fill in. The file belongs to that form: only
    `arrived(..., form_id=form_id)` finds it. Raises Invalid for an empty or too large file, and for one too many.
    """
    _check_size(name, size, most=GUEST_BYTES)
    check_room(desk, size)
    ids = [stored.id_of(f"{desk.tenant_id} guest {form_id} {slot}") for slot in range(_GUEST_UPLOADS)]
    wanted: list[Wanted] = [(stored.files, (stored.bucket_of(one),), stored.file(one)) for one in ids]
    found = desk.repository.get_many(FileItem, wanted)
    free = [one for one, item in zip(ids, found, strict=True) if item is None]
    random.shuffle(free)  # a browser begins several at once
    for file_id in free:
        item = _item(desk, file_id, name, size, file_types.UNKNOWN, owner=_owner(desk, form_id))
        try:
            desk.repository.put(item, condition=FileItem.pk.does_not_exist())
        except ConditionFailed:
            continue
        return _signed(desk, item)
    raise too_many_of_guest()


def _owner(tenant: TenantContext, form_id: str) -> str:
    """Return the name of the sender of a file: a member's id, or a form's."""
    return f"form {keys.digest(form_id)}" if form_id else tenant.user_id


def _signed(tenant: TenantContext, item: FileItem) -> Upload:
    form = _objects(tenant).upload_form(
        stored.upload_key(tenant.tenant_id, item.id),
        content_type=file_types.UNKNOWN,
        size=int(item.size),
        seconds=FORM_SECONDS,
        tags=UNATTACHED,
    )
    return Upload(FileRef.of(item), form)


def store(tenant: TenantContext, name: str, content: bytes, content_type: str = "", *, identity: str = "") -> FileRef:
    """Store a file whose content is here: one read, two writes, and one more for its tags. Raises Invalid.

    The type follows from the content; `content_type` is a sender's word, which counts for nothing. A file of the same
    `identity`, any text, is the same one, so whoever begins again leaves nothing behind.
    """
    _check_size(name, len(content))
    file_id = stored.id_of(identity) if identity else stored.new_id()
    key, bucket = stored.upload_key(tenant.tenant_id, file_id), stored.bucket_of(file_id)
    if identity:
        existing = tenant.repository.get(FileItem, stored.files, bucket, sort=stored.file(file_id))
        if existing is not None and existing.entry:
            return FileRef.of(existing)
    check_room(tenant, len(content))
    item = _item(tenant, file_id, name, len(content), file_types.type_of(content[: file_types.HEAD], name))
    tenant.repository.put(item)  # first: an object without an item would be found by nobody
    objects = _objects(tenant)
    objects.put(key, content, content_type=file_types.UNKNOWN)
    objects.tag(key, UNATTACHED)
    return FileRef.of(item)


class NotArrived(Conflict):
    """A file has not arrived, or is somebody else's. Nothing was written."""

    code = "file_not_arrived"


@dataclass
class ArrivedFiles:
    """Files that have arrived, and a sentence for each that has not."""

    files: list[FileRef]
    problems: list[str]


def uploaded(tenant: TenantContext, file_ids: Sequence[str]) -> list[FileRef]:
    """Return the files of these ids, as `arrived`. Raises NotArrived for the first that has not, and Invalid for too
    many."""
    if len({*file_ids}) > MOST_FILES:
        raise too_many()
    found = arrived(tenant, file_ids)
    if found.problems:
        raise NotArrived(found.problems[0], field="files")
    return found.files


def arrived(tenant: TenantContext, file_ids: Sequence[str], *, form_id: str = "") -> ArrivedFiles:
    """Return the files of these ids that this person has sent, each with the type that its content has. With a
    `form_id`, the person is the one outside the desk who was given that form.

    One BatchGetItem, and for each file one request for its beginning. A file that is somebody else's, that is not there
    or that has another size than was said is none of them: nothing of that is attached.
    """
    ids = [one for one in dict.fromkeys(file_ids) if stored.is_file_id(one)]
    wanted: list[Wanted] = [(stored.files, (stored.bucket_of(one),), stored.file(one)) for one in ids]
    items = tenant.repository.get_many(FileItem, wanted) if wanted else []
    # One that is of a ticket already has no author any more. The form has come before, or is refused as it is written.
    owner = _owner(tenant, form_id)
    mine = [item for item in items if item is not None and owner and (item.entry or item.author == owner)]
    seen = fan_out([partial(_seen, tenant, item) for item in mine]) if mine else []
    problems = [one for one in seen if isinstance(one, str)]
    if len(mine) < len({*file_ids}):
        problems.append(_("One of these files is not yours, or waited for longer than a day. Add it again."))
    return ArrivedFiles([one for one in seen if isinstance(one, FileRef)], problems)


def _seen(tenant: TenantContext, item: FileItem) -> FileRef | str:
    """Return a file as its content says, or why it has not arrived."""
    if item.entry:  # the form has come before; the record of its request tells
        return FileRef.of(item)
    return _looked_at(tenant, FileRef.of(item), stored.upload_key(tenant.tenant_id, item.id))


def _looked_at(tenant: TenantContext, file: FileRef, key: str) -> FileRef | str:
    """Return a file with the type that this object has, or why the object is not the file: one request."""
    try:
        head, size = _objects(tenant).beginning(key, most=file_types.HEAD)
    except NotFound:
        return _("%(name)s has not arrived. Add it again.") % {"name": file.name}
    if size != file.size:
        return _("%(name)s has not arrived whole. Add it again.") % {"name": file.name}
    return replace(file, type=file_types.type_of(head, file.name))


class Copies:
    """The copies of files that one request attaches, made once however often its transaction is tried.

    Leaving the context deletes them where nothing came of them. A crash, or an answer of the database that got lost,
    can leave an object that no ticket shows, and never a ticket that shows a file which is not there.
    """

    def __init__(self, tenant: TenantContext, files: Sequence[FileRef]) -> None:
        self.files = files
        self._tenant = tenant
        self._made: list[FileRef] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._made and (error is None or (isinstance(error, PortalError) and not isinstance(error, Unavailable))):
            with suppress(PortalError):
                self._clear(self._made)

    def made(self) -> list[FileRef]:
        """Copy the files to where nobody has a form for, and look at each copy: two requests for each file, once.
        Raises Invalid for a file that is gone or that is not what its form said."""
        if len(self.files) > MOST_FILES:
            raise too_many()
        if self._made is None:
            self._made = [one if one.object else replace(one, object=stored.new_id()) for one in self.files]
            seen = fan_out([partial(self._copied, *both) for both in zip(self.files, self._made, strict=True)])
            for one in seen:
                if isinstance(one, str):
                    raise Invalid(one, field="files")
            self._made = [one for one in seen if isinstance(one, FileRef)]
        return self._made

    def _copied(self, file: FileRef, copy: FileRef) -> FileRef | str:
        if file.object:  # of a ticket already: the transaction is refused, or has been written before
            return file
        objects, tenant_id = _objects(self._tenant), self._tenant.tenant_id
        key = stored.object_key(tenant_id, copy.object)
        try:
            objects.copy(stored.upload_key(tenant_id, file.id), key, content_type=file_types.UNKNOWN, tags=ATTACHED)
        except NotFound:
            return _("%(name)s is gone. Add it again.") % {"name": file.name}
        return _looked_at(self._tenant, copy, key)

    def _clear(self, made: Sequence[FileRef]) -> None:
        """Delete the copies that belong to no ticket: one BatchGetItem where the entry was not written by this."""
        ours = [copy for file, copy in zip(self.files, made, strict=True) if not file.object]
        repository = self._tenant.repository
        wanted: list[Wanted] = [(stored.files, (stored.bucket_of(one.id),), stored.file(one.id)) for one in ours]
        items = repository.get_many(FileItem, wanted) if wanted else []
        used = {item.object for item in items if item is not None}
        for copy in ours:
            if copy.object not in used:
                _objects(self._tenant).delete(stored.object_key(self._tenant.tenant_id, copy.object))

    def written(self) -> None:
        """Note that the transaction was written: the copies stay."""
        self._made = None


def attach(
    tenant: TenantContext, transaction: Transaction, files: Sequence[FileRef], *, number: int, entry: str
) -> list[FileMap]:
    """Add to a transaction that these copies of files belong to an entry of a ticket. Return what the entry lists."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for file in files:
        bucket = stored.bucket_of(file.id)
        counts[bucket] += 1
        sizes[bucket] += file.size
        item = FileItem(tenant.repository.key(stored.files, bucket), stored.file(file.id))
        actions: list[Action] = [
            FileItem.number.set(number),
            FileItem.entry.set(entry),
            FileItem.type.set(file.type),
            FileItem.object.set(file.object),
            FileItem.expires_at.remove(),
            FileItem.author.remove(),  # the entry has one, which is forgotten with a person
        ]
        is_free = FileItem.entry.does_not_exist() & (FileItem.state == file.state)
        transaction.update(item, actions, name=MEMBER, condition=is_free)
    for bucket, count in counts.items():
        usage = FileUsageItem(tenant.repository.key(stored.files, bucket), stored.USAGE)
        transaction.update(usage, [FileUsageItem.file_count.add(count), FileUsageItem.file_bytes.add(sizes[bucket])])
    return [_map(file) for file in files]


def detach(tenant: TenantContext, transaction: Transaction, files: Sequence[FileMap], *, entry: str) -> list[Action]:
    """Add to a transaction that files of an entry are this person's uploads again, as before `attach`, for a day.

    Returns the actions by which the ticket's summary counts them no more. The copies stay until orphaned_copies.py
    finds them: the transaction may be refused.
    """
    expires_at, counts, sizes = int(time.time()) + _KEPT_SECONDS, Counter[str](), Counter[str]()
    for file in files:
        bucket = stored.bucket_of(file.id)
        counts[bucket] += 1
        sizes[bucket] += int(file.size)
        actions: list[Action] = [
            *(one.remove() for one in (FileItem.number, FileItem.entry, FileItem.object)),
            FileItem.expires_at.set(expires_at),
            FileItem.author.set(tenant.user_id),
        ]
        item = FileItem(tenant.repository.key(stored.files, bucket), stored.file(file.id))
        transaction.update(item, actions, name=MEMBER, condition=FileItem.entry == entry)
    for bucket, count in counts.items():
        usage = FileUsageItem(tenant.repository.key(stored.files, bucket), stored.USAGE)
        transaction.update(usage, [FileUsageItem.file_count.add(-count), FileUsageItem.file_bytes.add(-sizes[bucket])])
    return [SummaryItem.file_count.add(-len(files)), SummaryItem.file_bytes.add(-sum(sizes.values()))]


def counted(summary: SummaryItem, files: Sequence[FileRef]) -> list[Any]:
    """Return the actions by which a ticket's summary counts these files. Raises Invalid where it has too many then."""
    check_ticket(int(summary.file_count or 0), int(summary.file_bytes or 0), files)
    size = sum(file.size for file in files)
    return [SummaryItem.file_count.add(len(files)), SummaryItem.file_bytes.add(size)]


def check_ticket(count: int, size: int, files: Sequence[FileRef]) -> None:
    """Raise Invalid where a ticket with so many files and bytes would have too many with these."""
    if count + len(files) > MOST_OF_TICKET:
        raise Invalid(_("A ticket can have at most %(num)s files.") % {"num": MOST_OF_TICKET}, field="files")
    if size + sum(file.size for file in files) > TICKET_BYTES:
        most = {"most": TICKET_BYTES // 1_000_000}
        raise Invalid(_("The files of a ticket can have at most %(most)s MB.") % most, field="files")


def rename(tenant: TenantContext, transaction: Transaction, files: Iterable[FileMap]) -> None:
    """Add to a transaction that files of tickets have these names from then on, as their entries list them."""
    for file in files:
        item = FileItem(tenant.repository.key(stored.files, stored.bucket_of(file.id)), stored.file(file.id))
        transaction.update(item, [FileItem.name.set(file.name)], condition=FileItem.pk.exists())


def have_pictures(files: Sequence[FileRef]) -> bool:
    """Tell whether one of these files may get a preview."""
    return any(file.type in file_types.PICTURES for file in files)


def blame(refused: TransactionRefused) -> None:
    """Raise why a transaction that attaches files was refused because of them; return where it was not."""
    reason = refused.reason(MEMBER) if MEMBER in refused.names else None
    if reason is not None and reason.code != TRANSACTION_CONFLICT:
        raise Invalid(_("One of these files was used already, or was scanned just now. Add it again."), field="files")


def _map(file: FileRef) -> FileMap:
    told: Any = FileMap
    made: FileMap = told(
        id=file.id, name=file.name, size=file.size, type=file.type, state=file.state, object=file.object
    )
    return made


# --- limits ---


def usage(tenant: TenantContext) -> Usage:
    """Return what the files of a desk need: one BatchGetItem."""
    found = parts(tenant)
    return Usage(sum(part.count for part in found), sum(part.size for part in found), settings.FILES_OF_DESK)


def parts(tenant: TenantContext) -> list[FilePart]:
    """Return the parts of all files of a desk's tickets, those without files left out: one BatchGetItem."""
    wanted: list[Wanted] = [(stored.files, (bucket,), stored.USAGE) for bucket in stored.BUCKETS]
    found = zip(stored.BUCKETS, tenant.repository.get_many(FileUsageItem, wanted, consistent=False), strict=True)
    return [FilePart(name, int(item.file_count), int(item.file_bytes)) for name, item in found if item]


def check_room(tenant: TenantContext, size: int) -> None:
    """Raise Invalid where the files of a desk would need more than they may. Several at once can exceed it a little."""
    used = usage(tenant)
    if used.size + size > used.most:
        raise Invalid(
            _("The files of this desk have reached their limit of %(most)s MB. Administrators see more on Usage.")
            % {"most": f"{used.most // 1_000_000:,}"},
            field="files",
        )


def _check_size(name: str, size: int, *, most: int | None = None) -> None:
    if size <= 0:
        raise Invalid(_("%(name)s is empty.") % {"name": clean_name(name)}, field="files")
    if size > (most := min(most or settings.FILE_MOST_BYTES, settings.FILE_MOST_BYTES)):
        told = {"name": clean_name(name), "most": f"{most / 1_000_000:.0f}"}
        raise Invalid(_("%(name)s is larger than %(most)s MB.") % told, field="files")


def too_many() -> Invalid:
    """Return the error of a comment with too many files."""
    return Invalid(_("A comment can have at most %(num)s files.") % {"num": MOST_FILES}, field="files")


def too_many_of_guest() -> Invalid:
    """Return the error of a form of somebody outside with too many files."""
    return Invalid(_("At most %(num)s files can be attached.") % {"num": GUEST_FILES}, field="files")


def _item(tenant: TenantContext, file_id: str, name: str, size: int, media_type: str, *, owner: str = "") -> FileItem:
    return FileItem(
        tenant.repository.key(stored.files, stored.bucket_of(file_id)),
        stored.file(file_id),
        name=clean_name(name),
        size=size,
        type=media_type,
        state=scanning.first_state(),
        author=owner or tenant.user_id,
        at=clock.stamp(),
        expires_at=int(time.time()) + _KEPT_SECONDS,
    )


def content(tenant: TenantContext, name: str, *, most: int) -> bytes:
    """Return the content of a ticket's file by the name of its object: one request. Raises NotFound, and TooLarge above
    `most` bytes."""
    return _objects(tenant).get(stored.object_key(tenant.tenant_id, name), most=most)


def delete(tenant: TenantContext, file: FileItem | FileMap) -> None:
    """Delete the objects of a ticket's file: its content and its preview."""
    _objects(tenant).delete(stored.object_key(tenant.tenant_id, stored.object_of(file)))
    delete_preview(tenant, file)


def delete_preview(tenant: TenantContext, file: FileItem | FileMap) -> None:
    _objects(tenant).delete(stored.preview_key(tenant.tenant_id, stored.object_of(file)))


def _objects(tenant: TenantContext) -> ObjectStore:
    return ObjectStore("tenant", tenant.tenant_id)
