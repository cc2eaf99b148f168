"""`python -m benchmarks` with the tests' engine in the place of ministack's own server, which `tests/engines` tries."""

from __future__ import annotations

import runpy

from portal.engines.engine_process import ENGINES, Ministack
from tests.engine_plugin import QuickMinistack

if __name__ == "__main__":
    ENGINES[Ministack.kind] = QuickMinistack
    runpy.run_module("benchmarks", run_name="__main__")
