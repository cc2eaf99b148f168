"""`manage.py torture_idempotency`: tries to have a POST done twice or not at all, and says whether it succeeded."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import whole_number
from proofs import torture_options
from proofs.replays import replay_torture
from proofs.replays.replay_torture import ReplayPlan


class Command(PortalCommand):
    help = (
        "Create tickets by the API in a throw-away tenant of the running engine: each is sent 1 to 5 times at once to "
        "two servers, which are killed before a transaction, right behind one, and at any moment; who hears nothing "
        "sends again. In the end there must be one ticket for each, and all answers to one of them must be the same, "
        "byte for byte. Claims of the dead are shortened to a second. Needs DEBUG=1 and a local engine. "
        "Exit status: 0 nothing is wrong; 1 something is, or it failed."
    )
    again = "What it has made may be left behind, in a tenant whose name begins with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--posts", type=whole_number(1), default=1000, metavar="N", help="tickets (%(default)s)")
        parser.add_argument("--kills", type=whole_number(0), default=30, metavar="K", help="of servers (%(default)s)")
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        began = time.monotonic()
        with replay_torture.torture(ReplayPlan(seed=seed, posts=options["posts"], kills=options["kills"])) as run:
            replay_torture.prepare(run)
            with Progress(self, "Sending", None) as progress:
                replay_torture.send(run, progress.advance)
            found = replay_torture.figures(run) | {"seconds": round(time.monotonic() - began, 1)}
        torture_options.write_figures(found, options)
        kills = ", ".join(f"{count} {way}" for way, count in found["kills"].items())
        self.stdout.write(
            f"{found['plan']['posts']:,} requests, {found['heard']:,} answers, {found['replayed']:,} given again, "
            f"{found['unheard']:,} not heard; kills: {kills or 'none'}; {found['tickets']:,} tickets, "
            f"{found['seconds']:g} s."
        )
        torture_options.refuse_broken(found, replay_torture.is_broken(found), self.stdout)
        self.stdout.write("Each was done once, and answered alike each time.")
