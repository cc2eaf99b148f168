"""What a process notes of the work that a test makes it do, told when the block ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import LazySettings

from portal import clock
from portal.noise import noise_board, noise_teller
from portal.noise.noise_board import NoiseBoard
from portal.schema.registry import Role


@contextmanager
def telling(settings: LazySettings, kind: str = "web", role: Role = "platform") -> Iterator[Callable[[], NoiseBoard]]:
    """Take notes of what is done inside, all of it in one minute; call what is returned afterwards for the board."""
    settings.NOISE_NOTED = True
    real, now = noise_teller._notes._clock, clock.now().timestamp()
    noise_teller._notes._clock = lambda: now
    noise_teller.start(kind, role, beside=False)
    try:
        yield lambda: noise_board.read(minutes=5, now=clock.now() + timedelta(minutes=1))
    finally:
        noise_teller.stop()
        noise_teller._notes._clock = real
        settings.NOISE_NOTED = False
