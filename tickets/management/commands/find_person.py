"""`manage.py find_person`: where a desk knows somebody."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.template.defaultfilters import pluralize

from portal.management.command import PortalCommand, Progress
from tenants.tenancy import context, tenant_directory
from tickets.privacy import personal_places
from tickets.verification.recount import last_number


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
        found = [*personal_places.outside_of_tickets(tenant, person)]
        with Progress(self, "Looking through tickets", last_number(tenant.repository)) as progress:
            found += personal_places.in_tickets(tenant, person, advance=progress.advance)
        for place in found:
            where = f"ticket {place.number}: {place.kind}" if place.number else place.kind
            self.stdout.write(f"{where}: {place.excerpt}" if place.excerpt else where)
        self.stderr.write(f"{len(found):,} place{pluralize(found)}.")
