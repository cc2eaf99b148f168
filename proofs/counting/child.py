"""Be one of the processes of a torture of the stream's workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


def main(role: str, specification: str) -> None:
    """Work in this role, as the specification, in JSON, has it."""
    from proofs.counting import load, redelivery, repairs, resharding

    roles: dict[str, Callable[..., None]] = {
        "writer": load.run,
        "poller": redelivery.run,
        "zombie": redelivery.run_zombie,
        "repairs": repairs.run,
    }
    how = json.loads(specification)
    if presented := how.pop("presented"):
        resharding.SplitStream(Path(presented["path"]), presented["root"]).install()
    roles[role](**how)
