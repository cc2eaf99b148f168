"""Read letters in a child process, so that one that takes too long or kills its reader harms nobody else.

Frames of a length and a letter go to the child, frames of a length and a pickled answer come back. Django is not
imported there, so a child starts within a fraction of a second. It is kept for the next letter, and ends with its
parent, whose end closes the pipe.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from django.utils.translation import gettext_noop

from portal.mailing import letters
from portal.mailing.letters import Letter, Unreadable

SLOW: Final = gettext_noop("Reading the letter took longer than %(count)s seconds.")
UNREADABLE: Final = gettext_noop("The letter has a form that could not be read (%(error)s).")
SECONDS: Final = 20.0  # that reading a letter may take
_IDLE: Final = 2  # children that are kept
_MEMORY: Final = 2 * 1024**3  # bytes of address space
_LENGTH: Final = 8
_ROOT: Final = str(Path(__file__).resolve().parent.parent.parent)
_CHILD: Final = f"import sys; sys.path.insert(0, {_ROOT!r}); from portal.mailing import letter_process as m; m.main()"

_idle: list[_Child] = []
_lock = threading.Lock()


def read(raw: bytes, *, seconds: float = SECONDS) -> Letter:
    """Read a letter within so many seconds. Raises Unreadable, with a sentence for people."""
    if len(raw) > letters.SIZE_LIMIT:
        raise Unreadable(gettext_noop("The letter is larger than 25 MB."))
    child = _take()
    try:
        answer = child.ask(raw, seconds)
    except TimeoutError:
        child.kill()
        raise Unreadable(SLOW % {"count": f"{seconds:g}"}) from None
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        child.kill()
        raise Unreadable(gettext_noop("Reading the letter ended the process that read it.")) from None
    except BaseException:
        child.kill()
        raise
    with _lock:
        is_kept = len(_idle) < _IDLE
        if is_kept:
            _idle.append(child)
    if not is_kept:
        child.kill()
    if isinstance(answer, Letter):
        return answer
    raise Unreadable(str(answer))


def _take() -> _Child:
    with _lock:
        while _idle:
            child = _idle.pop()
            if child.is_alive():
                return child
    return _Child()


class _Child:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, raw: bytes, seconds: float) -> Any:
        """Return what the child answers. Raises TimeoutError, EOFError and OSError."""
        until = time.monotonic() + seconds
        sink, source = self._process.stdin, self._process.stdout
        if sink is None or source is None:
            raise EOFError
        sink.write(len(raw).to_bytes(_LENGTH, "big") + raw)
        sink.flush()
        length = int.from_bytes(self._receive(source, _LENGTH, until), "big")
        return pickle.loads(self._receive(source, length, until))  # noqa: S301  # its own child's

    def _receive(self, source: IO[bytes], size: int, until: float) -> bytes:
        parts, left = [], size
        while left:
            seconds = until - time.monotonic()
            if seconds <= 0 or not select.select([source], [], [], seconds)[0]:
                raise TimeoutError
            part = os.read(source.fileno(), min(left, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def kill(self) -> None:
        self._process.kill()
        with suppress(OSError):
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    pipe.close()
        self._process.wait()


def _forget() -> None:
    """Leave the parent's children to it."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget)


def main() -> None:
    """Answer until the pipe closes."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no answer
    while len(head := source.read(_LENGTH)) == _LENGTH:
        raw = source.read(int.from_bytes(head, "big"))
        answer: Any
        try:
            answer = letters.read(raw)
        except Unreadable as error:
            answer = str(error)
        except Exception as error:  # a shape that nobody expected: the letter is kept, with this sentence
            answer = UNREADABLE % {"error": type(error).__name__}
        found = pickle.dumps(answer)
        sink.write(len(found).to_bytes(_LENGTH, "big") + found)
        sink.flush()
