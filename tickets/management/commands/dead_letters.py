"""`manage.py dead_letters`: the stream records that could not be counted."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Conflict, NotFound
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.tenancy import tenant_directory
from tickets.counting import dead_letters
from tickets.counting.stored import DeadLetterItem

WRONG_USAGE = 2
BY = Actor(origin="dead_letters")


class Command(PortalCommand):
    costs = cost(
        per="dead letter",
        get="counter, slug, tenant",
        query="dead letter, tenant by name",
        write="aggregate, audit row, dead letter",
        reads=10,
        writes=20,
        each=(0, 3, 20),
    )
    help = (
        "Show the stream records that could not be counted, count them after all, or throw them away. list prints one "
        "line for each: id, tenant, time and reason. replay counts them by the rules of today, and applies each "
        "exactly once; it refuses one that still cannot be counted, or that a rebuild has counted meanwhile. drop "
        "removes them without a question. Exit status: 0 done; 1 some were refused, each with its reason."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["list", "replay", "drop"])
        parser.add_argument("--tenant", default="", metavar="SLUG", help="those of one tenant")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--id", action="append", default=[], dest="ids", help="as list prints it; may be repeated")
        which.add_argument("--all", action="store_true", help="all of them, or all of the tenant's")
        parser.add_argument("--json", action="store_true", help="list: print whole records, for machines")

    def work(self, options: dict[str, Any]) -> None:
        tenant_id = tenant_directory.find(options["tenant"]).tenant_id if options["tenant"] else ""
        if options["action"] != "list" and not (options["ids"] or options["all"]):
            raise CommandError("Say which: --id ID or --all.", returncode=WRONG_USAGE)
        found = list(dead_letters.all_letters(tenant_id=tenant_id))
        if options["ids"]:
            found = _named(found, options["ids"])
        slugs = {item.tenant_id: item.name for item in tenant_directory.all_tenants()} if found else {}
        if options["action"] == "list":
            self._list(found, slugs, options["json"])
        else:
            self._each(found, slugs, options["action"])

    def _list(self, found: list[DeadLetterItem], slugs: dict[str, str], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps([_document(dead_letter, slugs) for dead_letter in found], indent=1))
            return
        for dead_letter in found:
            name, tenant = dead_letters.id_of(dead_letter), _tenant(dead_letter, slugs)
            self.stdout.write(f"{name}  {tenant}  {dead_letter.at}  {dead_letter.reason}")
        if not found:
            self.stdout.write("There are no dead letters.")

    def _each(self, found: list[DeadLetterItem], slugs: dict[str, str], action: str) -> None:
        refused = 0
        for dead_letter in found:
            name = f"{dead_letters.id_of(dead_letter)} of {_tenant(dead_letter, slugs)}"
            if action == "drop":
                dead_letters.drop(dead_letter, by=BY)
                self.stdout.write(f"{name} dropped: {dead_letter.reason}")
                continue
            try:
                dead_letters.replay(dead_letter, by=BY)
            except (Conflict, NotFound) as error:
                refused += 1
                self.stderr.write(f"{name} stays: {error.message}")
            else:
                self.stdout.write(f"{name} counted.")
        if refused:
            raise CommandError(f"{refused:,} of {len(found):,} were not counted.")
        if not found:
            self.stdout.write("There are no dead letters.")


def _named(found: list[DeadLetterItem], ids: list[str]) -> list[DeadLetterItem]:
    by_id = {dead_letters.id_of(dead_letter): dead_letter for dead_letter in found}
    for wanted in ids:
        if wanted not in by_id:
            raise NotFound(f"There is no dead letter {wanted}.")
    return [by_id[wanted] for wanted in dict.fromkeys(ids)]


def _tenant(dead_letter: DeadLetterItem, slugs: dict[str, str]) -> str:
    return slugs.get(dead_letter.tenant_id) or dead_letter.tenant_id or "(no tenant)"


def _document(dead_letter: DeadLetterItem, slugs: dict[str, str]) -> dict[str, Any]:
    return {
        "id": dead_letters.id_of(dead_letter),
        "tenant": slugs.get(dead_letter.tenant_id, ""),
        "tenant_id": dead_letter.tenant_id,
        "at": dead_letter.at,
        "reason": dead_letter.reason,
        "record": json.loads(dead_letter.record),
    }
