"""Create the declared tables. Run again, it does nothing."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.dynamo import provisioning
from portal.errors import PortalError
from portal.web import checks


class Command(BaseCommand):
    requires_system_checks = (checks.SETTINGS,)
    help = "Create the tables, their indexes, streams and TTL. Existing tables are compared and left as they are."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--wait", action="store_true", help="return when every table can be used")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            outcome = provisioning.create_all(wait=options["wait"])
        except PortalError as error:
            raise CommandError(error.message) from error
        for name, is_new in outcome.items():
            if is_new or options["verbosity"] > 1:
                self.stdout.write(f"{name}: {'created' if is_new else 'exists'}")
        created = sum(outcome.values())
        self.stdout.write(f"{created} tables created, {len(outcome) - created} were there.")
