"""Read the JSON of a public issue archive row by row, in memory bounded by one row and one chunk.

The format is that of i-d-template's archive tool: an object with `repo`, `issues` and `pulls`, of which the
last two are lists of rows. Everything else in it is skipped without being built.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final

import ijson  # type: ignore[import-untyped]  # comes without types
from ijson.utils import sendable_list  # type: ignore[import-untyped]

from portal import plain_text
from portal.errors import Invalid

LISTS: Final = {"issues": "issue", "pulls": "pull"}
NESTING: Final = 40  # levels within a row; the format itself has six

TOKEN_LIMIT: Final = 8 * 1024 * 1024  # bytes of one text; the parser would read a longer one in quadratic time

_CHUNK = 16 * 1024  # bytes; a chunk of nothing but brackets becomes some 2 MB of events
_BOM = b"\xef\xbb\xbf"
# What a file in UTF-16 begins with, with and without its byte order mark.
_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"{\x00", b"\x00{")
# An escape, or the beginning of one. The first group is the first half of a pair that stands for one character beyond
# U+FFFF, the second group its second half. The parser puts "?" in the place of a first half alone; a second half alone
# it refuses.
_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u[0-9a-fA-F]{4}|[^u]|)", re.DOTALL
)
_PAIR = 12  # bytes
_OF_NUMBERS: Final = b"+-.0123456789eE"
_OPENING, _CLOSING = {"start_map", "start_array"}, {"end_map", "end_array"}
# What ijson's parser raises beside its own errors: bad UTF-8, and numbers of absurd size (SystemError for a
# whole number of more than 4,300 digits).
_FAULTS = (ijson.JSONError, ValueError, ArithmeticError, SystemError)


class ArchiveFault(Invalid):
    """The file is no archive, or no longer one from some place on. The message names the place."""

    code = "archive_fault"


@dataclass(frozen=True)
class RawRow:
    """One row as it stands in the file. `position` counts from 1 in its list; `value` is any JSON value."""

    kind: str
    position: int
    value: Any
    too_deep: bool = False


class Archive:
    """One reading of an archive. `consumed` is in bytes; `name` is the archive's `repo`, "" until it was read."""

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self.path, self._file = path, file
        self.consumed = 0
        self.lone_surrogates = 0  # met so far
        self._grammar = _Grammar()

    @property
    def name(self) -> str:
        return self._grammar.repo

    def rows(self) -> Iterator[RawRow]:
        """Yield all rows in the file's order. Raises ArchiveFault at the first fault, after the rows before it."""
        for event, value in self._events():
            row = self._grammar.feed(event, value)
            if row is not None:
                yield row
        if "issues" not in self._grammar.lists:
            raise ArchiveFault(f"{self.path} is JSON, but no archive of issues: it has no list “issues”.")

    def _events(self) -> Iterator[tuple[str, Any]]:
        events = sendable_list()
        parser = ijson.basic_parse_coro(events)
        silent, end = 0, b""
        numbers = _Numbers()
        with self._file or opened(self.path) as file:
            for chunk in _chunks(file, self.path):
                if not self.consumed and chunk.startswith(_UTF_16):
                    raise ArchiveFault(f"{self.path} is UTF-16 text. Save it as UTF-8 and import that.")
                if silent > TOKEN_LIMIT:
                    raise ArchiveFault(
                        f"{self.path} holds a text of more than {TOKEN_LIMIT // 2**20} MB at byte "
                        f"{self.consumed - silent:,}{self._grammar.place}; no item can hold it."
                    )
                if numbers.go_on(chunk):
                    raise ArchiveFault(
                        f"{self.path} is damaged before byte {self.consumed + len(chunk):,}{self._grammar.place}: "
                        "a number that is too large."
                    )
                end = self._count_surrogates(end + chunk, last=not chunk)
                fault = _send(parser, chunk if self.consumed else chunk.removeprefix(_BOM))
                if isinstance(fault, SystemError):
                    # The last event holds no value at all; touching it ends the process.
                    events.pop()
                silent = 0 if events else silent + len(chunk)
                yield from events
                events.clear()
                if fault is not None:
                    raise ArchiveFault(self._describe(fault, chunk)) from fault
                self.consumed += len(chunk)

    def _count_surrogates(self, text: bytes, *, last: bool) -> bytes:
        """Count in what was read; the end, which may be half of a pair of escapes, is returned for the next time."""
        for escape in _ESCAPE.finditer(text):
            if escape.start() > len(text) - _PAIR and not last:
                return text[escape.start() :]
            self.lone_surrogates += bool(escape[1] and not escape[2])
        return b""

    def _describe(self, fault: Exception, chunk: bytes) -> str:
        if self.consumed == 0 and not chunk:
            return f"{self.path} is empty."
        place = _locate(self.path, self.consumed, len(chunk))
        return f"{self.path} is damaged at {place}{self._grammar.place}: {_reason(fault)}."


class _Numbers:
    """Finds a number that goes on from chunk to chunk: the parser reads and converts it in quadratic time."""

    def __init__(self) -> None:
        self._in_text = self._escaped = False

    def go_on(self, chunk: bytes) -> bool:
        """Take the next chunk, and tell whether all of it is part of one number."""
        if not self._in_text and len(chunk) == _CHUNK and not chunk.strip(_OF_NUMBERS):
            return True
        rest = chunk[1:] if self._escaped else chunk
        plain = rest.replace(b"\\\\", b"")
        self._escaped = plain.endswith(b"\\")
        self._in_text ^= plain.replace(b'\\"', b"").count(b'"') % 2 == 1
        return False


