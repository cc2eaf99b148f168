"""Starts one in-memory engine per test process, before django.setup().

pytest-django sets Django up before any conftest.py is read, so this is a plugin of its own, loaded
by `-p tests.engine_plugin`. Under pytest-xdist each worker starts its own engine and the controller,
which runs no test, gets an address where nothing answers.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from portal.engines.endpoint import point_at
from portal.engines.engine_process import Engine, EngineError, Ministack

NOWHERE = "http://127.0.0.1:9"

_engine = pytest.StashKey[Engine]()
_templates = pytest.StashKey[str]()

# The tests start hundreds of processes: what those load is compiled once, whatever this machine is used to.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# An engine that lives for a few seconds only loses by a thorough compiler and a collector with many threads.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


class QuickMinistack(Ministack):
    """The embedded engine behind a shorter way in: see tests/support/quick_engine.py."""

    def _command(self) -> Sequence[str | Path]:
        return [sys.executable, "-P", Path(__file__).parent / "support" / "quick_engine.py"]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # Of this run alone: what compiles templates may have changed since the last one.
        folder = early_config.stash[_templates] = tempfile.mkdtemp(prefix="templates-")
        os.environ["TEMPLATE_CODE"] = folder
    options = early_config.known_args_namespace
    distributed = getattr(options, "numprocesses", None) or getattr(options, "tx", None)
    if distributed and "PYTEST_XDIST_WORKER" not in os.environ:
        point_at(NOWHERE, os.environ)
        return
    # Modules and tests are no garbage: the collector would look through all of them every few imports or requests.
    gc.disable()
    try:
        engine = early_config.stash[_engine] = QuickMinistack().start()
    except EngineError as error:
        raise pytest.UsageError(str(error)) from None
    point_at(engine.endpoint_url, os.environ)


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.freeze()  # pytest collects five times at its end, and nothing comes of it but seconds
    if engine := config.stash.get(_engine, None):
        engine.stop()
    if folder := config.stash.get(_templates, ""):
        shutil.rmtree(folder, ignore_errors=True)
