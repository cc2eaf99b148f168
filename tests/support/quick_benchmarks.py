"""`python -m benchmarks` with the tests' engine in the place of ministack's own server, which `tests/engines` tries,
and one web server with one worker, which counts and then is measured."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks import stack
from portal.engines.engine_process import ENGINES, Ministack
from proofs import portal_server
from tests.engine_plugin import QuickMinistack

if __name__ == "__main__":
    serving, servers = portal_server.serving, list[portal_server.Server]()

    @contextmanager
    def serving_once(log: Path, **options: Any) -> Iterator[portal_server.Server]:
        if not servers:
            servers.append(running.enter_context(serving(log, **options)))
        yield servers[0]

    ENGINES[Ministack.kind] = QuickMinistack
    stack.WORKERS, portal_server.serving = 1, serving_once
    with ExitStack() as running:
        runpy.run_module("benchmarks", run_name="__main__")
