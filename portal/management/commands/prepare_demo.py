"""`manage.py prepare_demo`: what a demo needs before it starts, made by one process."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command, get_commands
from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from portal.management.demo_processes import CREATE_BUCKET, CREATE_QUEUES
from portal.schema.access_patterns import cost


class Command(PortalCommand):
    costs = cost(per="ticket", write="*")
    help = (
        "Create the tables, the queues and the bucket where they are missing, and with --seed the sample data where "
        "there are none. `demo` runs it before anything else."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", action="store_true", help="write the sample data, too")

    def work(self, options: dict[str, Any]) -> None:
        self._call("create_tables", "--upgrade", "--drop-old")
        if CREATE_QUEUES in get_commands():
            self._call(CREATE_QUEUES, "--wait")
        if CREATE_BUCKET in get_commands():
            self._call(CREATE_BUCKET)
        if options["seed"]:
            self._call("seed", "--if-empty")

    def _call(self, *arguments: str) -> None:
        call_command(*arguments, stdout=self.stdout, stderr=self.stderr)
