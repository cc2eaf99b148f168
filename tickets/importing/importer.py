"""Import tickets: a public issue archive, whose conversations become comments, or an export of ours, as it was.

Idempotent: each row that became a ticket has a marker, found by the archive's name and the row's number. A row
that is known is left as it is, also where the archive says something else about it now. So a run that was
interrupted anywhere, even killed, is finished by running it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from portal import clock
from portal.errors import Invalid
from portal.plain_text import amount
from tenants.tenancy.context import TenantContext
from tickets.desk.history import History
from tickets.importing import archive_rows, export_reader, export_rows, ticket_writer
from tickets.importing.archive_reader import RawRow
from tickets.importing.archive_rows import ArchivedTicket
from tickets.importing.export_rows import ExportedTicket
from tickets.importing.ledger import Markers, NumberBlocks, RowsMet, list_source
from tickets.importing.row_values import Refused
from tickets.importing.ticket_people import TicketPeople

CLOSER = "Archive import"  # in the timeline, where the archive does not say who closed something
SOURCE_LIMIT = 200  # characters


@dataclass
class ImportResult:
    """Count what an import has done so far, in rows; `comments` are those of the new tickets."""

    rows: int = 0
    new: int = 0
    unchanged: int = 0
    changed: int = 0  # in the archive, since they were imported
    refused: int = 0
    renumbered: int = 0  # of those of an export: its numbers were not free here
    comments: int = 0
    reviews: int = 0
    strangers: Counter[str] = field(default_factory=Counter)  # new tickets of a name that is no one agent's here

    @property
    def complete(self) -> bool:
        """True when everything that was read is in the tenant now, as the archive has it."""
        return not self.refused and not self.changed


@dataclass
class Import:
    """One run. `say` gets a sentence per row that is not taken as it is, `advance` the bytes read since the last call.

    `placed` gets the kind and the number of each row that is a ticket, and the number of that ticket.

    `source` names the archive among all that a tenant imports; by default it is what the archive calls its
    repository, the desk whose export it is, or else the name of the file.
    """

    tenant: TenantContext
    path: Path
    source: str = ""
    dry_run: bool = False
    say: Callable[[str], object] = lambda line: None
    advance: Callable[[int], object] = lambda steps: None
    placed: Callable[[str, int, int], object] = lambda kind, number, ticket: None
    outcome: ImportResult = field(default_factory=ImportResult)

    def run(self) -> ImportResult:
        """Read the archive to its end. Raises ArchiveFault, Invalid, Unavailable; `outcome` says how far it came."""
        if len(self.source) > SOURCE_LIMIT:
            raise Invalid(f"A source has at most {SOURCE_LIMIT} characters.")
        archive = export_reader.archive_of(self.path)
        self._people, self._seen, self._now = TicketPeople(self.tenant), RowsMet(), clock.now()
        self.outcome.strangers = self._people.strangers
        markers: Markers | None = None
        self._is_listed = False
        reported = 0
        with NumberBlocks(self.tenant.repository) as self._numbers:
            for raw in archive.rows():
                if markers is None:
                    self.source = self.source or archive.name[:SOURCE_LIMIT] or self._file_name()
                    markers = Markers(self.tenant.repository, self.source)
                self.outcome.rows += 1
                try:
                    self._take(raw, markers)
                except Refused as reason:
                    self.outcome.refused += 1
                    self.say(f"{archive_rows.name_of(raw)} {reason}. It was left out.")
                self.advance(archive.consumed - reported)
                reported = archive.consumed
        if archive.lone_surrogates:
            halves = amount(archive.lone_surrogates, "half of a character", "halves of characters")
            self.say(f"The archive holds {halves}; each became a question mark.")
        return self.outcome

    def _file_name(self) -> str:
        name = self.path.name
        self.say(f"The archive does not name itself before its rows; it is known as “{name}” now. See --source.")
        return name

    def _take(self, raw: RawRow, markers: Markers) -> None:
        row = self._read(raw)
        if self._seen.again(row.kind, row.number):
            raise Refused("comes twice in the archive; only the first counts")
        self.outcome.reviews += row.reviews
        marker = markers.find(row.id)
        if marker is not None and marker.done:
            self.placed(row.kind, row.number, int(marker.number))
            self._compare(row, marker.digest, int(marker.number))
            return
        identity = f"{self.source}/{row.id}"
        made, remarks = self._history(row, identity)
        number = 0
        if not self.dry_run:
            if not self._is_listed:
                list_source(self.tenant.repository, self.source)
                self._is_listed = True
            number = ticket_writer.write(self.tenant, self.source, row, made, marker, self._numbers)
            self.placed(row.kind, row.number, number)
        self.outcome.new += 1
        self.outcome.comments += made.comment_count
        self.outcome.renumbered += bool(row.own_number and number and number != row.own_number)
        for remark in [*row.remarks, *remarks]:
            self.say(f"{row.name} {remark}." + (f" It is ticket {number}." if number else ""))

    def _read(self, raw: RawRow) -> ArchivedTicket | ExportedTicket:
        if raw.kind == export_reader.KIND:
            return export_rows.read(raw, self._now)
        return archive_rows.read(raw, self._now)

    def _history(self, row: ArchivedTicket | ExportedTicket, identity: str) -> tuple[History, list[str]]:
        if isinstance(row, ExportedTicket):
            return row.history(identity, self._people)
        return ticket_writer.history(row, identity=identity, people=self._people, closer=CLOSER)

    def _compare(self, row: ArchivedTicket | ExportedTicket, digest: str, number: int) -> None:
        if row.digest == digest:
            self.outcome.unchanged += 1
        else:
            self.outcome.changed += 1
            self.say(f"{row.name} has changed in the archive since its import; ticket {number} was left as it is.")
