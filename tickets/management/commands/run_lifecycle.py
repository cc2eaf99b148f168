"""`manage.py run_lifecycle`: carries out what operators order in the admin for whole tenants."""

from __future__ import annotations

import threading
from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from tickets.following import lifecycle_work


class Command(PortalCommand):
    help = (
        "Carry out the moves, the ends of old copies and the purges that operators order in the admin, until Ctrl-C or "
        "SIGTERM; what is at work then is left to the next one. Any number of these may run. On AWS as the lifecycle "
        "role; where processes have no roles of their own, each stream worker does it, and this is not needed. Needs a "
        "running stream worker. Exit status: 0 done, with --once; 1 refused or failed; 130 stopped."
    )
    again = "What was at work goes on with the next one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="carry out what there is now, and end")

    def work(self, options: dict[str, Any]) -> None:
        if options["once"]:
            ended = sum(follower.turn() for follower in lifecycle_work.followers())
            self.stdout.write(f"{ended:,} {'job has' if ended == 1 else 'jobs have'} ended.")
            return
        with lifecycle_work.running():
            threading.Event().wait()
