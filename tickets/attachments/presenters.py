"""Files as templates show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from portal.plain_text import file_size
from tickets.attachments import attachments, file_types, scanning
from tickets.attachments.attachments import FileRef
from tickets.ticket.stored import FileMap


@dataclass(frozen=True)
class Preview:
    """The small picture of a file. Width and height are in pixels, so that the page keeps its place for it."""

    url: str
    width: int
    height: int


@dataclass(frozen=True)
class FileLine:
    """A file at a comment or a description. `url` leads to its download, "" where it cannot be had."""

    id: str
    name: str
    size: str
    type: str
    state: str
    state_label: str
    url: str
    remove_url: str
    preview: Preview | None


def lines(number: int, files: Iterable[FileMap] | None) -> list[FileLine]:
    return [
        FileLine(
            file.id,
            file.name,
            file_size(int(file.size)),
            file_types.label(file.type),
            file.state,
            _(scanning.LABELS.get(file.state, file.state)),
            reverse("tickets:file", args=[number, file.id])
            if file.state in (*scanning.READABLE, scanning.WAITING)
            else "",
            reverse("tickets:file_remove", args=[number, file.id]) if file.state != scanning.REMOVED else "",
            _preview(number, file),
        )
        for file in files or ()
    ]


def _preview(number: int, file: FileMap) -> Preview | None:
    width, _, height = (file.preview or "").partition("x")
    if not (height and file.state in scanning.READABLE):
        return None
    return Preview(reverse("tickets:file_preview", args=[number, file.id]), int(width), int(height))


LIMITS: Final = {
    "file": settings.FILE_MOST_BYTES,
    "ticket_count": attachments.MOST_OF_TICKET,
    "ticket": attachments.TICKET_BYTES,
    "comment_count": attachments.MOST_FILES,
}
# What the field of files of a form shows: its limits, and no files that came with it before.
FIELD: Final[dict[str, object]] = {
    "most": attachments.MOST_FILES,
    "most_bytes": settings.FILE_MOST_BYTES,
    "most_size": file_size(settings.FILE_MOST_BYTES),
    "form_size": file_size(settings.FORM_FILES_BYTES),
    "mail_bytes": attachments.MAIL_BYTES,
    "mail_size": file_size(attachments.MAIL_BYTES),
    "files": (),
}


# The same for people outside the desk.
GUEST_FIELD: Final[dict[str, object]] = FIELD | {
    "most": attachments.GUEST_FILES,
    "most_bytes": attachments.GUEST_BYTES,
    "most_size": file_size(attachments.GUEST_BYTES),
}


def field(files: Sequence[FileRef], *, limits: dict[str, object] = FIELD) -> dict[str, object]:
    """Return what the field of files shows of a form that came with these: for members, or by `GUEST_FIELD`."""
    return limits | {
        "files": [
            {
                "id": f.id,
                "name": f.name,
                "bytes": f.size,
                "size": file_size(f.size),
                "type": file_types.label(f.type),
            }
            for f in files
        ]
    }
