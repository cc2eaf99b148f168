"""`manage.py note_bounces`: notes which addresses Amazon SES could not reach."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.management.base import CommandParser

from delivery.mail import bounces
from portal.management.worker_command import WorkerCommand
from portal.plain_text import amount
from portal.schema.access_patterns import cost

_POLL_SECONDS = 5  # a poll is not cancelled, so stopping takes as long


class Command(WorkerCommand):
    costs = cost(write="suppressed address", per="bounce")
    help = (
        "Read the queue in which Amazon SES tells what bounced and what was reported as unwanted, until it is empty; "
        "nothing is mailed to those addresses any more, see mail_address. With --follow, go on until Ctrl-C or "
        "SIGTERM, and note what has been read. Only "
        "where EMAIL_URL is ses://, and the template's function does not do it: SMTP answers each mail itself."
    )

    unavailable = "Its queue is made by the template, with MailService=ses."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--follow", action="store_true", help="wait for more, until Ctrl-C or SIGTERM")

    def work(self, options: dict[str, Any]) -> None:
        total: Counter[str] = Counter()
        with self.working(options):
            while (counts := bounces.read(wait=_POLL_SECONDS if options["follow"] else 1)) or options["follow"]:
                total += counts
                if counts and options["verbosity"] > 1:
                    self._say(counts)
                if self.signals:
                    break
        self._say(total)

    def _say(self, counts: Counter[str]) -> None:
        words = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("bounced", "complained", "other", "refused"))
        self.stdout.write(f"{amount(counts.total(), 'notification')}: {words}.")
