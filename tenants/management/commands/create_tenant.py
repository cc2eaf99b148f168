"""`manage.py create_tenant`."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from portal.errors import NotFound
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import invitations, mails
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import placements


class Command(PortalCommand):
    costs = cost(
        get="slug, suppressed address",
        query="given queues",
        write="audit row, given queues, invitation, invitation link, invited, placed tenant, queue set, slug, tenant, "
        "tenant by name",
        reads=5,
        writes=50,
    )
    help = "Create a tenant. If its slug is taken, nothing is created and the exit status is 1."
    again = "The tenant may have been created. Run the command again to find out."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name that people see, up to 80 characters")
        parser.add_argument("--slug", default="", help="1-40 lowercase letters, digits or hyphens (made from the name)")
        parser.add_argument(
            "--owner", metavar="EMAIL", help="the address to which the invitation of its first owner goes"
        )
        parser.add_argument(
            "--shards",
            type=int,
            metavar="N",
            help=f"partitions per status in the ticket indexes, 1-16 (TICKET_SHARDS: {settings.TICKET_SHARDS}); "
            "a tenant with more than about 500 writes per second needs several",
        )
        parser.add_argument(
            "--on",
            metavar="PLACEMENT",
            help="where its content lies: pool, bridge (tables of its own) or silo/NAME (those at a site of SILOS); "
            "as the standard plan asks, if it is not given",
        )

    def work(self, options: dict[str, Any]) -> None:
        write = partial(mails.by_provider, None)
        owner = invitations.FirstOwner(options["owner"], write) if options["owner"] else None
        tenant = tenant_lifecycle.create(
            name=options["name"],
            slug=options["slug"],
            invited=owner,
            shards=options["shards"],
            placement=placements.chosen(options["on"]) if options["on"] else None,
            by=Actor(origin="create_tenant"),
        )
        ownership = (
            f"{owner.address} is invited as its owner." if owner else "It has no owner yet; add one with add_member."
        )
        self.stdout.write(
            f"Created {tenant.name} with the slug {tenant.slug} and the id {tenant.tenant_id}. {ownership}"
        )


def account(email: str) -> User:
    """Return the account with this address. Raises NotFound, with the command that creates one."""
    user = accounts.find_by_email(email)
    if user is None:
        raise NotFound(f"No account has the address {email}. Create it with create_user.")
    return user
