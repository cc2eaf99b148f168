"""Waiting for what has to come: the limit says that it does not, and measures nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 240.0  # seconds: a busy machine is slow, and a test is not red by load


def wait_until(holds: Callable[[], object], *, working: Callable[[], object] | None = None) -> None:
    """Return soon after `holds()` is true; between two looks `working()` is called.

    Without work, what does not come at once is looked for less and less often: to look costs those who are waited for.
    """
    deadline, pause = time.monotonic() + PATIENCE, 0.02
    while not holds():
        assert time.monotonic() < deadline, f"it did not come within {PATIENCE:.0f} seconds"
        if working:
            working()
        else:
            pause = min(0.3, pause * 1.2)
        time.sleep(pause)
