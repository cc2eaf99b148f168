"""`manage.py run_lifecycle`: carries out what operators order in the admin for whole tenants."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.worker_command import WorkerCommand
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.following import lifecycle_work


class Command(WorkerCommand):
    costs = cost(get="*", query="*", write="*", per="job")
    help = (
        "Carry out the moves, the ends of old copies and the purges that operators order in the admin, until Ctrl-C or "
        "SIGTERM; what is at work is let go at its next step, and goes on with the next one. Any number of these may "
        "run. On AWS as the lifecycle role; where processes have no roles of their own, each stream worker does it, "
        "and this is not needed. Needs a running stream worker. Exit status: 0 stopped as asked, or done, with --once; "
        "1 refused or failed; 130 stopped, with --once."
    )
    again = "What was at work goes on with the next one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="carry out what there is now, and end")

    def work(self, options: dict[str, Any]) -> None:
        if options["once"]:
            ended = sum(follower.turn() for follower in lifecycle_work.followers())
            self.stdout.write(f"{amount(ended, 'job has', 'jobs have')} ended.")
            return
        with self.working(options), lifecycle_work.running():
            self.wait_for_signal()
