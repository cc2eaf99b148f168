"""`manage.py receive_mail`: a mail server for development, on this machine alone."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from portal.engines.endpoint import LOOPBACK, port_obstacle
from portal.management.command import whole_number
from portal.management.worker_command import WorkerCommand
from portal.schema.access_patterns import cost
from tickets.letters import smtp_receiver


class Command(WorkerCommand):
    costs = cost(per="letter", get="*", query="*", write="*")
    help = (
        "Take letters by SMTP on this machine alone, and bring them in as Amazon SES would, until Ctrl-C or SIGTERM. "
        "For development: it asks nobody for a password, and takes each sender as confirmed. `make run` starts it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=whole_number(1, 65_535), default=8025, help="of this machine (8025)")
        super().add_arguments(parser)

    def work(self, options: dict[str, Any]) -> None:
        if not settings.DEBUG:
            raise CommandError("This mail server believes every sender. It runs with DEBUG alone.")
        if not settings.MAIL_DOMAIN:
            raise CommandError("MAIL_DOMAIN is empty, so that no desk has an address.")
        if obstacle := port_obstacle(options["port"]):
            raise CommandError(f"Port {obstacle}; choose another with --port.")
        server = smtp_receiver.controller(LOOPBACK, options["port"], said=self._say)
        with self.working(options):
            server.start()
            try:
                self.stdout.write(f"Mail to <desk>@{settings.MAIL_DOMAIN} is taken at {LOOPBACK}:{options['port']}.")
                self.stdout.flush()
                self.wait_for_signal()
            finally:
                server.stop()

    def _say(self, line: str) -> None:
        if self.metrics_seconds:
            self.stdout.write(line)
            self.stdout.flush()
