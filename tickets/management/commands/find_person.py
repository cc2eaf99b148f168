"""`manage.py find_person`: where a desk knows somebody."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.template.defaultfilters import pluralize

from portal.management.command import PortalCommand, Progress
from tenants.tenancy import context, tenant_directory
from tickets.privacy import person_finding, personal_places


class Command(PortalCommand):
    help = (
        "Say where a desk knows the person with an address: membership, invitations, tickets, comments, texts that "
        "have the address, the audit trail. Changes nothing. Exit status: 0, whether there is something or not."
    )
    again = "Run it again: it begins anew."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="which desk")
        parser.add_argument("address", metavar="ADDRESS", help="the person's e-mail address")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["slug"]))
        person = personal_places.person_of(tenant, options["address"])
        found = person_finding.begin(tenant, person)
        lines = [*found.beside, *found.beside_texts]
        with Progress(self, "Looking through tickets", found.last) as progress:
            lines += map(str, person_finding.go_on(tenant, found, advance=progress.advance))
        for line in lines:
            self.stdout.write(line)
        self.stderr.write(f"{len(lines):,} place{pluralize(lines)}.")
