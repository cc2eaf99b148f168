"""Create the declared tables, compare those that are there, and upgrade them. Run again, it does nothing."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError

from portal.dynamo import provisioning
from portal.management.command import PortalCommand
from portal.plain_text import amount
from portal.schema import registry
from portal.schema.access_patterns import cost
from portal.schema.registry import Table
from portal.streams import stream_source
from portal.web import checks


class Command(PortalCommand):
    costs = cost(query="placed tenant", reads=5)
    requires_system_checks = (checks.SETTINGS,)
    help = (
        "Create the tables, their indexes, streams and TTL. Existing tables are compared and left as they are; "
        "--upgrade makes them as declared, while they serve, and --drop-old deletes indexes of older versions. Status "
        "1: a table is not as declared."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--wait", action="store_true", help="return when every table can be used")
        parser.add_argument(
            "--upgrade", action="store_true", help="build missing indexes beside old ones; mend streams, TTL, billing"
        )
        parser.add_argument(
            "--drop-old", action="store_true", help="delete undeclared indexes, once no older version runs any more"
        )

    def work(self, options: dict[str, Any]) -> None:
        changes = options["upgrade"] or options["drop_old"]
        outcome = provisioning.create_all(wait=options["wait"] or changes, compare=not options["upgrade"])
        for name, is_new in outcome.items():
            if is_new or options["verbosity"] > 1:
                self.stdout.write(f"{name}: {'created' if is_new else 'exists'}")
        created = sum(outcome.values())
        self.stdout.write(f"{amount(created, 'table')} created, {len(outcome) - created} there before.")
        if created == len(outcome) and not options["upgrade"]:
            return
        found = self._work_on(registry.tables(), options)
        # Tables of all that were made now may not be active yet: then there is no list of the others to read.
        for source in stream_source.placed() if changes or not created else ():
            with source.entered():
                found += self._work_on(registry.placed_tables(), options)
        if options["upgrade"] and not options["drop_old"]:
            for one in found:
                self.stdout.write(str(one))
            found = [one for one in found if one.mend != provisioning.DROP_OLD]
        if found:
            raise CommandError("\n".join(map(str, found)))

    def _work_on(self, declared: Iterable[Table], options: dict[str, Any]) -> list[provisioning.TableDifference]:
        """Change tables as wished; return what still differs."""
        found = []
        for table in declared:
            existing = None
            if options["upgrade"]:
                existing = provisioning.upgrade(table, say=self.stdout.write)
            if options["drop_old"]:
                existing = provisioning.drop_old(table, existing, say=self.stdout.write)
            found += provisioning.differences(table, existing)
        return found
