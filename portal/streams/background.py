"""Work beside a stream, in a thread of its own that goes on whatever happens in it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from portal.errors import Unavailable

AWAY_SECONDS: Final = 2.0  # after which it is tried again when the database was away


@contextmanager
def working(
    turn: Callable[[Callable[[], bool]], object], *, pause: Callable[[], float], name: str, log: logging.Logger
) -> Iterator[None]:
    """Call `turn` again and again while the context lasts, `pause()` seconds apart.

    `turn` is handed a function that says whether to go on, for work that takes long. That the database is away is
    logged once, under the `name` of the work; any other error with its traceback.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_run, args=(turn, pause, name, log, stop), name=name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _run(
    turn: Callable[[Callable[[], bool]], object],
    pause: Callable[[], float],
    name: str,
    log: logging.Logger,
    stop: threading.Event,
) -> None:
    away = False
    while not stop.wait(AWAY_SECONDS if away else pause()):
        try:
            turn(lambda: not stop.is_set())
            away = False
        except Unavailable as error:
            if not away:
                log.warning("The %s waits, it is tried again: %s", name, error.message)
            away = True
        except Exception:  # the stream goes on whatever happens here, and so does this thread
            log.exception("The %s failed, it is tried again.", name)
            away = True
