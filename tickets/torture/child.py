"""What runs in the processes of a torture: `python -m tickets.torture.child ROLE SPECIFICATION`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import django


def main(role: str, specification: str) -> None:
    django.setup()
    from tickets.torture import hostile, writer  # its models want a Django that is set up

    roles: dict[str, Callable[..., None]] = {"writer": writer.run, "poller": hostile.run, "zombie": hostile.run_zombie}
    roles[role](**json.loads(specification))


if __name__ == "__main__":
    main(*sys.argv[1:])
