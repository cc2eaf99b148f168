"""Serve the portal to a torture.

Where it is told to, it dies right before the next transaction, or right behind it, before anybody hears of it.
"""

from __future__ import annotations

import json
import os
import signal
from types import FrameType
from typing import Any


def main(specification: str) -> None:
    """Serve as the specification, in JSON, has it, until it is killed."""
    from django.core.wsgi import get_wsgi_application
    from waitress import create_server

    from api.door import idempotency
    from portal.dynamo.repository import TenantRepository
    from proofs.counting.journal import Journal

    how: dict[str, Any] = json.loads(specification)
    idempotency.CLAIM_SECONDS = how["claim_seconds"]  # type: ignore[misc]  # a dead process is waited for less long
    told, doomed, write = Journal(how["journal"]), set[int](), TenantRepository.transact

    def transact(repository: TenantRepository, *args: Any, **kwargs: Any) -> None:
        if signal.SIGUSR1 in doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        write(repository, *args, **kwargs)
        if signal.SIGUSR2 in doomed:
            os.kill(os.getpid(), signal.SIGKILL)

    def doom(number: int, frame: FrameType | None) -> None:
        doomed.add(number)

    TenantRepository.transact = transact  # type: ignore[assignment, method-assign]
    signal.signal(signal.SIGUSR1, doom)
    signal.signal(signal.SIGUSR2, doom)
    server = create_server(get_wsgi_application(), host="127.0.0.1", port=0, threads=how["threads"])
    told.write(port=server.effective_port)
    server.run()
