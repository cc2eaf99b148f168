"""`manage.py seed`: a demonstration to look at, or as much of one as a load test needs."""

from __future__ import annotations

import time
from argparse import ArgumentTypeError
from datetime import date
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from portal import clock
from portal.management.command import PortalCommand, Progress, whole_number
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.seeding import cast, demonstration


class Command(PortalCommand):
    costs = cost(
        get="account, article, counter, help centre, import source, looks, public form, slug, tenant, ticket",
        query="certificate, closing tenant, given queues, help centre, member, ready answer",
        write="account, address, address of a requester, article, audit row, counter, given queues, help centre, "
        "import source, looks, member, membership, public form, queue set, ready answer, requester, slug, tenant, "
        "tenant by name, ticket",
        per="ticket",
        reads=200,
        writes=2500,
        each=(0, 1, 16),
        room="desks with all their people",
    )
    help = (
        "Fill the database with invented tenants, people and tickets: Acme, Globex and others, with alice@example.com "
        "and her colleagues to sign in as. Their password is the setting DEMO_PASSWORD. The "
        "same arguments give the same content. Run again after an interruption, it goes on; run again when done, it "
        "does nothing. It needs DEBUG=1."
    )
    again = "Run it again with the same arguments to continue."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--tenants",
            type=whole_number(1, 10_000),
            default=cast.DEFAULT_TENANTS,
            metavar="N",
            help="how many (%(default)s)",
        )
        parser.add_argument(
            "--tickets",
            type=whole_number(0, 1_000_000),
            metavar="M",
            help="in each tenant (240 in Acme, fewer in the others)",
        )
        parser.add_argument(
            "--users",
            type=whole_number(0, 10_000),
            default=cast.DEFAULT_USERS,
            metavar="U",
            help="invented members of each tenant, beside the named ones (%(default)s)",
        )
        parser.add_argument("--seed", type=int, default=1, metavar="S", help="what to invent from (%(default)s)")
        parser.add_argument(
            "--today", type=_day, metavar="DATE", help="the day before which everything happened (today, UTC)"
        )
        parser.add_argument(
            "--if-empty",
            action="store_true",
            help="do nothing where a demonstration of any size is complete, and leave out tenants that were purged",
        )

    def work(self, options: dict[str, Any]) -> None:
        demonstration.refuse_in_production()
        seed, users = options["seed"], options["users"]
        wanted = {"seed": seed, "tenants": options["tenants"], "tickets": options["tickets"], "users": users}
        if options["if_empty"] and demonstration.is_complete(next(cast.desks(**wanted))):
            self.stdout.write("The demonstration is there already.")
            return
        # A desk that was purged stays so, however often the demonstration starts again.
        purged = demonstration.purged() if options["if_empty"] else set()
        desks = [desk for desk in cast.desks(**wanted) if desk.tenant_id not in purged]
        started = time.monotonic()
        with Progress(self, "Seeding", sum(desk.tickets for desk in desks)) as progress:
            outcome = demonstration.run(
                desks,
                seed=seed,
                users=users,
                day=options["today"] or clock.now().date(),
                password=settings.DEMO_PASSWORD,
                advance=progress.advance,
            )
        seconds = time.monotonic() - started
        if not outcome.tenants:
            self.stdout.write("All of it is there already; nothing was written.")
        elif not outcome.tickets and not outcome.accounts:
            self.stdout.write("All tickets and accounts are there already.")
        else:
            added = f"{amount(outcome.tickets, 'ticket')} and {amount(outcome.accounts, 'account')}"
            speed = f"{outcome.tickets / max(seconds, 0.001):,.0f} tickets/s"
            self.stdout.write(f"Added {added} to {amount(outcome.tenants, 'tenant')} in {seconds:.1f} s ({speed}).")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("must be a date such as 2026-01-31") from None
