"""`manage.py weigh_search`: how large an index of a million tickets is, and what writing it sends to one partition."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import whole_number
from proofs import torture_options
from proofs.search import scale_trial

_MILLION: Final = 110_000_000  # bytes of the index of a million tickets, see docs/search.md


class Command(PortalCommand):
    help = (
        "Weigh the search index over a store in memory, with the product's own code: writes made-up tickets and their "
        "comments at a rate and merges as the worker does, and writes one segment as large as the index of a million "
        "tickets. Says the largest item and header, write units a change, and the most that comes to one partition in "
        "a second. Needs no engine. Exit status 1: an item above 16 KB, a header above 64 KB, or a partition that gets "
        "more than 1,000 write units in a second."
    )
    again = "Nothing is left behind."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--tickets", type=whole_number(1), default=20_000, metavar="N", help="to write (%(default)s)"
        )
        parser.add_argument(
            "--rate", type=whole_number(1), default=100, metavar="N", help="changes a second (%(default)s)"
        )
        parser.add_argument(
            "--bytes", type=whole_number(1), default=_MILLION, metavar="N", help="of the largest segment (%(default)s)"
        )
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        with Progress(self, "Writing tickets", options["tickets"]) as progress:
            grown = scale_trial.grow(options["tickets"], rate=options["rate"], seed=seed, advance=progress.advance)
        with Progress(self, "Writing a segment", options["bytes"]) as progress:
            largest = scale_trial.largest_segment(options["bytes"], seed=seed, advance=progress.advance)
        found = {"seed": seed, "grown": asdict(grown), "largest": asdict(largest)}
        torture_options.write_figures(found, options)
        self.stdout.write(
            f"{grown.tickets:,} tickets, {grown.changes:,} texts, {grown.postings:,} postings: {grown.segments} "
            f"segments of {grown.index_bytes:,} bytes, {grown.units_a_change:.2f} write units a text; the first Query "
            f"of a search takes {grown.query_units:g} read units."
        )
        self.stdout.write(
            f"A segment of {largest.index_bytes:,} bytes: {largest.blocks:,} blocks, a header of "
            f"{largest.header_bytes:,} bytes."
        )
        torture_options.refuse_broken(*scale_trial.limits(grown, largest), self.stdout)
        self.stdout.write("Every item, header and partition is within its limit.")
