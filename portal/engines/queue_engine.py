"""Serve queues beside an engine that has none: DynamoDB Local, or one that was given.

It is a second ministack that serves Amazon SQS alone. Its files lie in a folder of the engine that it stands beside,
and its address is found there as the engine's own is. Django is not imported here.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from portal.engines.endpoint import has_queues
from portal.engines.engine_process import Ministack, running_engine

FOLDER: Final = "queues"  # under that of the engine that it stands beside
ENDPOINT_VARIABLE: Final = "SQS_ENDPOINT_URL"


class QueueEngine(Ministack):
    """A ministack that has queues and nothing else. Messages that it loses are sent again from the outbox."""

    kind = "ministack for queues"
    services = "sqs"
    state_file = "sqs.json"

    def answers(self) -> bool:
        return has_queues(self.port)


def find(beside: Path, environ: MutableMapping[str, str]) -> bool:
    """Name in ``environ`` the queues that run beside the engine in this folder; False where none do."""
    address = running_engine(beside / FOLDER)
    if address:
        environ.setdefault(ENDPOINT_VARIABLE, address)
    return bool(address)


def is_needed(endpoint_url: str, environ: MutableMapping[str, str]) -> bool:
    """Tell whether an engine on this machine has no queues of its own, and no other place for them is named."""
    port = urlsplit(endpoint_url).port
    return ENDPOINT_VARIABLE not in environ and port is not None and not has_queues(port)


def beside(
    folder: Path, *, log_path: Path, environ: MutableMapping[str, str], report: Callable[[str], object]
) -> QueueEngine:
    """Start queues beside the engine in this folder and name them in ``environ``. Raises EngineError."""
    engine = QueueEngine(state_dir=folder / FOLDER, log_path=log_path, report=report).start()
    environ[ENDPOINT_VARIABLE] = engine.endpoint_url
    return engine
