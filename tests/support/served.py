"""The portal behind a real socket, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from waitress import wasyncore
from waitress.server import create_server

from portal.wsgi import application
from tests.support.waiting import PATIENCE


@contextmanager
def served(name: str = "127.0.0.1", *, threads: int = 2) -> Iterator[str]:
    """Serve on loopback while `with` lasts, at the address that is yielded: under this name of loopback."""
    server: Any = create_server(application, host="127.0.0.1", port=0, threads=threads, asyncore_use_poll=True)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://{name}:{server.effective_port}"
    finally:
        # By its own thread: it waits until the last connection is closed, and clients keep theirs open.
        # A pull of its own may have woken it already; then it has closed the trigger before this one writes to it.
        with suppress(OSError):
            server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
        thread.join(PATIENCE)
        server.task_dispatcher.shutdown()
