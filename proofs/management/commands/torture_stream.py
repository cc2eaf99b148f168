"""`manage.py torture_stream`: tries to make the aggregates wrong, and says whether it succeeded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number, whole_number
from proofs import torture_options
from proofs.counting import experiment, fault_injection, figures
from proofs.counting.experiment import Torture, TortureOptions
from tickets.verification import verify

CANNOT_TELL = 3


class Command(PortalCommand):
    help = (
        "Torture the stream's workers on the running engine: writers in processes of their own change the tickets of "
        "throw-away tenants; pollers get batches again, in parts and overlapping, are killed at any moment and between "
        "two writes, lose their leases and go on without; shards are split, merged and rolled over, unless others "
        "follow the stream. Then all is recounted, and recounted once more when every "
        "ticket has been deleted. Needs DEBUG=1 and a local engine; while it runs, its pollers take the stream from "
        "others. What each writer does follows from --seed; how the processes meet does not. Tenants and tickets are "
        "removed in the end; records of idempotency stay until their TTL. "
        "Exit status: 0 no drift; 1 drift, or it failed; 3 it could not be told."
    )
    again = "What it has made may be left behind, in tenants whose names begin with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--events", type=whole_number(1), default=20_000, metavar="N", help="to write (%(default)s)"
        )
        parser.add_argument(
            "--redeliver",
            type=number(0, 1, "between 0 and 1"),
            default=0.3,
            metavar="P",
            help="share of batches that come again (%(default)s)",
        )
        parser.add_argument("--kills", type=whole_number(0), default=10, metavar="K", help="of pollers (%(default)s)")
        parser.add_argument(
            "--tenants", type=whole_number(1), default=12, metavar="T", help="to write in (%(default)s)"
        )
        parser.add_argument("--writers", type=whole_number(1), default=3, metavar="W", help="at a time (%(default)s)")
        parser.add_argument("--pollers", type=whole_number(1), default=3, metavar="P", help="at a time (%(default)s)")
        parser.add_argument(
            "--cuts",
            type=whole_number(0),
            default=9,
            metavar="C",
            help="splits, merges and rollovers (%(default)s)",
        )
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        numbers = ("events", "redeliver", "kills", "tenants", "writers", "pollers", "cuts")
        plan = TortureOptions(seed=seed, **{name: options[name] for name in numbers})
        with experiment.torture(plan) as run:
            self._torture(run)
            found = figures.document(run)
        torture_options.write_figures(found, options)
        for sentence in figures.sentences(found):
            self.stdout.write(sentence)
        for slug, differences in found["drift"].items():
            for one in differences[:20]:
                self.stdout.write(
                    f"{slug}: {one['item']} {one['count']}: stored {one['stored']}, recounted {one['recounted']}"
                )
        if found["taken_away_or_called_wrong"]:
            raise CommandError(f"Healthy counts were called wrong: {found['taken_away_or_called_wrong'][:5]}")
        if found["drift"]:
            raise CommandError("The aggregates drift. Keep the seed.")
        if found["cannot_be_told"]:
            raise CommandError(f"It could not be told: {found['cannot_be_told']}", returncode=CANNOT_TELL)
        self.stdout.write("No drift.")

    def _torture(self, run: Torture) -> None:
        experiment.make_tenants(run)
        try:
            with Progress(self, "Writing", run.plan.events) as progress:
                experiment.write(run, fault_injection.schedule(run), progress.advance)
                experiment.drain(run, progress.label)
            with Progress(self, "Recounting", len(run.tenants)) as progress:
                run.verdicts = _timed(run, "recounting", lambda: experiment.check(run, progress.advance))
        finally:
            experiment.stop_writers(run)
            with Progress(self, "Removing", len(run.tenants)) as progress:
                _timed(run, "removing", lambda: experiment.remove(run, progress.advance))
            experiment.drain(run, lambda _: None)
            run.left = {slug: v for slug, v in experiment.check(run, lambda _: None).items() if v.state != verify.OK}
            experiment.forget_tenants(run)


def _timed(run: Torture, name: str, work: Callable[[], Any]) -> Any:
    started = time.monotonic()
    try:
        return work()
    finally:
        run.seconds[name] = time.monotonic() - started
