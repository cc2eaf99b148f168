"""`manage.py create_operator`: an account for somebody who runs the platform."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.errors import Conflict
from tenants.audit_trail.recording import Actor
from tenants.identity import accounts
from tenants.management.commands import create_user


class Command(create_user.Command):
    help = (
        "Create the account of a platform operator, who signs in as everybody does and finds the admin at /admin/. "
        "An address that has an account already becomes an operator's with --existing. The password is taken as "
        "create_user takes it. An account that is one already is refused with exit status 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address that the person signs in with")
        parser.add_argument("--name", default="", help="as others see it, up to 100 characters; not with --existing")
        parser.add_argument("--existing", action="store_true", help="make an operator of an account that there is")
        parser.add_argument("--password-env", metavar="VAR", help="the environment variable that holds the password")

    def work(self, options: dict[str, Any]) -> None:
        if not options["existing"]:
            super().work(options | {"operator": True})
            return
        user = accounts.find_by_email(options["email"])
        if user is None:
            raise Conflict(f"{options['email']} has no account; leave --existing away to make one.")
        accounts.set_operator(user.id, True, by=Actor(origin="create_operator"))
        self.stdout.write(f"{user.name} is an operator now; it counts at their next click.")
