"""Tell how busy the machine is: figures taken on a busy machine are worth little. Processor time needs /proc."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def description() -> str:
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}"
    return f"{os.cpu_count()} cores, {system}"


def load() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def cpu_seconds(group: int) -> float:
    """Return processor time of the living processes of a process group. Steps of 10 ms, so sum over many requests."""
    ticks = 0
    for stat in _PROC.glob("[0-9]*/stat"):
        # A process may end between its listing and its reading.
        with contextlib.suppress(OSError, ValueError):
            # The name, in parentheses, may hold spaces; behind it: state, parent, group, ..., utime, stime.
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS
