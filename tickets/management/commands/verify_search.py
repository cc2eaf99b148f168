"""`manage.py verify_search`: holds the search index against the stored texts."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.management import tenant_option
from tickets.management.tenant_option import Chosen
from tickets.search import index_check
from tickets.search.index_check import IndexReport, IndexVerdict
from tickets.verification.recount import last_number

CANNOT_TELL = 3
SHOWN = 40  # postings of one kind and tenant; --json has more


class Command(PortalCommand):
    costs = cost(
        get="placed stream, counter, recount, slug, tenant, watermark",
        query="aggregate, search directory, search segment, tenant by name, ticket",
        write="marker, recount",
        per="ticket",
        reads=20,
        writes=5,
        each=(0, 3, 1),
    )
    help = (
        "Read the texts of all tickets and hold the search index against them: names what a search would miss, and "
        "what the index still holds of texts that were changed or deleted. That is never shown to anybody, and goes "
        "with rebuild_search. Changes nothing; its place is kept for a day. Exit status: 0 everything is found; "
        "1 something is missing or damaged, or, with --strict, something is left of what is gone; 3 cannot be told "
        "now, because the stream worker makes no progress or a rebuild is needed first."
    )
    again = f"Run it again, and it goes on behind the last {index_check.PASS:,} tickets of which it knew everything."

    def add_arguments(self, parser: CommandParser) -> None:
        tenant_option.add_arguments(parser, "--settle", default=index_check.SETTLE)
        parser.add_argument("--strict", action="store_true", help="what is left of texts that are gone is an error too")
        parser.add_argument("--json", action="store_true", help="print the result for machines")

    def work(self, options: dict[str, Any]) -> None:
        self._write = self.stderr.write if options["json"] else self.stdout.write
        checked = {tenant.slug: self._check(tenant, options["settle"]) for tenant in tenant_option.chosen(options)}
        if options["json"]:
            found = [{"tenant": slug, **asdict(verdict)} for slug, verdict in checked.items()]
            self.stdout.write(json.dumps(found, indent=1, ensure_ascii=False))
        wrong = [slug for slug, verdict in checked.items() if verdict.state == index_check.WRONG]
        if wrong:
            raise CommandError(f"The search index of {', '.join(wrong)} is wrong. Run rebuild_search.")
        left_over = [slug for slug, verdict in checked.items() if verdict.left_over]
        if options["strict"] and left_over:
            raise CommandError(f"The search index of {', '.join(left_over)} holds what is gone. Run rebuild_search.")
        unknown = [slug for slug, verdict in checked.items() if verdict.state == index_check.UNKNOWN]
        if unknown:
            raise CommandError(f"{', '.join(unknown)} cannot be verified now.", returncode=CANNOT_TELL)
        tickets = sum(verdict.tickets for verdict in checked.values())
        self._write(f"{amount(len(checked), 'tenant')}, {amount(tickets, 'ticket')}: everything is found.")

    def _check(self, tenant: Chosen, settle: float) -> IndexVerdict:
        slug, stands = tenant.slug, index_check.report(tenant.repository)
        self._write(f"{slug}: {_described(stands)}.")
        with Progress(self, f"Checking {slug}", last_number(tenant.repository)) as progress:

            def begun(number: int) -> None:
                if number:
                    self._write(f"{slug}: goes on behind ticket {number:,}, where a check had ended.")
                progress.advance(number)

            verdict = index_check.check(
                tenant.repository, settle=settle, begun=begun, advance=progress.advance, say=progress.label
            )
        self._say(slug, verdict)
        return verdict

    def _say(self, slug: str, verdict: IndexVerdict) -> None:
        if verdict.state == index_check.UNKNOWN:
            self._write(f"{slug}: cannot be verified now, because {verdict.why}.")
        for sentence in verdict.damage[:SHOWN]:
            self._write(f"{slug}: {sentence}")
        for one in verdict.missing[:SHOWN]:
            self._write(f"{slug}: missing: “{one.term}” of ticket {one.ticket}")
        for one in verdict.foreign[:SHOWN]:
            self._write(f"{slug}: foreign: “{one.term}” of ticket {one.ticket}, whose text does not have it")
        counted = [(verdict.lacking, "missing"), (verdict.left_over, "foreign")]
        for many, kind in counted:
            if many > SHOWN:
                self._write(f"{slug}: {many:,} postings are {kind} in all.")


def _described(stands: IndexReport) -> str:
    """Say how an index stands, in a line of its own."""
    if not stands.was_built:
        return "nothing was indexed yet"
    return (
        f"{amount(stands.segments, 'segment')} of {amount(stands.blocks, 'block')}, "
        f"{amount(stands.bytes, 'byte')}; "
        f"{amount(stands.tail_items, 'newer item')} of {amount(stands.tail_bytes, 'byte')}"
        + (f"; damaged are {', '.join(stands.damaged)}" if stands.damaged else "")
    )
