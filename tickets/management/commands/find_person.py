"""`manage.py find_person`: where a desk knows somebody."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal import clock
from portal.management.command import PortalCommand, Progress
from portal.schema.access_patterns import cost
from tenants.tenancy import context, tenant_directory
from tickets.data import desk_person, person_finding


class Command(PortalCommand):
    costs = cost(
        get="account, address, address of a requester, aggregate, counter, mail settings, requester, slug, tenant",
        query="API key, audit row, auditor, group turns, help centre, invitation, letters by time, member, notice, "
        "ready answer, rule, saved views, ticket, webhook",
        per="ticket",
        reads=25,
        each=(0, 150, 0),
        room="a ticket of a megabyte",
    )
    help = (
        "Say where a desk knows the person with an address: membership, invitations, tickets, comments, texts that "
        "have the address, the audit trail. Changes nothing. Exit status: 0, whether there is something or not."
    )
    again = "Run it again, and it begins anew."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="which desk")
        parser.add_argument("address", metavar="ADDRESS", help="the person's e-mail address")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["slug"]))
        person = desk_person.person_of(tenant, options["address"])
        found = person_finding.begin(tenant, person)
        lines: list[str] = []
        with Progress(self, "Looking through tickets", found.last) as progress:
            for place in person_finding.go_on(tenant, found, advance=progress.advance):
                if place is None:
                    lines.clear()
                else:
                    lines.append(str(place))
        for line in lines:
            self.stdout.write(line)
        self.stderr.write(person_finding.NOT_SEEN)
        if person.erased_as:
            at = person.erased_at
            when = f"was erased on {clock.parse(at):%-d %B %Y, %H:%M} UTC" if at else "was erased, but not to the end"
            self.stderr.write(f"This person {when}, and is {person.erased_as} in this desk.")
        if found.is_to_be_erased:
            self.stderr.write(f"An erasure replaces {found.counted}. The audit trail stays.")
        else:
            self.stderr.write("There is nothing to erase.")
