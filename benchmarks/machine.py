"""Tell how busy the machine is, and whose work it is: figures taken on a busy machine are worth little.

The load average counts our own processes as well. So beside it stands the share of the processors that others used
while we measured. Both need /proc, so they are None elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, process_time

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


def _busy_seconds() -> float | None:
    """Return the seconds that all processors together have worked since the machine was started."""
    try:
        fields = [int(f) for f in (_PROC / "stat").read_text().splitlines()[0].split()[1:]]
    except (OSError, ValueError, IndexError):
        return None
    return (sum(fields[:8]) - fields[3] - fields[4]) / _TICKS  # without idle and waiting for disks


class Neighbours:
    """Processor time that others took between two looks, as a share of the whole machine, 0 to 1."""

    def __init__(self, ours: Sequence[int]) -> None:
        self._ours = ours
        self._then = self._look()

    def share(self) -> float | None:
        """Return the share since the last call."""
        then, now = self._then, self._look()
        self._then = now
        if then[1] is None or now[1] is None:
            return None
        spent = now[1] - then[1]
        possible = (now[0] - then[0]) * (os.cpu_count() or 1)
        return round(min(1.0, max(0.0, spent / possible)), 3)

    def _look(self) -> tuple[float, float | None]:
        busy = _busy_seconds()
        if busy is None:
            return monotonic(), None
        return monotonic(), busy - process_time() - sum(cpu_seconds(group) for group in self._ours)
