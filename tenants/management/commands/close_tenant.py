"""`manage.py close_tenant`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal import clock
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import closing_mails, desk_closing
from tenants.management.tenant_change import TenantChangeCommand
from tenants.tenancy.stored import TenantItem, TenantStatus


class Command(TenantChangeCommand):
    costs = cost(
        get="slug, tenant",
        query="member",
        write="audit row, closing tenant, tenant, tenant by name",
        reads=10,
        writes=25,
    )
    help = (
        "Close a tenant: it can only be read from now on, its owners get a mail, and once the grace is over it may be "
        "purged. Nothing is deleted by this; reopen_tenant undoes it. A tenant that is closing already is left so."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--days", type=int, metavar="N", help="days of grace (CLOSING_DAYS)")

    def change(self, tenant: TenantItem, options: dict[str, Any], *, by: Actor) -> str:
        is_closing = tenant.status == TenantStatus.CLOSING
        if is_closing and options["days"] is not None:
            raise CommandError(
                f"{tenant.name} is already closed. To give it another grace: reopen_tenant {tenant.slug} first."
            )
        if is_closing:
            until, state = clock.parse(tenant.closes_at), "already closed"
        else:
            state = "closed"
            until = desk_closing.close(
                tenant.tenant_id, by=by, write=closing_mails.to_owners, reason=options["reason"], days=options["days"]
            )
        return f"{tenant.name} is {state}. It may be deleted from {until:%-d %B %Y, %H:%M} UTC on."
