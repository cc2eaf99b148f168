"""`manage.py record_proof`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tickets.isolation_runs import platform_proofs


class Command(PortalCommand):
    costs = cost(write="isolation proof", writes=10)
    help = (
        "Keep the result of a proof of isolation that was made elsewhere, such as by a release's checks, so that the "
        "owners' pages show it. The same report again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("report", type=Path, metavar="FILE", help="what prove_isolation --json wrote")

    def work(self, options: dict[str, Any]) -> None:
        try:
            found = json.loads(options["report"].read_text(encoding="utf-8"))
        except OSError as error:
            raise CommandError(f"{error.filename} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise CommandError("This file is no JSON.") from error
        item = platform_proofs.record(found)
        self.stdout.write(
            f"Kept: {item.verdict} {item.noticed} of {item.broken} broken layers noticed, version {item.release}."
        )
