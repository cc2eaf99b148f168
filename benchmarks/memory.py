"""`python -m benchmarks.memory PID...`: the memory of these processes and of all that descend from them, and the sum.

RSS counts what processes share once for each of them. PSS counts it in equal parts, so it can be added up.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.stack import table
from proofs.portal_server import with_descendants

SHELL = 2  # MB of a process that only waits for another one; those are left out


class Resident(NamedTuple):
    """The memory of one process, in MB."""

    name: str
    rss: float
    pss: float


def resident(pid: int, name: str = "") -> list[Resident]:
    """Return the memory of a process and of its descendants. A process is called by its command line without `name`."""
    found = []
    for each in with_descendants(pid):
        with suppress(OSError):  # it may have ended
            sizes = dict(re.findall(r"^(Rss|Pss): +(\d+) kB", Path(f"/proc/{each}/smaps_rollup").read_text(), re.M))
            words = Path(f"/proc/{each}/cmdline").read_text().split("\0")
            command = " ".join(Path(word).name for word in words).strip()[:60]
            found.append(Resident(name or command, int(sizes.get("Rss", 0)) / 1024, int(sizes.get("Pss", 0)) / 1024))
    return [each for each in found if each.pss >= SHELL]


def as_text(found: Sequence[Resident], before: Sequence[Resident] = ()) -> str:
    """Return a table of processes and of their sum, and what the sum of each name was before."""
    rows = [[each.name, f"{each.rss:.0f}", f"{each.pss:.0f}", ""] for each in found]
    for name in dict.fromkeys(each.name for each in found):
        now, then = (sum(each.pss for each in some if each.name == name) for some in (found, before))
        if then:
            rows.append([f"all: {name}", "", f"{now:.0f}", f"{now / then:.2f}"])
    total = ["sum", f"{sum(each.rss for each in found):.0f}", f"{sum(each.pss for each in found):.0f}", ""]
    return table(["process", "RSS, MB", "PSS, MB", "PSS / before"], [*rows, total])


if __name__ == "__main__":
    sys.stdout.write(as_text([each for pid in sys.argv[1:] for each in resident(int(pid))]) + "\n")
