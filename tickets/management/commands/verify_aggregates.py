"""`manage.py verify_aggregates`: recounts the tickets and says where the aggregates differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Conflict
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.management import tenant_option
from tickets.management.commands.rebuild_aggregates import run_rebuild
from tickets.management.tenant_option import Chosen
from tickets.verification import rebuild, recount, verify
from tickets.verification.rebuild import NotCounted, WorkerAway
from tickets.verification.verify import Difference, Verdict

CANNOT_TELL = 3
SHOWN = 40  # differences of one tenant; --json has them all
BY = "verify_aggregates"


@dataclass(frozen=True)
class Checked:
    """A tenant, what was verified last, what had been wrong before a repair, and why that failed."""

    slug: str
    verdict: Verdict
    wrong: list[Difference]
    failure: str = ""


class Command(PortalCommand):
    costs = cost(
        get="aggregate, counter, finished shard, recount, shard, slug, tenant, ticket",
        query="aggregate, dead letter, recount, tenant by name",
        write="aggregate, counter, marker, recount, ticket",
        per="ticket",
        reads=60,
        writes=20,
        each=(0, 5, 3),
    )
    help = (
        "Recount the tickets of tenants and compare with the aggregates that the stream worker keeps. Says beforehand "
        "how many read units that takes. Changes nothing, unless --repair is given; then tenants that drift are "
        "rebuilt, and verified once more. One verification of a tenant runs at a time, and one that was broken off "
        "is gone on with. Exit status: 0 all right, now at least; 1 drift, named by tenant, item and count, a repair "
        "that failed, or tickets that cannot be counted; 3 cannot be told now, because the numbers keep changing or "
        "the stream worker makes no progress."
    )
    again = "Run it again, and it goes on where it was."

    def add_arguments(self, parser: CommandParser) -> None:
        tenant_option.add_arguments(parser, "--settle", default=verify.SETTLE)
        parser.add_argument(
            "--take-over", action="store_true", help="end another verification, or one that died and left its mark"
        )
        parser.add_argument("--repair", action="store_true", help="rebuild the tenants that drift")
        parser.add_argument("--price", action="store_true", help="say what it would cost, and do nothing")
        parser.add_argument("--json", action="store_true", help="print the result for machines")

    def work(self, options: dict[str, Any]) -> None:
        self._write = self.stderr.write if options["json"] else self.stdout.write
        tenants = list(tenant_option.chosen(options))
        price = sum(verify.price(tenant.repository) for tenant in tenants)
        self._write(f"{amount(len(tenants), 'tenant')}: up to {price:,.0f} read units for each recount.")
        if options["price"]:
            return
        checked = [self._check(tenant, options) for tenant in tenants]
        if options["json"]:
            self.stdout.write(json.dumps([_document(one) for one in checked], indent=1))
        self._conclude(checked)

    def _conclude(self, checked: list[Checked]) -> None:
        failed = [one for one in checked if one.failure]
        drifting = [one.slug for one in checked if one.verdict.state == verify.DRIFT and not one.failure]
        unknown = [one.slug for one in checked if one.verdict.state == verify.UNKNOWN and not one.failure]
        if failed:
            raise CommandError(" ".join(f"{one.slug} was not repaired: {one.failure}" for one in failed))
        if drifting:
            raise CommandError(f"The aggregates of {_names(drifting)} are wrong. Run it with --repair.")
        if unknown:
            raise CommandError(f"{_names(unknown)} cannot be verified now.", returncode=CANNOT_TELL)
        uncountable = sum(len(one.verdict.uncountable) for one in checked)
        if uncountable:
            raise CommandError(f"{amount(uncountable, 'ticket')} cannot be counted, and in no number.")
        tickets = sum(one.verdict.tickets for one in checked)
        repaired = [one.slug for one in checked if one.wrong]
        state = f"{_names(repaired)} had drifted and are right now" if repaired else "nothing is wrong"
        self._write(f"{amount(len(checked), 'tenant')}, {amount(tickets, 'ticket')}: {state}.")

    def _check(self, tenant: Chosen, options: dict[str, Any]) -> Checked:
        """Verify a tenant, and where that is wanted rebuild it and verify it again."""
        try:
            with verify.held(tenant.repository, by=BY, take_over=options["take_over"]) as renew:
                verdict = self._verify(tenant, options, renew)
                if verdict.state != verify.DRIFT or not options["repair"]:
                    return Checked(tenant.slug, verdict, [])
                wrong = verdict.differences
                try:
                    run_rebuild(self, tenant, timeout=rebuild.TIMEOUT, write=self._write)
                except (WorkerAway, NotCounted) as error:
                    return Checked(tenant.slug, verdict, wrong, error.message)
                verdict = self._verify(tenant, options, renew)
        except Conflict as error:
            verdict = Verdict(verify.UNKNOWN, 0, why=error.message[:1].lower() + error.message[1:].rstrip("."))
            self._say(tenant.slug, verdict)
            return Checked(tenant.slug, verdict, [])
        failure = "" if verdict.state == verify.OK else "it is not right after the rebuild either; see above."
        return Checked(tenant.slug, verdict, wrong, failure)

    def _verify(self, tenant: Chosen, options: dict[str, Any], renew: Callable[[], None]) -> Verdict:
        repository = tenant.repository
        with Progress(self, f"Recounting {tenant.slug}", recount.last_number(repository)) as progress:

            def begun(number: int) -> None:
                if number:
                    self._write(f"{tenant.slug}: goes on behind ticket {number:,}, where a verification had ended.")
                progress.advance(number)

            def advance(numbers: int) -> None:
                progress.advance(numbers)
                renew()

            verdict = verify.verify(repository, settle=options["settle"], begun=begun, advance=advance)
        self._say(tenant.slug, verdict)
        return verdict

    def _say(self, slug: str, verdict: Verdict) -> None:
        if verdict.state == verify.UNKNOWN:
            self._write(f"{slug}: cannot be verified now, because {verdict.why}.")
        for one in verdict.differences[:SHOWN]:
            self._write(f"{slug}: {one.item} {one.count}: stored {one.stored:,}, recounted {one.recounted:,}")
        if len(verdict.differences) > SHOWN:
            self._write(f"{slug}: and {len(verdict.differences) - SHOWN:,} more counts")
        for number in verdict.uncountable[:SHOWN]:
            self._write(f"{slug}: ticket {number} holds what cannot be counted, and is in no number.")


def _document(checked: Checked) -> dict[str, Any]:
    repaired = bool(checked.wrong) and not checked.failure
    wrong = [asdict(one) for one in checked.wrong]
    return {"tenant": checked.slug, **asdict(checked.verdict), "repaired": repaired, "was_wrong": wrong}


def _names(slugs: list[str]) -> str:
    return ", ".join(slugs[:10]) + (f" and {len(slugs) - 10} more" if len(slugs) > 10 else "")
