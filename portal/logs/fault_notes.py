"""Count the unexpected errors of this process, by fingerprint, until somebody writes them down.

Memory is bounded: of more different errors than `MOST` at a time, the log alone has the rest.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from portal.logs import request_id
from portal.logs.json_lines import Fault, fault_of

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
            noted.request = request_id.current()
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
