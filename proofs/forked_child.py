"""Fork the processes of a torture from a server that has loaded what they need: to start one takes no second.

That server imports this module once, which sets Django up for all of them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import django

django.setup()

WORK: Final = ("proofs.counting.load", "proofs.counting.redelivery", "proofs.counting.repairs")


class ForkedChild:
    """A running process in a session of its own, which ends with its parent. What it prints goes to a file.

    The first of a process says by `loads` which modules all of them find loaded, and has its environment.
    """

    def __init__(
        self, name: str, work: Callable[..., None], *arguments: str, output: Path, loads: Sequence[str] = WORK
    ) -> None:
        self.name = name
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, *loads])
        self._process: BaseProcess = context.Process(target=_begin, args=(work, arguments, output), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def poll(self) -> int | None:
        """Return the exit status, negative for the signal that ended it; None while it runs."""
        return self._process.exitcode

    def stop(self, *, seconds: float) -> None:
        """Send SIGTERM and wait; kill it after so many seconds."""
        if self.poll() is None:
            self._process.terminate()
            self._process.join(seconds)
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.join()


def _begin(work: Callable[..., None], arguments: Sequence[str], output: Path) -> None:
    os.setsid()  # a Ctrl-C in the terminal is its parent's
    with output.open("ab") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(*arguments)


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
