"""Write each log record as one line of JSON, without anything that people or systems wrote.

Messages of our own loggers hold ids, counts and sentences of ours. A library's message is written as its template: its
arguments may be an address or a token. Of an exception a line has the type, the places that it came through and a
fingerprint, and never its text, which may quote what somebody typed.
"""

from __future__ import annotations

import json
import logging
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from portal.logs import request_id

OURS: Final = ("pooldesk", "gunicorn")  # gunicorn speaks of processes alone: waitress reads the requests
_LIBRARY_WORDS: Final = 300  # characters of a library's template
_MOST_FRAMES: Final = 12
_ROOT: Final = f"{Path(__file__).resolve().parents[2]}/"


@dataclass(frozen=True)
class Fault:
    """An exception without its text. `places` are "file:line function", the innermost last.

    `fingerprint` is the same for all that come through the same functions of ours, whatever the lines are.
    """

    kind: str
    places: tuple[str, ...]
    fingerprint: str

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        return cls._of(type(error), error.__traceback__)

    @classmethod
    def _of(cls, kind: type[BaseException], trace: TracebackType | None) -> Fault:
        frames = traceback.StackSummary.extract(traceback.walk_tb(trace), lookup_lines=False)
        places = [(_short(frame.filename), frame.lineno, frame.name) for frame in frames]
        ours = [(file, name) for file, _, name in places if not _is_library(file)] or [(f, n) for f, _, n in places]
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        text = "\n".join([name, *(f"{file} {function}" for file, function in ours)])
        shown = tuple(f"{file}:{line} {function}" for file, line, function in places)
        return cls(name, shown[-_MOST_FRAMES:], sha256(text.encode()).hexdigest()[:12])


def _short(filename: str) -> str:
    _, library, inside = filename.rpartition("/site-packages/")
    return f"<{inside}>" if library else filename.removeprefix(_ROOT)


def _is_library(file: str) -> bool:
    return file.startswith(("<", "/"))


def fault_of(record: logging.LogRecord) -> Fault | None:
    """Return the exception that a record tells of, None where it tells of none."""
    error = record.exc_info[1] if record.exc_info else None
    return Fault.of(error) if error is not None else None


class JsonLines(logging.Formatter):
    """Formats a record; `extra={"fields": {...}}` adds members to its line."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        if caused_by := request_id.current():
            line["request"] = caused_by
        line |= getattr(record, "fields", {})
        if (fault := fault_of(record)) is not None:
            line["error"] = {"type": fault.kind, "fingerprint": fault.fingerprint, "at": fault.places}
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)


def _message(record: logging.LogRecord) -> str:
    if record.name.partition(".")[0] in OURS:
        return record.getMessage()
    if record.exc_info or not isinstance(record.msg, str):  # libraries put the text of the exception there
        return ""
    return record.msg[:_LIBRARY_WORDS]
