"""`manage.py prove_search`: asks a tenant's search thousands of questions whose answers are known."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import whole_number
from proofs import torture_options
from proofs.search import query_proof, ranking_quality, stored_tickets
from proofs.search.query_proof import Proved, Ranked
from proofs.search.questions import KINDS
from proofs.search.stored_tickets import StoredTicket
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.importing.importer import Import

_MANY: Final = {"words": 3000, "prefixes": 1000, "phrases": 500, "mixed": 500}
_SHOWN: Final = 20  # wrong answers


class Command(PortalCommand):
    help = (
        "Ask the search of a tenant random words, prefixes, phrases and mixtures of them, and hold each whole answer "
        "against SQLite's FTS5, which gets the same stored texts, and against a plain recount of the words. With an "
        "archive that the tenant has imported and judgments of its rows, also say how good the order is, ours and "
        "FTS5's. Writes nothing, needs no worker; what is written meanwhile may be called wrong. Exit status: 0 "
        "everything was found and nothing else, and the order is no worse than FTS5's; 1 not so."
    )
    again = "Nothing was written."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="whose search is asked")
        for kind in KINDS:
            parser.add_argument(
                f"--{kind}", type=whole_number(0), default=_MANY[kind], metavar="N", help="questions (%(default)s)"
            )
        parser.add_argument("--archive", type=Path, metavar="FILE", help="an archive that the tenant has imported")
        parser.add_argument("--judgments", type=Path, metavar="FILE", help="which rows of it are relevant to what")
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        if bool(options["archive"]) != bool(options["judgments"]):
            raise CommandError("--archive and --judgments go together.")
        seed = torture_options.seed_of(options, self.stdout)
        tenant = context.for_system(tenant_directory.find(options["tenant"]))
        tickets = stored_tickets.read(tenant.repository)
        if not tickets:
            raise CommandError(f"{tenant.slug} has no tickets.")
        self.stdout.write(f"{len(tickets):,} tickets.")
        many = {kind: options[kind] for kind in KINDS}
        started = time.monotonic()
        with Progress(self, "Asking", sum(many.values())) as progress:
            proved = query_proof.prove(tenant, tickets, many=many, seed=seed, advance=progress.advance)
        ranked = self._rank(tenant, tickets, options) if options["archive"] else None
        torture_options.write_figures(_document(seed, proved, ranked), options)
        self._say(proved, time.monotonic() - started, ranked)

    def _rank(self, tenant: TenantContext, tickets: dict[int, StoredTicket], options: dict[str, Any]) -> Ranked:
        ticket_of: dict[int, int] = {}

        def placed(kind: str, row: int, ticket: int) -> None:
            ticket_of[row] = ticket

        Import(tenant, options["archive"], dry_run=True, placed=placed).run()
        if not ticket_of:
            raise CommandError(f"{tenant.slug} has not imported {options['archive'].name}.")
        judged = ranking_quality.read_judgments(options["judgments"])
        return query_proof.rank(tenant, tickets, judged, ticket_of=ticket_of)

    def _say(self, proved: Proved, seconds: float, ranked: Ranked | None) -> None:
        for kind in proved.asked:
            self.stdout.write(
                f"{proved.asked[kind]:,} {kind}: {proved.found[kind]:,} of {proved.wanted[kind]:,} tickets found, "
                f"recall {proved.recall(kind):.6g}"
            )
        self.stdout.write(f"Asked in {seconds:,.0f} s.")
        if ranked:
            self.stdout.write(
                f"NDCG@10 over {len(ranked.by_query)} judged queries: {ranked.ours:.3f}; FTS5's bm25 "
                f"{ranked.fts5:.3f}, with stemming and the best weights {ranked.fts5_best:.3f}."
            )
        for one in proved.wrong[:_SHOWN]:
            self.stdout.write(f"{one.query}: missing {one.missing}, ghosts {one.ghosts}, twice {one.twice}")
        if proved.wrong:
            raise CommandError(f"{len(proved.wrong):,} answers are wrong. Keep the seed.")
        if ranked and ranked.ours < ranked.fts5:
            raise CommandError("The order is worse than FTS5's.")


def _document(seed: int, proved: Proved, ranked: Ranked | None) -> dict[str, Any]:
    return {"seed": seed, **asdict(proved), "ranked": asdict(ranked) if ranked else None}
