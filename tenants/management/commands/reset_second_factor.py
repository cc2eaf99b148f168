"""`manage.py reset_second_factor`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.errors import NotFound
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.sign_in import accounts, factors


class Command(PortalCommand):
    costs = cost(
        get="account, address",
        query="second factor, sessions by person",
        write="account, audit row, second factor",
        reads=10,
        writes=25,
    )
    help = (
        "Remove all second factors and recovery codes of somebody who has lost them. Every session of the account "
        "ends, the person is told by mail, and signs in by the password alone until another factor is added. Make sure "
        "first that it is the person who asks. If the account has no second factor, the exit status is 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", help="the e-mail address of the account")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept in the platform's audit trail")

    def work(self, options: dict[str, Any]) -> None:
        user_id = accounts.id_of(options["address"])
        if user_id is None:
            raise NotFound(f"{options['address']} has no account.")
        change = factors.reset(user_id, reason=options["reason"], by=Actor(origin="reset_second_factor"))
        self.stdout.write(f"{change.user.email} has no second factor any more.")
