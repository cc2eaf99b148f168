"""`manage.py delivery`: let one tenant's deliveries wait, drain, go on or drop."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from delivery.queues import holds
from delivery.queues.holds import HoldApplier
from portal.management.command import PortalCommand
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.tenancy import tenant_directory

BY = Actor(origin="delivery")
_ACTS = {
    "pause": holds.pause,
    "drain": holds.drain,
    "resume": holds.resume,
    "drop": holds.drop,
}


class Command(PortalCommand):
    costs = cost(
        get="hold of deliveries, slug, tenant",
        query="hold of deliveries, outbox rows by status, placed tenant",
        write="audit row, hold of deliveries",
        per="delivery",
    )
    help = (
        "Say whether a tenant's deliveries go out (show), or change that. pause: everything waits. drain: what was "
        "written until now goes out, what comes later waits. resume: everything goes out, what waited too. drop: what "
        "was written until now is not delivered. No other tenant is touched. Workers obey within some seconds; what is "
        "being delivered at that moment is finished. What waits longer than 30 days is lost."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["show", *_ACTS])
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="the tenant")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the tenant's audit trail")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["tenant"])
        if options["action"] != "show":
            _ACTS[options["action"]](tenant, by=BY, reason=options["reason"])
            changed = HoldApplier().step()
            self.stdout.write(f"{amount(changed, 'event was', 'events were')} moved or dropped.")
        self.stdout.write(f"Deliveries of {tenant.name} are {holds.said(holds.hold_of(tenant.tenant_id))}.")
