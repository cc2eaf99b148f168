"""Name the type of a file by its content. The type is shown to people; nothing here opens a file because of it.

The list is short on purpose. A file that has two types at once, such as a picture that is a script as well, gets one
of them, and none is served in a way in which a browser would run it.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

UNKNOWN: Final = "application/octet-stream"
HEAD: Final = 4096  # bytes that are looked at
PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")  # of which previews are made

_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"MZ", "application/x-msdownload"),
    (b"\x7fELF", "application/x-executable"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
)
# Formats that are a zip inside: their content says no more, so the name decides what people are shown.
_OFFICE: Final = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
}
_LABELS: Final = {
    "image/png": gettext_noop("PNG image"),
    "image/jpeg": gettext_noop("JPEG image"),
    "image/gif": gettext_noop("GIF image"),
    "image/webp": gettext_noop("WebP image"),
    "image/bmp": gettext_noop("BMP image"),
    "image/svg+xml": gettext_noop("SVG drawing"),
    "application/pdf": gettext_noop("PDF"),
    "application/zip": gettext_noop("ZIP archive"),
    "application/gzip": gettext_noop("GZIP archive"),
    "application/x-7z-compressed": gettext_noop("7-Zip archive"),
    "application/vnd.rar": gettext_noop("RAR archive"),
    "application/x-ole-storage": gettext_noop("Office document"),
    "application/x-msdownload": gettext_noop("Windows program"),
    "application/x-executable": gettext_noop("Program"),
    "audio/mpeg": gettext_noop("MP3 audio"),
    "audio/ogg": gettext_noop("Ogg media"),
    "audio/wav": gettext_noop("WAV audio"),
    "video/mp4": gettext_noop("MP4 video"),
    "text/plain": gettext_noop("Text"),
    "text/html": gettext_noop("HTML page"),
    "message/rfc822": gettext_noop("E-mail"),
    **dict(
        zip(
            _OFFICE.values(),
            (
                gettext_noop("Word document"),
                gettext_noop("Excel workbook"),
                gettext_noop("PowerPoint slides"),
                gettext_noop("OpenDocument text"),
                gettext_noop("OpenDocument sheet"),
            ),
            strict=True,
        )
    ),
}


def type_of(head: bytes, name: str = "") -> str:
    """Return the media type of a file that begins so, `UNKNOWN` where none is recognised."""
    for beginning, found in _BEGINNINGS:
        if head.startswith(beginning):
            if found == "application/zip":
                return next((of for ending, of in _OFFICE.items() if name.lower().endswith(ending)), found)
            return found
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        return "video/mp4"
    return _text_type(head[:HEAD])


def _text_type(head: bytes) -> str:
    try:
        # The last character may be cut.
        text = head.decode("utf-8-sig", errors="ignore" if len(head) == HEAD else "strict").lower()
    except UnicodeDecodeError:
        return UNKNOWN
    if "\0" in text:
        return UNKNOWN
    if "<svg" in text:
        return "image/svg+xml"
    if any(mark in text for mark in ("<html", "<!doctype html", "<script", "<body", "<iframe")):
        return "text/html"
    return "text/plain" if text.strip() else UNKNOWN


def label(media_type: str) -> str:
    """Return the name of a type as people know it: "PDF", "File" for one that was not recognised."""
    return _(_LABELS.get(media_type, gettext_noop("File")))
