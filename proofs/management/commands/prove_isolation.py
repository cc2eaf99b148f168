"""`manage.py prove_isolation`: attacks the running engine as every tenant, and says whether the layers hold."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import NotFound, PortalError, Unavailable
from portal.management.command import PortalCommand, Progress, whole_number
from proofs import proof_report
from proofs.isolation import targets
from proofs.isolation.proof import CannotRun, Proof, document, prove
from proofs.isolation.transport import Unsafe
from tickets.isolation_runs import platform_proofs

CANNOT_RUN = 2


class Command(PortalCommand):
    costs = None  # it does whatever people do
    help = (
        "Prove that no tenant reaches another's data: N randomised hostile requests in the name of each, through "
        "guard and repository, visits of all addresses of the portal and the API, then the same against layers broken "
        "on purpose. Nobody's data change. Exit status: 0 no request crossed, 1 one did, or the attack missed a broken "
        "layer, 2 it could not run. Run it where nobody works meanwhile: what others change would be taken for its own "
        "doing."
    )
    again = "What it made is removed. Run it again with the same --seed for the same requests."

    def add_arguments(self, parser: CommandParser) -> None:
        many, seed = "how many (%(default)s)", "what to draw them from; printed, and a new one each time"
        parser.add_argument("--requests", type=whole_number(1), default=20_000, metavar="N", help=many)
        parser.add_argument("--seed", type=int, metavar="S", help=seed)
        parser.add_argument(
            "--tenant", action="append", default=[], metavar="SLUG", dest="slugs", help="attack these; may be repeated"
        )
        parser.add_argument("--tenants", type=whole_number(1), metavar="M", help="attack the first M of them (all)")
        parser.add_argument("--only", type=_number, metavar="NUMBER", help="make this one attempt of --seed again")
        parser.add_argument("--skip-http", action="store_true", help="leave the portal's pages and the API out")
        parser.add_argument("--keep", action="store_true", help="keep the result, for the owners' pages to show")
        proof_report.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = proof_report.seed(options, self.stdout)
        try:
            found = targets.find(options["slugs"], options["tenants"])
            proof = Proof(seed, options["requests"], found, with_http=not options["skip_http"])
            try:
                prove(proof, partial(Progress, self), only=options["only"] or "")
            finally:
                self._write(proof, options)
        except (CannotRun, NotFound) as error:
            raise CommandError(error.message, returncode=CANNOT_RUN) from error
        except Unsafe as error:
            why = f"The proof itself would have written what it must not, and was stopped: {error}"
            raise CommandError(why, returncode=CANNOT_RUN) from error
        except Unavailable as error:
            why = f"{error.message} Check DYNAMODB_ENDPOINT_URL, and that create_tables has run."
            raise CommandError(why, returncode=CANNOT_RUN) from error
        if options["keep"] and proof.finished and proof.fates:
            try:
                platform_proofs.record(document(proof))
            except PortalError as error:
                self.stderr.write(f"The result could not be kept for the owners' pages: {error.message}")
        self._say(proof, options)

    def _write(self, proof: Proof, options: dict[str, Any]) -> None:
        found = document(proof)
        try:
            proof_report.write(options, found, title="Isolation of tenants")
        except CommandError as error:
            self.stderr.write(str(error))

    def _say(self, proof: Proof, options: dict[str, Any]) -> None:
        found = document(proof)
        counted = found["requests"]
        self.stdout.write(
            f"{counted['hostile']:,} hostile and {counted['honest']:,} honest requests, {counted['visits']:,} visits "
            f"to the portal, {counted['calls']:,} calls of the API, {found['tenants']} tenants, "
            f"{proof.seconds:.0f} s ({counted['per_second']:,}/s)."
        )
        for stop, count in found["stopped_by"].items():
            self.stdout.write(f"  {count:>9,}  {stop}")
        if broken := [fate for fate in found["mutants"] if not fate["control"]]:
            noticed = sum(fate["as_expected"] for fate in broken)
            self.stdout.write(f"{noticed} of {len(broken)} broken layers were noticed.")
        for fate in proof.survivors:
            self.stdout.write(f"  not as expected: {fate.mistake} {fate.killed_by}".rstrip())
        if problem := proof.crossing or proof.refused:
            slugs = options["slugs"] or [t.tenant.slug for t in proof.targets]
            again = f"--seed {proof.seed} --only {problem.number} {' '.join(f'--tenant {slug}' for slug in slugs)}"
            self.stdout.write(f"Attempt {problem.number}: {problem.why}")
            self.stdout.write(json.dumps(problem.request, indent=1, ensure_ascii=False))
            self.stdout.write(f"Make it again: manage.py prove_isolation {again}")
        if not proof.holds and not (options["only"] and problem is None):
            raise CommandError(found["verdict"])
        self.stdout.write(found["verdict"] if not options["only"] else "This attempt does not cross.")


def _number(text: str) -> str:
    if not re.fullmatch(r"(http-|api-)?\d+", text, re.ASCII):
        raise ArgumentTypeError("must be a number as a former run has printed it")
    return text
