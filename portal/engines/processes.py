"""Child processes that end when and how their parent chooses and never outlive it, and locks.

Django is not imported here: the test suite starts its engine before ``django.setup()``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

# The shell becomes the command (exec) and leaves behind a reader of a pipe whose other end only the
# parent holds. When the parent dies, however it dies, the reader sees the end of the pipe and sends
# SIGTERM to the process group, so that an engine still saves its state. PR_SET_PDEATHSIG set by a
# preexec_fn would be shorter, but that code runs between fork and exec, where a lock held by another
# thread stays locked for ever; the signal comes when the *thread* that forked ends; and only Linux
# has it. The group's id cannot be reused while the reader is in it, so no stranger gets the signal.
PARENT_WATCH = 'exec {fd}<&0 </dev/null; {{ read -r _ <&{fd} || kill -TERM 0; }} & exec "$@" {fd}<&-'

SLOW_SECONDS = 2


class Child:
    """A running child process in a session of its own.

    A Ctrl-C in the terminal goes to the foreground process group; a child outside it sees only what
    ``stop`` sends, so several children end in the order their parent chooses. ``output`` None means
    the parent's own stdout and stderr. stdin is empty.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        output: IO[bytes] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        watched = next(fd for fd in range(3, 10) if fd not in pass_fds)  # a shell's redirections have one digit
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", PARENT_WATCH.format(fd=watched), "sh", *map(str, command)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            env=env,
            pass_fds=pass_fds,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def stop(self, *, seconds: float, on_slow: Callable[[], object] = lambda: None) -> bool:
        """Send SIGTERM and wait; tell ``on_slow`` after 2 s. False if it had to be killed after ``seconds``."""
        if self.poll() is None:
            self._process.terminate()
        else:  # it ended by itself and may have left processes of its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGTERM)
        self._let_go()
        try:
            self._process.wait(min(SLOW_SECONDS, seconds))
        except subprocess.TimeoutExpired:
            on_slow()
            try:
                self._process.wait(max(0, seconds - SLOW_SECONDS))
            except subprocess.TimeoutExpired:
                self.kill()
                return False
        return True

    def kill(self) -> None:
        """End the child and all of its process group at once; nothing is saved."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._let_go()

    def _let_go(self) -> None:
        """Tell the reader that the child ends because we want it to."""
        pipe = self._process.stdin
        if pipe and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(b"\n")
            pipe.close()


def acquire_lock(path: Path) -> IO[str] | None:
    """Take the exclusive lock of this file; return None if another process holds it.

    Its holder may write a note into it for ``lock_note``. A child that inherits the file holds the
    lock too, until ``release_lock`` or the end of all of them.
    """
    lock = path.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    lock.truncate(0)
    return lock


def release_lock(lock: IO[str]) -> None:
    lock.truncate(0)
    fcntl.flock(lock, fcntl.LOCK_UN)  # closing alone would leave it to those who inherited it
    lock.close()


def lock_note(path: Path) -> str | None:
    """Return what the holder of the lock wrote into it, or None if nobody holds it."""
    note, held = inspect_lock(path)
    return note if held else None


def inspect_lock(path: Path) -> tuple[str, bool]:
    """Return the note in a lock file and whether anybody holds it; a note that nobody holds is a dead process's."""
    try:
        with path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return lock.read(), True
            return lock.read(), False
    except FileNotFoundError:
        return "", False
