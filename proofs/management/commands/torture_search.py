"""`manage.py torture_search`: tries to make the search lose something, and says whether it succeeded."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import whole_number
from proofs import torture_options
from proofs.search import search_torture
from proofs.search.search_torture import SearchTorturePlan


class Command(PortalCommand):
    help = (
        "Write tickets and comments in a throw-away tenant of the running engine while two workers index the same "
        "stream, in batches of any size and many of them twice, merge all the time, and are killed at any moment. "
        "Somebody searches meanwhile: what was found once must be found ever after. In the end the index is held "
        "against the stored texts. Needs DEBUG=1 and a local engine. Exit status: 0 nothing is wrong; 1 something "
        "is, or it failed."
    )
    again = "What it has made may be left behind, in a tenant whose name begins with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tickets", type=whole_number(1), default=1000, metavar="N", help="to write (%(default)s)")
        parser.add_argument("--kills", type=whole_number(0), default=30, metavar="K", help="of workers (%(default)s)")
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        began = time.monotonic()
        plan = SearchTorturePlan(seed=seed, tickets=options["tickets"], kills=options["kills"])
        with search_torture.torture(plan) as run:
            with Progress(self, "Writing", plan.tickets) as progress:
                search_torture.write(run, progress.advance)
            search_torture.drain(run)
            found = search_torture.figures(run) | {"seconds": round(time.monotonic() - began, 1)}
        torture_options.write_figures(found, options)
        self.stdout.write(
            f"{plan.tickets:,} tickets, {found['indexed']:,} records indexed, {found['repeated']:,} batches repeated, "
            f"{found['merges']:,} merges, {found['kills']} kills, {found['searches']:,} searches, "
            f"{found['seconds']:g} s."
        )
        torture_options.refuse_broken(found, search_torture.is_broken(found), self.stdout)
        self.stdout.write("Everything is found, and was found at every moment since it first was.")
