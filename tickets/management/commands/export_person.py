"""`manage.py export_person`: what a desk holds of somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal import atomic_file
from portal.management.command import PortalCommand, Progress
from portal.schema.access_patterns import cost
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import context, tenant_directory
from tickets.data import desk_person, person_finding
from tickets.verification.recount import last_number

BY = Actor(origin="export_person")


class Command(PortalCommand):
    costs = cost(
        get="account, address, address of a requester, aggregate, counter, mail settings, member, requester, slug, "
        "tenant",
        query="API key, audit row, auditor, group turns, help centre, invitation, letters by time, member, notice, "
        "ready answer, rule, saved views, ticket, webhook",
        write="audit row",
        per="ticket",
        reads=45,
        writes=8,
        each=(0, 150, 0),
        room="a ticket of a megabyte",
    )
    help = (
        "Write what a desk holds of the person with an address, as one JSON document. The export is recorded in the "
        "audit trail, without the address. An address that the desk does not know is refused: no file, no record. Exit "
        "status: 0 written; 1 refused, or stopped by an error; 130 stopped by Ctrl-C."
    )
    again = "Run it again, and it begins anew."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="which desk")
        parser.add_argument("address", metavar="ADDRESS", help="the person's e-mail address")
        parser.add_argument("file", type=Path, metavar="FILE", help="where to")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["slug"]))
        person = desk_person.person_of(tenant, options["address"])
        with Progress(self, "Looking for the person", last_number(tenant.repository)) as progress:
            found = person_finding.begin(tenant, person)
            for _ in person_finding.go_on(tenant, found, advance=progress.advance):
                pass
        found.refuse_unknown()
        recording.record(
            AuditEntry(tenant.tenant_id, AuditAction.EXPORT_MADE, BY, "export", "person", "a person's data")
        )
        try:
            with (
                Progress(self, "Writing what tickets hold", last_number(tenant.repository)) as progress,
                atomic_file.writing(options["file"]) as place,
            ):
                for piece in person_finding.pieces(tenant, person, advance=progress.advance):
                    place.write(piece.encode())
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be written: {error.strerror}.") from error
        self.stderr.write(f"What {tenant.name} holds of one person is in {options['file']}.")
