"""Read the lines that export_tickets wrote, in memory bounded by the longest of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from portal import plain_text
from tickets.importing.archive_reader import Archive, ArchiveFault, RawRow, opened

KIND: Final = "ticket"
LINE_LIMIT: Final = 256 * 1024 * 1024  # bytes; a hundred thousand comments have some 50 MB

_BEGINNING: Final = 4096  # bytes that are looked at to tell what a file is
# What a line of the export can begin with, whoever sorted its members; no archive has one of these.
_FIRST_MEMBER: Final = re.compile(
    rb'(\xef\xbb\xbf)?\s*\{\s*"(number|activity|comment_count|created_at|desk|title|version)"'
)


class ExportedLines:
    """One reading of an export. `consumed` is in bytes; `name` is the desk of the line read last."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self.consumed = 0
        self.lone_surrogates = 0
        self.name = ""
        self._file = file

    def rows(self) -> Iterator[RawRow]:
        """Yield all tickets in the file's order. Raises ArchiveFault at the first fault, after the tickets before
        it."""
        with self._file as file:
            position = 0
            while text := self._line(file, position + 1):
                position += 1
                self.consumed += len(text)
                if text.isspace():
                    continue
                value = self._parsed(text, position)
                desk = value.get("desk") if isinstance(value, dict) else None
                self.name = desk if isinstance(desk, str) else self.name
                yield RawRow(KIND, position, value)

    def _line(self, file: IO[bytes], position: int) -> bytes:
        try:
            text = file.readline(LINE_LIMIT + 1)
        except OSError as error:
            raise ArchiveFault(f"{self.path} cannot be read: {error.strerror}.") from error
        if len(text) > LINE_LIMIT:
            raise ArchiveFault(f"Line {position:,} of {self.path} has more than {LINE_LIMIT // 2**20} MB.")
        return text

    def _parsed(self, text: bytes, position: int) -> Any:
        try:
            return plain_text.read_json(text.decode("utf-8-sig"), parse_constant=_refuse)
        except json.JSONDecodeError as error:
            reason = f"at column {error.colno:,}: {error.msg}"
        except UnicodeDecodeError:
            reason = "it is not UTF-8"
        except RecursionError:
            reason = "it is nested too deep"
        except ValueError as error:
            reason = str(error)
        raise ArchiveFault(f"{self.path} is damaged in line {position:,}: {reason}.")


def archive_of(path: Path) -> Archive | ExportedLines:
    """Open a file as what it is: an export of ours, or else an archive. Raises ArchiveFault where there is none."""
    file = opened(path)
    try:
        beginning = file.peek(_BEGINNING)
    except OSError:
        beginning = b""  # the archive says why
    return ExportedLines(path, file) if _FIRST_MEMBER.match(beginning) else Archive(path, file)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number")
