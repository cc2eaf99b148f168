"""Fork the processes of a torture from a server that has loaded what they need, and keep a journal for each.

That server imports this module first, which sets Django up for all of them.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import django
from django.apps import apps

if not apps.ready:  # a page that lists all commands loads this too, and setting up again would take its log away
    django.setup()


class Journal:
    """Write a file of JSON lines. Each line is one write, so that a process that is killed leaves no half of one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **what: Any) -> None:
        os.write(self._file, json.dumps(what, separators=(",", ":")).encode() + b"\n")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read what a process has written to its journal so far."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return
    for line in text.splitlines():
        yield json.loads(line)


Work = Callable[..., None]  # of a journal, a seed, and what is its own


class Process:
    """A running process in a session of its own, which ends with its parent. Its output goes to a file.

    The first of a parent says by `loads` which modules all of them find loaded, and has its environment.
    """

    def __init__(
        self, role: str, work: Work, journal: Path, seed: int, how: Mapping[str, Any], *, loads: Sequence[str] = ()
    ) -> None:
        self.role, self.work, self.journal, self.how = role, work, journal, how
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, work.__module__, *loads])
        self._process: BaseProcess = context.Process(target=_begin, args=(work, journal, seed, how), daemon=True)
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
        self._process.kill()
        self._process.join()


def asked_to_stop() -> list[Any]:
    """Return a list that is empty until this process gets SIGTERM."""
    stopped: list[Any] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    return stopped


def repeat(turn: Callable[[random.Random], object], seed: int, *, pause: float = 0.0) -> None:
    """Take turns until this process gets SIGTERM, each `pause` seconds after the one before began, or later."""
    rng, stopped = random.Random(seed), asked_to_stop()  # noqa: S311  # it has to be repeatable
    while not stopped:
        began = time.monotonic()
        turn(rng)
        time.sleep(max(0.0, began + pause - time.monotonic()))


def _begin(work: Work, journal: Path, seed: int, how: Mapping[str, Any]) -> None:
    gc.freeze()  # else collections would look through all that was loaded, and so copy it
    os.setsid()  # a Ctrl-C in the terminal is its parent's
    with journal.with_suffix(".log").open("ab") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(Journal(journal), seed, **how)


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
