"""`manage.py import_archive`: the tickets of a public issue archive, or of an export."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Invalid
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.tenancy import context, tenant_directory
from tickets.data.archive_reader import size_of
from tickets.data.import_rows import short
from tickets.data.importer import Import, ImportResult, assignee_tag

INCOMPLETE = 3
STRANGERS_NAMED = 20  # by name, those with most tickets


class Command(PortalCommand):
    costs = cost(
        get="address of a requester, counter, move, purge, requester, resharding, setup, slug, tenant",
        query="import source, member, ticket",
        write="address of a requester, audit row, closing tenant, counter, import, import source, move, purge, "
        "requester, tenant, tenant by name, ticket",
        per="ticket or comment",
        reads=8,
        writes=60,
        each=(0, 2, 1000),
        room="texts of 400 KB; a ticket or comment of a few KB takes 10 WCU",
    )
    help = (
        "Import an issue archive as i-d-template's archive tool writes it: issues and pull requests become tickets, "
        "their conversation becomes comments, labels become tags; reviews of code are left out. Or what export_tickets "
        "wrote: tickets come back with all that they held, and keep their numbers where those are free. A ticket of "
        "somebody who is no agent of the tenant gets the tag assignee:<name>, by which it can be found. Run again, it "
        "continues where it was interrupted and changes nothing that is imported already. "
        "Exit status: 0 all rows are tickets; 1 stopped by an error, which is named with its place; "
        "3 some rows were refused, or differ from what was imported before; 130 stopped by Ctrl-C."
    )
    again = "What was imported stays; run it again to continue."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the archive, a JSON file, or the export, lines of JSON")
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="the tenant that gets the tickets")
        parser.add_argument(
            "--source",
            default="",
            metavar="NAME",
            help="what to know this archive by when it comes again (what it calls its repository, or the file's name)",
        )
        parser.add_argument(
            "--numbers",
            type=Path,
            metavar="CSV",
            help="write to this new file which ticket each row is now, also where an earlier run has imported it",
        )
        parser.add_argument("--dry-run", action="store_true", help="read and check everything, write nothing")

    def work(self, options: dict[str, Any]) -> None:
        if options["dry_run"]:
            self.again = "Nothing was written; run it again to check the whole file."
        size = size_of(options["file"])
        found = tenant_directory.find(options["tenant"])
        tenant_directory.refuse_closed(found)
        tenant = context.for_system(found)
        run = Import(tenant, options["file"], source=options["source"], dry_run=options["dry_run"])
        started = time.monotonic()
        try:
            with Progress(self, "Importing", size or None) as progress, _numbers_file(options["numbers"]) as run.placed:
                run.say, run.advance = progress.say, progress.advance
                run.run()
        except Invalid as error:
            if run.outcome.rows:
                done = (
                    "Nothing was written, as this is a dry run" if run.dry_run else "What was read before that is done"
                )
                error.message += f" {done}; mend the file and run this again."
            raise
        finally:
            self.counted = run.outcome.rows + run.outcome.comments
            if run.outcome.rows:
                self.stdout.write(_summary(run.outcome, seconds=time.monotonic() - started, dry_run=run.dry_run))
        if not run.outcome.rows:
            self.stdout.write(f"{options['file']} is an archive without rows: there is nothing to import.")
        if not run.outcome.complete:
            left = run.outcome.refused + run.outcome.changed
            message = (
                f"{left:,} of {amount(run.outcome.rows, 'row')} did not arrive in {tenant.name} as the archive has "
                "it; see above."
            )
            raise CommandError(message, returncode=INCOMPLETE)


@contextmanager
def _numbers_file(path: Path | None) -> Iterator[Callable[[str, int, int], object]]:
    """Open the file of numbers, and hand out what writes a line of it. Raises Invalid."""
    if path is None:
        yield lambda kind, number, ticket: None
        return
    try:
        # No file is written over: the archive itself may be named by mistake.
        file = path.open("x")
    except OSError as error:
        raise Invalid(f"The numbers cannot be written to {path}: {error.strerror}.") from error
    with file:
        file.write("kind,number,ticket\n")
        yield lambda kind, number, ticket: file.write(f"{kind},{number},{ticket}\n")


def _summary(outcome: ImportResult, *, seconds: float, dry_run: bool) -> str:
    new = "would be new" if dry_run else "new"
    lines = [
        f"{amount(outcome.rows, 'row')} read in {seconds:.1f} s: "
        f"{amount(outcome.new, 'ticket')} {new} with {amount(outcome.comments, 'comment')}, "
        f"{outcome.unchanged:,} unchanged, {outcome.changed:,} changed since their import, {outcome.refused:,} refused."
    ]
    if outcome.reviews:
        lines.append(
            f"Left out: {amount(outcome.reviews, 'review')} of code, whose remarks need a diff that is not here."
        )
    if outcome.renumbered:
        lines.append(
            f"{amount(outcome.renumbered, 'ticket has', 'tickets have')} another number than in the "
            "export, whose numbers were given out here before; --numbers writes which."
        )
    lines += [
        f"{amount(many, 'ticket was', 'tickets were')} assigned to {short(name)}, a name that none, or several, of "
        f"the agents here have; each gets the tag “{assignee_tag(name)}”."
        for name, many in outcome.strangers.most_common(STRANGERS_NAMED)
    ]
    if len(outcome.strangers) > STRANGERS_NAMED:
        lines.append("Tickets of other people who are no agents here have such a tag as well.")
    if dry_run:
        lines.append("Dry run: nothing was written.")
    return "\n".join(lines)
