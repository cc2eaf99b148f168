"""`manage.py torture_move`: tries to lose or double something by moving a desk, and says whether it succeeded."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number, placement, whole_number
from proofs import torture_options
from proofs.moving import move_figures, move_torture
from proofs.moving.move_torture import MovePlan


class Command(PortalCommand):
    help = (
        "Move a throw-away desk to tables of its own on the running engine, while writers open, change and comment on "
        "tickets and readers look at them, and kill whoever carries it out at step after step. In the end everything "
        "that was acknowledged must be at the new place once, no read may have failed, both copies must be equal, and "
        "a recount must find the dashboards exact. Says how long the longest write took. Waits for processes are "
        "shortened. Needs DEBUG=1 and a local engine; its worker takes the streams from others. "
        "Exit status: 0 nothing is wrong; 1 something is, or it failed."
    )
    again = "What it has made may be left behind, in a tenant whose name begins with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tickets", type=whole_number(1), default=300, metavar="N", help="(%(default)s)")
        parser.add_argument(
            "--to", type=placement, nargs="+", default=["bridge"], metavar="PLACE",
            help="one after the other: bridge, pool, silo/NAME (bridge)",
        )  # fmt: skip
        parser.add_argument("--writers", type=whole_number(1), default=2, metavar="W", help="at a time (%(default)s)")
        parser.add_argument("--readers", type=whole_number(1), default=1, metavar="R", help="at a time (%(default)s)")
        parser.add_argument(
            "--kills", type=whole_number(0), default=5, metavar="K", help="of movers, in each move (%(default)s)"
        )
        parser.add_argument(
            "--writes", type=number(0.1, 1000, "a number of writes from 0.1 to 1000"), default=20.0, metavar="WRITES",
            help="a second, of all writers together (%(default)g)",
        )  # fmt: skip
        parser.add_argument(
            "--reads", type=number(0.1, 1000, "a number of reads from 0.1 to 1000"), default=20.0, metavar="READS",
            help="a second, of all readers together: as many of lists as of tickets (%(default)g)",
        )  # fmt: skip
        parser.add_argument(
            "--rate", type=number(0.1, 100_000, "a number of tickets from 0.1 to 100,000"), default=200.0,
            metavar="TICKETS", help="to copy in a second, at most (%(default)g)",
        )  # fmt: skip
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        named = {name: options[name] for name in ("tickets", "writers", "readers", "kills", "writes", "reads", "rate")}
        began = time.monotonic()
        with move_torture.torture(MovePlan(seed=seed, to=tuple(map(str, options["to"])), **named)) as run:
            with Progress(self, "Opening tickets", options["tickets"]) as progress:
                move_torture.prepare(run, progress.advance)
            with Progress(self, "Moving", None) as progress:
                move_torture.move(run, progress.label)
                progress.label("looking for what was written")
                move_torture.settle(run)
                found = move_figures.figures(run) | {"seconds": round(time.monotonic() - began, 1)}
        torture_options.write_figures(found, options)
        self.stdout.write(
            f"{found['tickets']:,} tickets, {found['writes']:,} writes, {found['reads']:,} reads; "
            f"{len(found['killed_at'])} kills, while {', '.join(found['killed_at']) or 'nothing'}; "
            f"{found['seconds']:g} s."
        )
        for leg in found["legs"]:
            self.stdout.write(
                f"{leg['left']} to {leg['to']} in {leg['seconds']:g} s: {leg['changes']:,} later changes; "
                f"{leg['holds']} holds, the last of {leg['hold_trips']} round trips and {leg['held_seconds']:.2f} s. "
                f"{leg['writes_held']} of {leg['writes']:,} writes were held, one for {leg['longest_hold']:.2f} s, "
                f"{leg['ratio']:g} times what a write takes; the longest write took {leg['longest_write']:.2f} s."
            )
        torture_options.refuse_broken(found, move_figures.is_broken(found), self.stdout)
        self.stdout.write("0 lost, 0 doubled, 0 failed reads, both copies equal, dashboards exact.")
