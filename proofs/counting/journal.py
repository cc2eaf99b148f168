"""Keep a journal for each process of a torture: a file of JSON lines, whole even after SIGKILL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Each line is one write, so that a process that is killed leaves no half of one."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **what: Any) -> None:
        os.write(self._file, json.dumps(what, separators=(",", ":")).encode() + b"\n")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read what a process has written so far."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return
    for line in text.splitlines():
        yield json.loads(line)
