"""`manage.py create_tenant`: a tenant, and who owns it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from portal.errors import NotFound
from portal.management.command import PortalCommand
from tenants.identity import accounts
from tenants.identity.models import User
from tenants.provisioning import tenant_lifecycle


class Command(PortalCommand):
    help = "Create a tenant. A name or slug that is taken is refused with exit status 1."
    again = "The tenant may exist already; run it again to see."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="as people see it, up to 80 characters")
        parser.add_argument("--slug", default="", help="1 to 40 of a-z, 0-9 and inner hyphens (made from the name)")
        parser.add_argument("--owner", metavar="EMAIL", help="the account that owns it; see create_user")
        parser.add_argument(
            "--shards",
            type=int,
            metavar="N",
            help=f"partitions per status in the ticket indexes, 1 to 16 (TICKET_SHARDS, now {settings.TICKET_SHARDS}); "
            "more for tenants with more than some 1,000 writes per second",
        )

    def work(self, options: dict[str, Any]) -> None:
        owner = account(options["owner"]) if options["owner"] else None
        tenant = tenant_lifecycle.create(
            name=options["name"], slug=options["slug"], owner=owner, shards=options["shards"]
        )
        whose = f", owned by {owner.email}" if owner else ", which nobody owns yet: see add_member"
        self.stdout.write(f"The tenant {tenant.name} has the slug {tenant.slug} and the id {tenant.tenant_id}{whose}.")


def account(email: str) -> User:
    """The account with this address. Raises NotFound with the way to make one."""
    user = accounts.find_by_email(email)
    if user is None:
        raise NotFound(f"There is no account with the address {email}. Make it with create_user.")
    return user
