"""What a process notes of the work that a test makes it do, told when the block ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import LazySettings

from portal import clock
from portal.load import measurement, noise_report, reporting
from portal.load.noise_report import LoadReport
from portal.schema.registry import Role


@contextmanager
def telling(settings: LazySettings, kind: str = "web", role: Role = "platform") -> Iterator[Callable[[], LoadReport]]:
    """Take notes of what is done inside, all of it in one minute; call what is returned afterwards for the board."""
    settings.NOISE_NOTED = True
    real, now = measurement._notes._clock, clock.now().timestamp()
    measurement._notes._clock = lambda: now
    reporting.start(kind, role, in_thread=False)
    try:
        yield lambda: noise_report.read(minutes=5, now=clock.now() + timedelta(minutes=1))
    finally:
        reporting.stop()
        measurement._notes._clock = real
        settings.NOISE_NOTED = False
