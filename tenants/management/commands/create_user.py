"""`manage.py create_user`: an account to sign in with."""

from __future__ import annotations

import getpass
import os
import sys
from typing import Any, Final

from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.core.management.base import CommandParser
from django.core.validators import validate_email

from portal.errors import Conflict, Invalid
from portal.management.command import PortalCommand
from tenants.audit_trail.recording import Actor
from tenants.identity import accounts
from tenants.identity.models import User

ATTEMPTS: Final = 3
NAME_LIMIT: Final = 100  # characters
PASSWORD_LIMIT: Final = 1000  # characters, as the forms have it


class Command(PortalCommand):
    help = (
        "Create an account. The password is asked for twice on a terminal; otherwise it is the first line of stdin, or "
        "the variable that --password-env names. An address that has an account is refused with exit status 1."
    )
    again = "The account may exist already; run it again to see."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the address that the person signs in with")
        parser.add_argument("--name", required=True, help="as others see it, up to 100 characters")
        parser.add_argument("--operator", action="store_true", help="may use the Django admin, for all tenants")
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
        what = "an operator's account" if user.is_operator else "an account"
        self.stdout.write(f"{user.name} has {what} with the address {user.email} and the id {user.id}.")

    def _ask(self, person: User) -> str:
        for _ in range(ATTEMPTS):
            try:
                password = checked(getpass.getpass("Password: "), person)
            except Invalid as error:
                self.stderr.write(error.message)
                continue
            if getpass.getpass("The same again: ") == password:
                return password
            self.stderr.write("The two passwords are not the same.")
        raise Invalid(f"No account was made: no usable password in {ATTEMPTS} attempts.")


def candidate(email: str, name: str) -> User:
    """The account to be, checked before anybody types a password. Raises Invalid, Conflict."""
    email, name = accounts.normal_address(email), " ".join(name.split())
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid(f"“{email}” is not an e-mail address.") from None
    if not 1 <= len(name) <= NAME_LIMIT:
        raise Invalid(f"A name has 1 to {NAME_LIMIT} characters.")
    if accounts.find_by_email(email) is not None:
        raise Conflict(f"{email} has an account already.")
    return User(email=email, name=name)


def checked(password: str, person: User) -> str:
    """The password, if Django's validators take it for this person. Raises Invalid with all that they say."""
    if len(password) > PASSWORD_LIMIT:
        raise Invalid(f"A password has at most {PASSWORD_LIMIT:,} characters.")
    try:
        password_validation.validate_password(password, person)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from None
    return password


def from_environment(variable: str) -> str:
    try:
        return os.environ[variable]
    except KeyError:
        raise Invalid(f"The environment has no variable {variable}.") from None
