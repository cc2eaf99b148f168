"""Work until somebody asks for an end: note the signals, and say now and then in a line of JSON what was done."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, ClassVar, Final

from django.core.management.base import CommandParser

from portal import clock
from portal.management.command import PortalCommand, seconds
from portal.noise import noise_teller
from portal.schema.registry import Role

METRICS_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.2  # between two looks at whether to end


class WorkerCommand(PortalCommand):
    """A command that runs until Ctrl-C or SIGTERM. `signals` is how many of them have come."""

    signals = 0
    started = said_at = 0.0  # by the monotonic clock
    metrics_seconds = METRICS_SECONDS
    # What such a process is called among those that tell who is noisy, and as what it writes that; none tells nothing.
    noise: ClassVar[tuple[str, Role] | None] = None

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--metrics",
            type=seconds,
            default=METRICS_SECONDS,
            metavar="SECONDS",
            help="between two lines of metrics (%(default)g); 0 for none at all",
        )

    @contextmanager
    def working(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Note the signals, instead of ending by them, while the context lasts."""
        self.signals, self.metrics_seconds = 0, options.get("metrics", 0.0)
        self.started = self.said_at = time.monotonic()
        before = {number: signal.signal(number, self._note_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        if self.noise:
            noise_teller.start(*self.noise, gauges=self.gauges)
        try:
            yield
        finally:
            if self.noise:
                noise_teller.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def gauges(self) -> Mapping[str, float]:
        """Return what is measured each minute, in seconds, by the name of a metric."""
        return {}

    def wait_for_signal(self) -> None:
        """Return when somebody has asked for an end."""
        while not self.signals:
            time.sleep(LOOK_SECONDS)

    @property
    def must_speak(self) -> bool:
        """Tell whether the next line of metrics is due."""
        return time.monotonic() - self.said_at >= self.metrics_seconds

    def say(self, report: Mapping[str, Any]) -> None:
        """Print what was done since the start as a line of JSON, unless no metrics are wanted."""
        if self.metrics_seconds:
            self.said_at = time.monotonic()
            line = {"at": clock.stamp(), "seconds": round(self.said_at - self.started, 1), **report}
            with suppress(OSError):  # whoever read it is gone: that must not keep the worker from ending well
                self.stdout.write(json.dumps(line))
                self.stdout.flush()

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
