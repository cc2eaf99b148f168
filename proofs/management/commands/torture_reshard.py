"""`manage.py torture_reshard`: tries to lose, double or hide tickets by resharding, and says whether it succeeded."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number, whole_number
from proofs import torture_options
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
        parser.add_argument(
            "--pause",
            type=number(0, 60, "a number of seconds from 0 to 60"),
            default=0.0,
            metavar="SECONDS",
            help="of a writer after each change and of a reader after each page (%(default)g)",
        )
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        named = {name: options[name] for name in ("writers", "readers", "kills", "rate", "pause")}
        began = time.monotonic()
        with reshard_torture.torture(ReshardPlan(seed=seed, quiet=options["tickets"], **named)) as run:
            with Progress(self, "Opening tickets", options["tickets"]) as progress:
                reshard_torture.prepare(run, progress.advance)
            with Progress(self, "Resharding", None) as progress:
                reshard_torture.reshard(run, progress.label)
                progress.label("counting")
                reshard_torture.settle(run)
                found = reshard_torture.figures(run) | {"seconds": round(time.monotonic() - began, 1)}
        torture_options.write_figures(found, options)
        self.stdout.write(
            f"{found['tickets']:,} tickets, {found['events']:,} changes, {sum(found['moved']):,} moves; "
            f"{len(found['killed_at'])} kills, while {', '.join(found['killed_at']) or 'nothing'}; "
            f"{found['walks']:,} walks over {found['pages']:,} pages, {found['seconds']:g} s."
        )
        torture_options.refuse_broken(found, reshard_torture.is_broken(found), self.stdout)
        self.stdout.write("0 lost, 0 doubled, 0 failed reads, dashboards exact.")
