"""Waiting for what has to come: the limit says that it does not, and measures nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 240.0  # seconds: a busy machine is slow, and a test is not red by load


def wait_until(holds: Callable[[], object], *, working: Callable[[], object] = lambda: None) -> None:
    """Return as soon as `holds()` is true; between two looks `working()` is called."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"it did not come within {PATIENCE:.0f} seconds"
        working()
        time.sleep(0.02)
