"""`python -m benchmarks` with the tests' engine in the place of ministack's own server, which `tests/engines` tries,
and one worker of the web server."""

from __future__ import annotations

import runpy

from benchmarks import stack
from portal.engines.engine_process import ENGINES, Ministack
from tests.engine_plugin import QuickMinistack

if __name__ == "__main__":
    ENGINES[Ministack.kind] = QuickMinistack
    stack.WORKERS = 1
    runpy.run_module("benchmarks", run_name="__main__")
