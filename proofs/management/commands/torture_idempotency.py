"""`manage.py torture_idempotency`: tries to have a POST done twice or not at all, and says whether it succeeded."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import whole_number
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
        parser.add_argument("--seed", type=int, metavar="S", help="printed, and a new one each time")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures for machines")

    def work(self, options: dict[str, Any]) -> None:
        seed = options["seed"] if options["seed"] is not None else random.SystemRandom().randrange(10**9)
        self.stdout.write(f"Seed {seed}.")
        began = time.monotonic()
        with replay_torture.torture(ReplayPlan(seed=seed, posts=options["posts"], kills=options["kills"])) as run:
            replay_torture.prepare(run)
            with Progress(self, "Sending", None) as progress:
                replay_torture.send(run, progress.advance)
            found = replay_torture.figures(run) | {"seconds": round(time.monotonic() - began, 1)}
        if options["json"]:
            options["json"].write_text(json.dumps(found, indent=1))
        kills = ", ".join(f"{count} {way}" for way, count in found["kills"].items())
        self.stdout.write(
            f"{found['plan']['posts']:,} requests, {found['heard']:,} answers, {found['replayed']:,} given again, "
            f"{found['unheard']:,} not heard; kills: {kills or 'none'}; {found['tickets']:,} tickets, "
            f"{found['seconds']:g} s."
        )
        if broken := replay_torture.is_broken(found):
            for name in broken:
                self.stdout.write(f"{name}: {found[name]}")
            raise CommandError(f"Something is wrong: {', '.join(broken)}. Keep the seed.")
        self.stdout.write("Each was done once, and answered alike each time.")
