"""`manage.py torture_demo`: kill the processes of a whole portal under load, and say what was lost."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from proofs.outages import outage_trial
from proofs.outages.outage_trial import ENGINES, TrialOptions


class Command(BaseCommand):
    help = (
        "Start a demo of its own, as `make run` does, with its data in a temporary folder. Kill its web server, stream "
        "worker and engine at random moments while people write tickets and comments, then read everything back. "
        "DynamoDB Local saves each write, and loses none; ministack, which saves when it is stopped, is not killed. "
        "Linux only. Exit status: 0 all that was acknowledged is there once, and all came back; 1 not. What the engine "
        "answered in the last half second before it was killed is not judged."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help="of the demo (%(default)s)")
        parser.add_argument("--seconds", type=float, default=240, metavar="S", help="of killing (%(default)s)")
        parser.add_argument("--kills", type=int, default=24, metavar="K", help="of processes (%(default)s)")
        parser.add_argument("--people", type=int, default=6, metavar="P", help="who write (%(default)s)")
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="of moments and victims (%(default)s)")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")

    def handle(self, *args: Any, **options: Any) -> None:
        plan = TrialOptions(**{name: options[name] for name in ("engine", "seconds", "kills", "people", "seed")})
        with tempfile.TemporaryDirectory(prefix="torture-demo-") as folder:
            found = outage_trial.run(plan, Path(folder), self.stdout.write)
        if options["json"]:
            options["json"].write_text(json.dumps(found.document(), indent=2))
        killed = ", ".join(f"{count} times the {kind}" for kind, count in found.kills.most_common()) or "nothing"
        self.stdout.write(
            f"Killed: {killed}. The demo started {found.restarts} processes again.\n"
            f"Acknowledged: {found.tickets:,} tickets and {found.comments:,} comments. {found.error_pages:,} error "
            f"pages kept the text, {found.unanswered:,} requests had no answer; each was sent again.\n"
        )
        for sentence in found.broken:
            self.stderr.write(sentence)
        if found.broken:
            raise CommandError(f"{len(found.broken)} promises did not hold.")
        self.stdout.write("Nothing that was acknowledged is lost or doubled.")
