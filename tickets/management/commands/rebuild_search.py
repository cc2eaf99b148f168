"""`manage.py rebuild_search`: makes the search index anew, while people search and write."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.management import tenant_option
from tickets.management.tenant_option import Chosen
from tickets.search import index_check, index_rebuild
from tickets.verification.recount import last_number


class Command(PortalCommand):
    costs = cost(
        get="counter, finished shard, recount, shard, slug, tenant",
        query="aggregate, search directory, search segment, ticket",
        write="marker, recount, search directory, search segment",
        per="ticket",
        reads=100,
        writes=30,
        each=(0, 4, 6),
    )
    help = (
        "Make the search index of tenants anew from the stored texts: for tickets of before there was a search, for a "
        "new version of the tokenizer, or where verify_search finds anything missing or foreign. People search and "
        "write meanwhile and miss nothing. It may be stopped at any time and goes on some seconds before; a second "
        "one takes over from the first. With --erase nothing of the old index is left: delete or change what is to be "
        "forgotten first; it waits for the stream worker, begins anew each time, deletes the old blocks at once and "
        "verifies. Exit status 1 where the worker makes no progress, another rebuild has taken over, or, after an "
        "erasure, the index still holds anything that no stored text has."
    )
    again = (
        f"Run it again; it goes on at most {index_rebuild.SHARE_SECONDS:.0f} seconds before, or with --erase begins "
        "anew; everything is found meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        tenant_option.add_arguments(parser, "--timeout", default=index_rebuild.TIMEOUT)
        parser.add_argument("--erase", action="store_true", help="leave nothing of what the index has held before")

    def work(self, options: dict[str, Any]) -> None:
        tenants = list(tenant_option.chosen(options))
        if not tenants:
            raise CommandError("There are no tenants.")
        for tenant in tenants:
            self._rebuild(tenant, erase=options["erase"], timeout=options["timeout"])
            if options["erase"]:
                self._verify(tenant, timeout=options["timeout"])

    def _rebuild(self, tenant: Chosen, *, erase: bool, timeout: float) -> None:
        slug = tenant.slug
        with Progress(self, f"Rebuilding {slug}", last_number(tenant.repository)) as progress:

            def begun(number: int) -> None:
                if number:
                    self.stdout.write(f"{slug}: goes on behind ticket {number:,}, where a rebuild had ended.")
                progress.advance(number)

            done = index_rebuild.rebuild(
                tenant.repository,
                erase=erase,
                timeout=timeout,
                begun=begun,
                advance=progress.advance,
                say=lambda what: progress.wait(f"{slug}: {what}"),
            )
        swept = f", {amount(done.swept, 'block')} of dead writers deleted" if done.swept else ""
        self.stdout.write(
            f"{slug}: {amount(done.tickets, 'ticket')} read into "
            f"{amount(done.segments, 'new segment')}, {amount(done.removed, 'old one')} "
            f"removed{swept}."
        )

    def _verify(self, tenant: Chosen, *, timeout: float) -> None:
        with Progress(self, f"Checking {tenant.slug}", last_number(tenant.repository)) as progress:
            verdict = index_check.check(tenant.repository, settle=timeout, advance=progress.advance)
        if verdict.state == index_check.UNKNOWN:
            raise CommandError(f"{tenant.slug} cannot be verified now, because {verdict.why}.")
        if verdict.lacking or verdict.left_over or verdict.damage:
            raise CommandError(
                f"{tenant.slug}: {verdict.left_over:,} postings are of no stored text, {verdict.lacking:,} are "
                "missing. See verify_search, and run it again."
            )
        self.stdout.write(f"{tenant.slug}: nothing is left of what is not stored, and nothing is missing.")
