"""Run what a measurement needs: an engine and the settings of gunicorn. The engine ends with its `with`."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from portal.engines.endpoint import LOOPBACK, point_at
from portal.engines.engine_process import Engine, start_engine
from proofs.portal_server import with_descendants

MEMORY: Final = Path("/dev/shm")  # noqa: S108  # a directory of our own is made in it
WORKERS, THREADS = 2, 8
SMALLEST: Final = 310  # tickets: fewer fill no second page of a list
MOST_AT_ONCE: Final = 8  # requests: each sequence has a group of tickets of its own
KEPT: Final = Path(__file__).with_name("release.json")
# Production's settings, but for what plain HTTP on loopback needs. A file .env does not override them.
SETTINGS: Final = {
    "DJANGO_SETTINGS_MODULE": "portal.settings",
    "DEBUG": "0",
    "API_KEY_ENVIRONMENT": "bench",
    "SECRET_KEY": "measurements-only-0123456789-abcdefghijklmnopqrstuvwxyz",
    "ALLOWED_HOSTS": LOOPBACK,
    "SECURE_SSL_REDIRECT": "0",
    "SECURE_HSTS_SECONDS": "0",
    "DYNAMODB_TABLE_PREFIX": "Pooldesk.Bench",
    "TENANT_ROLE_ARN": "",
    "WEB_THREADS": str(THREADS),
    "TENANT_RATES": "off",
    "GUEST_RATE": "0",  # all requests come from one address
    "PORTAL_BASE_URL": f"http://{LOOPBACK}",
    "HEAVY_AT_A_TIME": str(THREADS),  # all requests are one desk's
    "CLOUDWATCH_METRICS": "off",  # stdout has figures
    "LOG_LEVEL": "WARNING",
}
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class BenchmarkError(Exception):
    """Nothing can be measured. The message says why."""


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], object]]:
    """Show a bar on a terminal while `with` lasts; the yielded function takes the number of steps done."""
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda steps: bar.advance(task, steps)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align it for a terminal, and Markdown all the same."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    texts = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *texts[1:]])


@contextlib.contextmanager
def engine(kind: str) -> Iterator[Engine]:
    """Give an empty engine. The environment points at it, with the settings that the portal is measured with.

    DynamoDB Local waits for the disk at each write. So its data is in memory, where the system has a directory for
    that: the writes that we measure would be the disk's.
    """
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix=f"pooldesk-{kind}-", dir=where, ignore_cleanup_errors=True) as scratch,
        start_engine(kind, state_dir=Path(scratch), report=say) as running,
    ):
        point_at(running.endpoint_url, os.environ)
        os.environ.update(SETTINGS)
        yield running


# --- the machine: figures taken on a busy one are worth little. Processor time needs /proc ---


def description() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}, {platform.system()}"
    )


def load() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def cpu_seconds(pid: int) -> float:
    """Return processor time of a process and its living descendants. Steps of 10 ms, so sum over many requests."""
    ticks = 0
    for each in with_descendants(pid):
        # A process may end between its listing and its reading.
        with contextlib.suppress(OSError):
            # The name, in parentheses, may hold spaces; behind it: state, parent, group, ..., utime, stime.
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS
