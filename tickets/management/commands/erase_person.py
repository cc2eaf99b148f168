"""`manage.py erase_person`: forget somebody at a desk."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.tenancy import context, tenant_directory
from tickets.data import desk_person, person_erasing, person_finding
from tickets.verification.recount import last_number

BY = Actor(origin="erase_person")


class Command(PortalCommand):
    costs = cost(
        get="account, address, address of a requester, aggregate, counter, file, letter, mail settings, member, "
        "requester, slug, tenant, ticket",
        query="API key, article, audit row, auditor, group turns, help centre, invitation, letters by time, member, "
        "notice, ready answer, rule, saved views, ticket, webhook",
        write="API key, address of a requester, aggregate, article, audit row, auditor, file, help centre, "
        "invitation, invitation link, invited, letter, membership, ready answer, requester, rule, tenant, ticket, "
        "unreached invitation, webhook",
        per="ticket",
        reads=30,
        writes=30,
        each=(0, 150, 400),
        room="a ticket of a megabyte",
    )
    help = (
        "Replace somebody who is no member any more by a pseudonym in all tickets of a desk. The numbers stay. The "
        "audit trail is not changed, and shows the pseudonym. A name that somebody wrote in a text stays. find_person "
        "says beforehand what will be replaced. Exit status: 0 done; 1 refused, such as for a member, for an address "
        "that nobody here has, or where nothing is left to be erased, or tickets are left that have no room for the "
        "pseudonym; 130 stopped by Ctrl-C."
    )
    again = "Run it again, and it goes on with what is left."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="which desk")
        parser.add_argument("address", metavar="ADDRESS", help="the person's e-mail address")
        parser.add_argument(
            "--texts",
            action="store_true",
            help="replace the address in titles, tags, descriptions, comments and names, too",
        )

        parser.add_argument("--files", action="store_true", help="remove the files that the person sent, too")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["slug"]))
        person = desk_person.person_of(tenant, options["address"])
        with Progress(self, "Looking through tickets", last_number(tenant.repository)) as progress:
            found = person_finding.begin(tenant, person)
            for _ in person_finding.go_on(tenant, found, advance=progress.advance):
                pass
        done = person_erasing.begin(tenant, found, texts=options["texts"], files=options["files"])
        with Progress(self, "Erasing", done.last) as progress:
            person_erasing.go_on(tenant, done, advance=progress.advance)
        if done.shortening:
            self.stderr.write(done.shortening)
        person_erasing.end(tenant, done, by=BY)
        if not done.tickets:
            self.stderr.write("Nothing was replaced in any ticket. find_person says where the desk knows an address.")
        self.stdout.write(f"{done.name}: in place of {done.counted}.")
