"""The type of a file is found in its content; a name or a sender's word decides nothing that matters."""

from __future__ import annotations

import pytest

from tickets.attachments import attachments, file_types


@pytest.mark.parametrize(
    ("head", "name", "found"),
    [
        (b"\x89PNG\r\n\x1a\n", "a.html", "image/png"),
        (b"\xff\xd8\xff\xe0", "", "image/jpeg"),
        (b"GIF89a/*<script>alert(1)</script>", "polyglot.js", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", "image/webp"),
        (b"RIFF\0\0\0\0AVI LIST", "", file_types.UNKNOWN),
        (b"%PDF-1.7", "", "application/pdf"),
        (b"PK\x03\x04", "a.zip", "application/zip"),
        (b"PK\x03\x04", "a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (b"PK\x03\x04", "a.html", "application/zip"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>", "a.png", "image/svg+xml"),
        (b"<?xml version='1.0'?>\n<SVG>", "", "image/svg+xml"),
        (b"<!DOCTYPE html><p>", "a.png", "text/html"),
        (b"hello <script>", "a.txt", "text/html"),
        ("Grüße".encode(), "a.exe", "text/plain"),
        (("ü" * 2048).encode()[: file_types.HEAD - 1] + b"\xc3", "", "text/plain"),
        (b"MZ\x90", "a.pdf", "application/x-msdownload"),
        (b"\xfe\xff\0a", "", file_types.UNKNOWN),
        (b"\0\0\0\x18ftypmp42", "", "video/mp4"),
        (b"", "a.png", file_types.UNKNOWN),
    ],
)
def test_a_type_is_found_by_content(head: bytes, name: str, found: str) -> None:
    assert file_types.type_of(head, name) == found
    assert file_types.label(found)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\a.txt", "a.txt"),
        ("a\r\nb.txt", "a__b.txt"),
        ("\u202efdp.exe", "fdp.exe"),
        ('a"<b>.txt', "a__b_.txt"),
        (".htaccess", "htaccess"),
        ("...", "file"),
        ("", "file"),
        ("\u200b", "file"),
        ("Ü" * 300 + ".pdf", "Ü" * 145 + "….pdf"),
    ],
)
def test_a_name_is_one_line_without_a_path(given: str, shown: str) -> None:
    assert attachments.clean_name(given) == shown
