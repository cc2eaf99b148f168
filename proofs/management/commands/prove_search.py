"""`manage.py prove_search`: asks a tenant's search thousands of questions whose answers are known."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress, whole_number
from proofs import proof_report, search_proof
from tenants.tenancy import context, tenant_directory

_MANY: Final = {"words": 3000, "prefixes": 1000, "phrases": 500, "mixed": 500}
_SHOWN: Final = 20  # wrong answers


class Command(PortalCommand):
    costs = None  # it does whatever people do
    help = (
        "Ask the search of a tenant random words, prefixes, phrases and mixtures of them, and compare each answer "
        "with a plain recount of the words in the stored texts. Writes nothing, needs no worker; what is written "
        "meanwhile may be called wrong. Exit status: 0 everything was found and nothing else; 1 not so."
    )
    again = "Nothing was written."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="whose search is asked")
        for kind, many in _MANY.items():
            parser.add_argument(
                f"--{kind}", type=whole_number(0), default=many, metavar="N", help="questions (%(default)s)"
            )
        parser.add_argument("--seed", type=int, metavar="S", help="printed, and a new one each time")
        proof_report.add_options(parser, html=False)

    def work(self, options: dict[str, Any]) -> None:
        seed = proof_report.seed(options, self.stdout)
        tenant = context.for_system(tenant_directory.find(options["tenant"]))
        tickets = search_proof.read(tenant.repository)
        if not tickets:
            raise CommandError(f"{tenant.slug} has no tickets.")
        many = {kind: options[kind] for kind in _MANY}
        with Progress(self, "Asking", sum(many.values())) as progress:
            proved = search_proof.prove(tenant, tickets, many=many, seed=seed, advance=progress.advance)
        proof_report.write(options, {"seed": seed, **vars(proved)})
        self.stdout.write(f"{len(tickets):,} tickets.")
        for kind, asked in proved.asked.items():
            self.stdout.write(f"{asked:,} {kind}: {proved.found[kind]:,} of {proved.wanted[kind]:,} tickets found")
        for wrong in proved.wrong[:_SHOWN]:
            self.stdout.write(
                f"{wrong['query']}: missing {wrong['missing']}, ghosts {wrong['ghosts']}, twice {wrong['twice']}"
            )
        if proved.wrong:
            raise CommandError(f"{len(proved.wrong):,} answers are wrong. Keep the seed.")
