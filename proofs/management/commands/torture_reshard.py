"""`manage.py torture_reshard`: tries to lose, double or hide tickets by resharding, and says whether it succeeded."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number, whole_number
from proofs.sharding import reshard_torture
from proofs.sharding.reshard_torture import ReshardPlan


class Command(PortalCommand):
    help = (
        "Reshard a throw-away tenant from 1 to 16 partitions and back to 4 on the running engine, while writers change "
        "tickets, readers walk through lists and a poller counts, and kill whoever carries it out at any moment. In "
        "each walk every ticket that nobody changes must be met once, and no ticket twice; in the end lists hold what "
        "there is, everything is at its place, and a recount finds the dashboards exact. Waits for processes are "
        "shortened. Needs DEBUG=1 and a local engine; its poller takes the stream from others. "
        "Exit status: 0 nothing is wrong; 1 something is, or it failed."
    )
    again = "What it has made may be left behind, in a tenant whose name begins with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--tickets", type=whole_number(1), default=300, metavar="N", help="that nobody changes (%(default)s)"
        )
        parser.add_argument("--writers", type=whole_number(1), default=2, metavar="W", help="at a time (%(default)s)")
        parser.add_argument("--readers", type=whole_number(1), default=2, metavar="R", help="at a time (%(default)s)")
        parser.add_argument("--kills", type=whole_number(0), default=5, metavar="K", help="of movers (%(default)s)")
        parser.add_argument(
            "--rate",
            type=number(0.1, 100_000, "a number of tickets from 0.1 to 100,000"),
            default=100.0,
            metavar="TICKETS",
            help="to move in a second, at most (%(default)g)",
        )
        parser.add_argument("--seed", type=int, metavar="S", help="printed, and a new one each time")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures for machines")

    def work(self, options: dict[str, Any]) -> None:
        seed = options["seed"] if options["seed"] is not None else random.SystemRandom().randrange(10**9)
        named = {name: options[name] for name in ("writers", "readers", "kills", "rate")}
        self.stdout.write(f"Seed {seed}.")
        began = time.monotonic()
        with reshard_torture.torture(ReshardPlan(seed=seed, quiet=options["tickets"], **named)) as run:
            with Progress(self, "Opening tickets", options["tickets"]) as progress:
                reshard_torture.prepare(run, progress.advance)
            with Progress(self, "Resharding", None) as progress:
                reshard_torture.reshard(run, progress.label)
                progress.label("counting")
                reshard_torture.settle(run)
                found = reshard_torture.figures(run) | {"seconds": round(time.monotonic() - began, 1)}
        if options["json"]:
            options["json"].write_text(json.dumps(found, indent=1))
        self.stdout.write(
            f"{found['tickets']:,} tickets, {found['events']:,} changes, {sum(found['moved']):,} moves; "
            f"{len(found['killed_at'])} kills, while {', '.join(found['killed_at']) or 'nothing'}; "
            f"{found['walks']:,} walks over {found['pages']:,} pages, {found['seconds']:g} s."
        )
        if broken := reshard_torture.is_broken(found):
            for name in broken:
                self.stdout.write(f"{name}: {found[name]}")
            raise CommandError(f"Something is wrong: {', '.join(broken)}. Keep the seed.")
        self.stdout.write("0 lost, 0 doubled, 0 failed reads, dashboards exact.")
