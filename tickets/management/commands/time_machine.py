"""`manage.py time_machine`: tickets as they were at a moment, for operators; with --restore, made so again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Invalid
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from portal.web import moments
from tenants.audit_trail.recording import Actor
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import Definitions
from tickets.desk.changing import TicketState
from tickets.time_machine import past_tickets, presenters, restoring
from tickets.time_machine.past_tickets import PastFilter, ThenAndNow
from tickets.verification.recount import last_number

BY = Actor(origin="time_machine")


class Command(PortalCommand):
    costs = cost(
        get="counter, member, setup, slug, tenant, ticket",
        query="member, ticket",
        write="audit row, ticket",
        per="ticket",
        reads=20,
        writes=10,
        each=(0, 10, 25),
    )
    help = (
        "Print what is different in tickets of a tenant since a moment. With --restore, make them what they were, each "
        "by a change that its history and the tenant's audit trail tell of. Exit status: 0 done; 1 stopped by an "
        "error, or a ticket could not be restored whole."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", metavar="SLUG", help="whose tickets")
        parser.add_argument("tickets", metavar="NUMBER", type=int, nargs="*", help="up to 50 tickets")
        parser.add_argument("--at", required=True, metavar="MOMENT", help="2026-11-20T10:00:00, in UTC")
        parser.add_argument("--status", default="", help="in place of numbers: tickets that had this status then,")
        parser.add_argument("--assignee", default="", metavar="NAME", help="were assigned to somebody of this name,")
        parser.add_argument("--tag", default="", help="had this tag,")
        parser.add_argument("--changed", action="store_const", const="yes", default="", help="and are different now")
        parser.add_argument("--restore", action="store_true", help="restore them")

    def work(self, options: dict[str, Any]) -> None:
        stored = tenant_directory.find(options["tenant"])
        if options["restore"]:
            tenant_directory.refuse_closed(stored)
        tenant = context.for_system(stored)
        at = moments.moment(options["at"])
        only = PastFilter.of(options)
        if bool(options["tickets"]) == bool(only.params):
            raise Invalid("Name tickets by their numbers, or by what they were.")
        numbers = _like(tenant, at, only) if only.params else list(dict.fromkeys(options["tickets"]))
        if only.params and not numbers:
            raise Invalid("No ticket was like that at this moment.")
        if not numbers or min(numbers) < 1 or len(numbers) > restoring.MOST:
            raise Invalid(f"Name 1 to {restoring.MOST} tickets; these are {len(numbers)}.")
        self.counted = len(numbers)
        found = restoring.look(tenant, numbers, at)
        for one in found:
            self.stdout.write("\n".join(_lines(one, definitions.of(tenant))))
        if options["restore"]:
            self._restore(tenant, found, at)

    def _restore(self, tenant: TenantContext, found: list[ThenAndNow], at: str) -> None:
        states = [TicketState.of(one.summary) for one in found]
        done = restoring.restore(tenant, states, at, by=BY)
        said, others = presenters.outcome(done, at)
        self.stdout.write("\n".join([said, *others]))
        if not all(one.is_whole for one in done):
            raise CommandError("Not all tickets are what they were.")


def _like(tenant: TenantContext, at: str, only: PastFilter) -> list[int]:
    """Return the numbers of all tickets that a filter takes, the highest first; a few more than can be restored."""
    found: list[int] = []
    first: int | None = last_number(tenant.repository)
    while first and len(found) <= restoring.MOST:
        page = past_tickets.page(tenant, at, first=first, only=only.takes)
        found += [one.now.number for one in page.tickets]
        first = page.lower
    return found


def _lines(one: ThenAndNow, defined: Definitions) -> Iterator[str]:
    """Yield a line for the ticket, and one for each field that differs."""
    if one.then is None:
        yield f"#{one.now.number} did not exist."
        return
    fields = [field for field in presenters.differences(one, defined) if field["differs"]]
    yield f"#{one.now.number} {'has changed' if fields else 'is as it was'}: {one.then.title}"
    yield from (f"  {field['label']}: {field['then']!r}, now {field['now']!r}" for field in fields)