class _Grammar:
    """Where in the archive the parser is: among its keys, in a list of rows, in a row, in what is skipped."""

    def __init__(self) -> None:
        self.repo = ""
        self.lists: set[str] = set()
        self._started = False
        self._key = ""
        self._list = ""
        self._position = 0
        self._depth = 0  # within a row or a skipped value
        self._builder: ijson.ObjectBuilder | None = None
        self._too_deep = False

    @property
    def place(self) -> str:
        if not self._list:
            return ""
        where = f"in row {self._position}" if self._depth else f"after row {self._position}"
        return f", {where} of {self._list}"

    def feed(self, event: str, value: Any) -> RawRow | None:
        """Take one event of the parser, and return the row that it completes, if one."""
        if self._depth:
            return self._inside(event, value)
        if self._list:
            return self._between_rows(event, value)
        if not self._started:
            if event != "start_map":
                raise ArchiveFault("The file is JSON, but no archive: it does not begin with an object.")
            self._started = True
        elif event == "map_key":
            self._key = value
        elif self._key in LISTS and event != "end_map":
            if event != "start_array":
                raise ArchiveFault(f"The file is JSON, but no archive: its “{self._key}” is not a list.")
            self._list, self._position = self._key, 0
            self.lists.add(self._key)
        elif event in _OPENING:
            self._depth = 1
        elif self._key == "repo" and event == "string":
            self.repo = value
        return None

    def _between_rows(self, event: str, value: Any) -> RawRow | None:
        if event == "end_array":
            self._list = self._key = ""
            return None
        self._position += 1
        if event not in _OPENING:
            return RawRow(LISTS[self._list], self._position, value)
        self._depth, self._too_deep = 1, False
        self._builder = ijson.ObjectBuilder()
        self._builder.event(event, value)
        return None

    def _inside(self, event: str, value: Any) -> RawRow | None:
        self._depth += (event in _OPENING) - (event in _CLOSING)
        if not self._list:
            return None
        if self._depth > NESTING:
            self._builder, self._too_deep = None, True
        if self._builder is not None:
            self._builder.event(event, value)
        if self._depth:
            return None
        built, self._builder = self._builder, None
        return RawRow(LISTS[self._list], self._position, built.value if built else None, self._too_deep)


def size_of(path: Path) -> int:
    """Return bytes of the file. Raises ArchiveFault where there is none."""
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(found.st_mode):
        raise ArchiveFault(f"{path} is a directory, not an archive.")
    return found.st_size


def opened(path: Path) -> BufferedReader:
    """Open a file to be read. Raises ArchiveFault."""
    try:
        return path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error


def _chunks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the file in pieces, and b"" at its end, which tells the parser that it must be complete."""
    while True:
        try:
            chunk = file.read(_CHUNK)
        except OSError as error:
            raise _unreadable(path, error) from error
        yield chunk
        if not chunk:
            return


def _send(parser: Any, chunk: bytes) -> Exception | None:
    """Return the fault that the parser finds in this chunk, if one."""
    try:
        parser.send(chunk)
    except StopIteration:
        return None
    except _FAULTS as fault:
        return fault
    return None


def _locate(path: Path, start: int, length: int) -> str:
    """Return the byte, line and column of a fault that a chunk of `length` bytes from byte `start` on holds.

    The parser tells no place. So it is fed again up to the chunk, and then byte by byte until it complains.
    """
    if not path.is_file():
        return f"one of the bytes {start:,} to {start + length:,}" if length else f"byte {start:,}"
    parser = ijson.basic_parse_coro(events := sendable_list())
    with path.open("rb") as file:
        offset = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(offset)
        line, line_start = 1, offset
        while offset < start + length:
            piece = file.read(min(_CHUNK, start - offset) if offset < start else 1)
            if not piece or _send(parser, piece) is not None:
                break
            events.clear()
            if b"\n" in piece:
                line += piece.count(b"\n")
                line_start = offset + piece.rindex(b"\n") + 1
            offset += len(piece)
    return f"byte {offset:,} (line {line:,}, column {offset - line_start + 1:,})"


def _reason(fault: Exception) -> str:
    if isinstance(fault, UnicodeDecodeError):
        return "text that is not UTF-8"
    if not isinstance(fault, ijson.JSONError):
        return "a number that is too large"
    # "parse error: premature EOF\n   (the text)\n  (right here) ---^"; as the repr of bytes where it is not UTF-8.
    text = str(fault).removeprefix("b'").replace("\\n", "\n").split("\n")[0]
    text = text.split(" error: ", 1)[-1]
    known = {
        "premature EOF": "it ends in the middle",
        "invalid bytes in UTF8 string.": "text that is not UTF-8",
        "trailing garbage": "more text after the end of the archive",
    }
    return known.get(text, text.rstrip("."))


def _unreadable(path: Path, error: OSError) -> ArchiveFault:
    if isinstance(error, FileNotFoundError):
        return ArchiveFault(f"There is no file {path}.")
    if isinstance(error, IsADirectoryError):
        return ArchiveFault(f"{path} is a directory, not an archive.")
    return ArchiveFault(f"{path} cannot be read: {error.strerror}.")


# --- lines of export_tickets ---


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
