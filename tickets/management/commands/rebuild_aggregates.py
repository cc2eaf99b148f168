"""`manage.py rebuild_aggregates`: makes the aggregates right, while people go on working."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.management import tenant_option
from tickets.management.tenant_option import Chosen
from tickets.verification import rebuild, recount
from tickets.verification.rebuild import Rebuilt

SHOWN = 40  # counts that were wrong, of one tenant


class Command(PortalCommand):
    costs = cost(
        get="aggregate, counter, finished shard, shard, slug, tenant, ticket",
        query="aggregate, dead letter, tenant by name",
        write="aggregate, counter, marker, ticket",
        per="ticket",
        reads=70,
        writes=45,
        each=(0, 5, 6),
    )
    help = (
        "Count the aggregates of tenants anew, through the stream and while people go on working: each ticket is "
        "touched once, and what is left of the old counts is what was wrong. Costs two write units per KB of each "
        "ticket's summary. Needs a running stream worker. Exit status 1 where that makes no progress, and the numbers "
        "are then what they were, or where a ticket cannot be counted. It may be stopped at any time; run again, it "
        "begins anew, which is safe."
    )
    again = "Run it again; nothing is wrong meanwhile, and it begins anew."

    def add_arguments(self, parser: CommandParser) -> None:
        tenant_option.add_arguments(parser, "--timeout", default=rebuild.TIMEOUT)

    def work(self, options: dict[str, Any]) -> None:
        done = 0
        for tenant in tenant_option.chosen(options):
            run_rebuild(self, tenant, timeout=options["timeout"], write=self.stdout.write)
            done += 1
        if not done:
            raise CommandError("There are no tenants.")


def run_rebuild(command: PortalCommand, tenant: Chosen, *, timeout: float, write: Callable[[str], object]) -> Rebuilt:
    """Rebuild one tenant and write what was wrong, line by line."""
    repository, slug = tenant.repository, tenant.slug
    with Progress(command, f"Rebuilding {slug}", recount.last_number(repository)) as progress:
        done = rebuild.rebuild(
            repository,
            timeout=timeout,
            advance=progress.advance,
            say=lambda what: progress.wait(f"{slug}: {what}"),
        )
    for one in done.removed[:SHOWN]:
        wrong = f"{abs(one.stored):,} too {'many' if one.stored > 0 else 'few'}"
        write(f"{slug}: {one.item} {one.count}: {wrong}, corrected")
    if len(done.removed) > SHOWN:
        write(f"{slug}: and {amount(len(done.removed) - SHOWN, 'more count')}")
    dropped = (
        f", {amount(done.dead_letters, 'dead letter')} of tickets that are counted now dropped"
        if done.dead_letters
        else ""
    )
    found = {0: "nothing was wrong", 1: "1 count was wrong"}.get(
        len(done.removed), amount(len(done.removed), "count was wrong", "counts were wrong")
    )
    write(f"{slug}: {amount(done.tickets, 'ticket')} counted anew, {found}{dropped}.")
    return done
