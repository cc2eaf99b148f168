"""`manage.py create_user`."""

from __future__ import annotations

import getpass
import os
import sys
from typing import Any, Final

from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.core.management.base import CommandParser
from django.core.validators import validate_email

from portal import plain_text
from portal.errors import Conflict, Invalid
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User

ATTEMPTS: Final = 3
NAME_LIMIT: Final = 100  # characters
PASSWORD_LIMIT: Final = 1000  # characters, as the forms have it


class Command(PortalCommand):
    costs = cost(get="account, address", write="account, address, audit row", reads=6, writes=20)
    help = (
        "Create an account. The password comes from the environment variable that --password-env names. Without that "
        "option it is asked for twice on a terminal, and is otherwise the first line of stdin. If the address has an "
        "account, nothing is created and the exit status is 1."
    )
    again = "The account may have been created. Run the command again to find out."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address that the person signs in with")
        parser.add_argument("--name", required=True, help="the name that others see, up to 100 characters")
        parser.add_argument(
            "--operator", action="store_true", help="let the person use the operators' admin, for all tenants"
        )
        parser.add_argument("--password-env", metavar="VAR", help="the environment variable that holds the password")

    def work(self, options: dict[str, Any]) -> None:
        person = candidate(options["email"], options["name"])
        if options["password_env"]:
            password = checked(from_environment(options["password_env"]), person)
        elif sys.stdin.isatty():
            password = self._ask(person)
        else:
            password = checked(sys.stdin.readline().rstrip("\r\n"), person)
        user = accounts.create(
            email=person.email,
            name=person.name,
            password=password,
            is_operator=options["operator"],
            by=Actor(origin="create_user"),
        )
        kind = "an operator's account" if user.is_operator else "an account"
        self.stdout.write(f"Created {kind} for {user.name} with the address {user.email} and the id {user.id}.")

    def _ask(self, person: User) -> str:
        for _ in range(ATTEMPTS):
            try:
                password = checked(getpass.getpass("Password: "), person)
            except Invalid as error:
                self.stderr.write(error.message)
                continue
            if getpass.getpass("Confirm password: ") == password:
                return password
            self.stderr.write("The passwords do not match.")
        raise Invalid(f"No account was created: none of {ATTEMPTS} attempts gave a usable password.")


def candidate(email: str, name: str) -> User:
    """Return the account to create, checked before anybody types a password. Raises Invalid and Conflict."""
    email, name = accounts.normal_address(email), " ".join(name.split())
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid(f"“{email}” is not an e-mail address.") from None
    if not 1 <= len(name) <= NAME_LIMIT:
        raise Invalid(f"Use 1-{NAME_LIMIT} characters for the name.")
    if fault := plain_text.name_fault(name):
        raise Invalid(fault, field="name")
    if accounts.find_by_email(email) is not None:
        raise Conflict(f"{email} already has an account.")
    return User(email=email, name=name)


def checked(password: str, person: User) -> str:
    """Return the password if Django's validators accept it for this person. Raises Invalid with their messages."""
    if len(password) > PASSWORD_LIMIT:
        raise Invalid(f"Use at most {PASSWORD_LIMIT:,} characters for the password.")
    try:
        password_validation.validate_password(password, person)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from None
    return password


def from_environment(variable: str) -> str:
    """Return the value of an environment variable. Raises Invalid if it is not set."""
    try:
        return os.environ[variable]
    except KeyError:
        raise Invalid(f"The environment variable {variable} is not set.") from None
