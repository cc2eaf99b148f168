"""Count all that was filled, as `manage.py run_stream` does: dashboards and searches have it by that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from benchmarks import stack
from benchmarks.fill import Filled
from portal.dynamo.store import Store
from portal.streams import shards
from proofs.portal_server import ROOT
from tickets.counting import merge, stored
from tickets.counting.stream_handler import Positions
from tickets.ticket.stored import TICKETS


def catch_up(tenants: Sequence[Filled]) -> None:
    """Index and count all that was filled, and move it out of RECENT, so that every tenant's counts lie in the same
    items. Raises BenchmarkError."""
    command = [sys.executable, "manage.py", "run_stream", "--once"]
    status = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
    if status:
        raise stack.BenchmarkError(f"The stream worker ended with status {status}.")
    position = Positions(shards.arn(TICKETS))
    for tenant in tenants:
        store = Store("worker", tenant.tenant_id)
        while (recent := stored.recent(store)).counts:
            merge.merge(store, recent, position=position)
