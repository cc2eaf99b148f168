"""Run one of the processes of a torture: `python -m proofs.counting.child ROLE SPECIFICATION`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import django


def main(role: str, specification: str) -> None:
    django.setup()
    from proofs.counting import load, redelivery, repairs, resharding  # its models want a Django that is set up

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


if __name__ == "__main__":
    main(*sys.argv[1:])
