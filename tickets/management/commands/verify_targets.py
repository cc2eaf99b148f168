"""`manage.py verify_targets`: computes receipts of missed targets anew from the histories of tickets."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.tenancy import context, tenant_directory
from tickets.sla import tracking
from tickets.ticket import stored
from tickets.ticket.stored import CounterItem


class Command(PortalCommand):
    costs = cost(get="counter, slug, tenant", query="ticket", per="ticket", reads=5, each=(0, 1, 0))
    help = (
        "Compute the clocks of a desk's tickets and the receipts of missed targets anew, from their histories and the "
        "versions of the targets alone, and compare them with what is stored. Status 1: something differs. One Query "
        "for each ticket."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", required=True)
        parser.add_argument("--ticket", metavar="N", type=int, help="this one alone; prints its receipts as JSON")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["tenant"]))
        counter = tenant.repository.get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)
        last, receipts, faults = int(counter.last) if counter else 0, 0, list[str]()
        if (number := options["ticket"]) is not None:
            if not 1 <= number <= last:
                raise CommandError(f"There is no ticket {number}.")
            found = tracking.check(tenant, number)
            for receipt in found.receipts:
                self.stdout.write(receipt)
            if not found.receipts and not found.faults:
                self.stdout.write(f"Ticket #{number} has missed no target.")
            self._end(found.faults)
            return
        with Progress(self, "computing", last) as progress:
            for number in range(1, last + 1):
                found = tracking.check(tenant, number)
                receipts, faults = receipts + len(found.receipts), faults + found.faults
                progress.advance()
        self.stdout.write(f"{amount(last, 'ticket')}, {amount(receipts, 'receipt')}.")
        self._end(faults)

    def _end(self, faults: list[str]) -> None:
        for fault in faults:
            self.stdout.write(fault)
        if faults:
            raise CommandError(f"{amount(len(faults), 'difference')} found.")
