"""`python -m benchmarks.memory PID...`: the memory of these processes and of all that descend from them, and the sum.

RSS counts what processes share once for each of them. PSS counts it in equal parts, so it can be added up.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stack import table
from proofs.portal_server import with_descendants

SHELL = 2  # MB of a process that only waits for another one; those are left out
_PROC = Path("/proc")


@dataclass(frozen=True)
class Resident:
    """The memory of one process, in MB."""

    name: str
    rss: float
    pss: float


def resident(pid: int, name: str = "") -> list[Resident]:
    """Return the memory of a process and of its descendants. A process is called by its command line without `name`."""
    found = [Resident(name or _command(each), *_sizes(each)) for each in with_descendants(pid)]
    return [each for each in found if each.pss >= SHELL]


def _sizes(pid: int) -> tuple[float, float]:
    """Return RSS and PSS in MB."""
    found = dict(re.findall(r"^(Rss|Pss): +(\d+) kB", _read(pid, "smaps_rollup"), re.MULTILINE))
    return int(found.get("Rss", 0)) / 1024, int(found.get("Pss", 0)) / 1024


def _command(pid: int) -> str:
    return " ".join(Path(word).name for word in _read(pid, "cmdline").split("\0")).strip()[:60]


def _read(pid: int, name: str) -> str:
    """Return the text of a file of a process, "" where this has ended."""
    with suppress(OSError):
        return (_PROC / str(pid) / name).read_text()
    return ""


def as_text(found: Sequence[Resident]) -> str:
    total = Resident("sum", sum(each.rss for each in found), sum(each.pss for each in found))
    rows = [[each.name, f"{each.rss:.0f}", f"{each.pss:.0f}"] for each in (*found, total)]
    return table(["process", "RSS, MB", "PSS, MB"], rows)


if __name__ == "__main__":
    sys.stdout.write(as_text([each for pid in sys.argv[1:] for each in resident(int(pid))]) + "\n")
