"""`manage.py export_tickets`: all tickets of a tenant, now or at a moment, as lines of JSON."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError, CommandParser

from portal import atomic_file
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from portal.web import moments
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import context, tenant_directory
from tickets.custom_fields import definitions
from tickets.data import exporting, imported_fields
from tickets.time_machine import whole_tickets
from tickets.verification.recount import last_number

BY = Actor(origin="export_tickets")


class Command(PortalCommand):
    costs = cost(
        get="counter, requester, setup, slug, tenant",
        query="ticket",
        write="audit row",
        per="ticket",
        reads=8,
        writes=8,
        each=(0, 5, 0),
    )
    help = (
        "Write all tickets of a tenant, internal notes included, one JSON object on each line, by number. "
        "import_archive takes them back. On standard output, or in a file that is there when it is whole. The export "
        "is recorded in the tenant's audit trail. With --at, each ticket is written as it was at that moment, as its "
        "history tells it; what the history does not hold is named. Exit status: 0 all written; 1 stopped by an error; "
        "130 stopped by Ctrl-C."
    )
    again = "Run it again, and it begins anew."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="whose tickets")
        parser.add_argument("--output", type=Path, metavar="FILE", help="where to (standard output)")
        parser.add_argument("--at", metavar="MOMENT", help="tickets as they were: 2026-11-20T10:00:00, in UTC")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["tenant"]))
        at = moments.moment(options["at"]) if options["at"] else ""
        name = f"tickets as of {at}" if at else "tickets"
        entry = AuditEntry(tenant.tenant_id, AuditAction.EXPORT_MADE, BY, "export", "tickets", name)
        then = partial(whole_tickets.as_of, tenant, at=at) if at else lambda one: one
        names = imported_fields.names_of(definitions.of(tenant))
        written = entries = 0
        not_kept: Counter[str] = Counter()
        with _place(options["output"], self.stdout) as place:
            recording.record(entry)
            with Progress(self, "Exporting", last_number(tenant.repository)) as progress:
                for one in exporting.all_tickets(tenant, advance=progress.advance, then=then):
                    text = exporting.line(
                        tenant.slug,
                        one.summary,
                        one.description,
                        one.activity,
                        one.addresses,
                        one.not_kept,
                        names=names,
                        links=one.links,
                    )
                    place.write(text + "\n")
                    written, entries = written + 1, entries + len(one.activity)
                    not_kept.update(one.not_kept)
        self.stderr.write(
            f"{amount(written, 'ticket')} of {tenant.name} with {amount(entries, 'entry', 'entries')} in their history."
        )
        for name, tickets in sorted(not_kept.items()):
            self.stderr.write(
                f"The history of {amount(tickets, 'ticket')} does not hold the {name} of that moment: the file has "
                "the one of today, and names the field in not_kept."
            )


@contextmanager
def _place(path: Path | None, stdout: Any) -> Iterator[TextIO | codecs.StreamWriter]:
    """Open where the lines go: a file under another name until it is whole, or standard output."""
    if path is None:
        yield stdout
        return
    try:
        with atomic_file.writing(path) as file:
            yield codecs.getwriter("utf-8")(file)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
