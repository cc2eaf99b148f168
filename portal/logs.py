"""Logs that one search finds together: an id for each request, and a line of JSON for each record.

The id goes along into whatever the request causes: the rows of the outbox, the messages of the queues, and the headers
of webhooks and mails. It says nothing of who asked or for what, so that it may be shown to anybody.

A line has nothing that people or systems wrote. Messages of our own loggers hold ids, counts and sentences of ours. A
library's message is written as its template: its arguments may be an address or a token. Of an exception a line has the
type, the places that it came through and a fingerprint, and never its text, which may quote what somebody typed.

Unexpected errors are counted by fingerprint until somebody writes them down. Memory is bounded: of more different
errors than `MOST` at a time, the log alone has the rest.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final

HEADER: Final = "X-Request-Id"
_FORM: Final = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")
_current: ContextVar[str] = ContextVar("request_id", default="")


def new_request_id() -> str:
    return secrets.token_hex(16)


def is_request_id(text: object) -> bool:
    """Tell whether a text has the form of a request id, as clients of the API may choose one: 8 to 64 plain
    characters."""
    return isinstance(text, str) and _FORM.match(text) is not None


def request_id() -> str:
    """Return the id of the request that caused what is done now, "" where none did."""
    return _current.get()


def use_request_id(given: str) -> None:
    """Let the request that is being served have this id from now on, until the surrounding `following` ends."""
    _current.set(given)


def mark(caused_by: str) -> str:
    """Return the end of a log's message, which names the request that caused it, "" where none did."""
    return f" [{caused_by}]" if caused_by else ""


@contextmanager
def following(caused_by: str) -> Iterator[None]:
    """Do what is done in this context because of a request."""
    token = _current.set(caused_by)
    try:
        yield
    finally:
        _current.reset(token)


# --- lines ---

OURS: Final = ("pooldesk", "gunicorn")  # gunicorn speaks of processes alone: waitress reads the requests
_LIBRARY_WORDS: Final = 300  # characters of a library's template
_MOST_FRAMES: Final = 12
_ROOT: Final = f"{Path(__file__).resolve().parents[1]}/"


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
        if caused_by := request_id():
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


# --- the unexpected errors of this process ---

MOST: Final = 100


@dataclass
class NotedFault:
    """Hold how often an error came, in this process, and where it came last. Moments are in UTC."""

    fault: Fault
    route: str
    first_at: datetime
    last_at: datetime
    request: str = ""
    count: int = 0


class FaultNotes:
    """Notes for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[str, NotedFault] = {}

    def note(self, fault: Fault, *, route: str, at: datetime) -> None:
        with self._lock:
            noted = self._noted.get(fault.fingerprint)
            if noted is None:
                if len(self._noted) >= MOST:
                    return
                noted = self._noted[fault.fingerprint] = NotedFault(fault, route, at, at)
            noted.fault, noted.route, noted.last_at = fault, route, at
            noted.request = request_id()
            noted.count += 1

    def take(self, most: int) -> list[NotedFault]:
        """Return up to `most` of what was noted, and forget it."""
        with self._lock:
            names = list(self._noted)[:most]
            return [self._noted.pop(name) for name in names]

    def put_back(self, noted: NotedFault) -> None:
        """Note again what could not be written down."""
        with self._lock:
            newer = self._noted.setdefault(noted.fault.fingerprint, noted)
            if newer is not noted:
                newer.first_at, newer.count = noted.first_at, newer.count + noted.count


notes = FaultNotes()


class FaultHandler(logging.Handler):
    """Notes each record of an error that has an exception."""

    def emit(self, record: logging.LogRecord) -> None:
        fault = fault_of(record)
        if fault is not None:
            notes.note(fault, route=_route_of(record), at=datetime.fromtimestamp(record.created, UTC))


def _route_of(record: logging.LogRecord) -> str:
    """Return the route of the request that failed: by the record of the API, or by the request in that of Django."""
    match = getattr(getattr(record, "request", None), "resolver_match", None)
    return str(getattr(record, "route", "") or (f"/{match.route}" if match else ""))


def _forget() -> None:
    global notes
    notes = FaultNotes()


os.register_at_fork(after_in_child=_forget)
