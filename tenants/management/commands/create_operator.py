"""`manage.py create_operator`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Conflict
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.management.commands import create_user
from tenants.sign_in import accounts


class Command(create_user.Command):
    costs = cost(get="account, address", write="account, address, audit row", reads=10, writes=20)
    help = (
        "Create the account of a platform operator, who signs in like everybody else and finds the admin at /admin/. "
        "With --existing, make somebody who has an account an operator. The password is read as create_user reads it. "
        "If the account is an operator's already, nothing changes and the exit status is 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address that the person signs in with")
        parser.add_argument(
            "--name", default="", help="the name that others see, up to 100 characters; not with --existing"
        )
        parser.add_argument("--existing", action="store_true", help="use the account that has this address")
        parser.add_argument(
            "--password-env",
            metavar="VAR",
            help="the environment variable that holds the password; not with --existing",
        )

    def work(self, options: dict[str, Any]) -> None:
        if not options["existing"]:
            super().work(options | {"operator": True})
            return
        if options["name"] or options["password_env"]:
            raise CommandError(
                "--name and --password-env are for a new account, and not with --existing.", returncode=2
            )
        user = accounts.find_by_email(options["email"])
        if user is None:
            raise Conflict(f"{options['email']} has no account. Leave out --existing to create one.")
        accounts.set_operator(user.id, True, by=Actor(origin="create_operator"))
        self.stdout.write(f"{user.name} is now an operator, from their next click on.")
