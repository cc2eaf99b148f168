"""`manage.py stack`: what `make deploy`, `make upgrade`, `make operator`, `make manage` and `make teardown` run."""

from __future__ import annotations

import getpass
import shlex
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from portal.errors import PortalError
from portal.hosting import stack_steps
from portal.hosting.stack_control import AWS_ERRORS, StackControl


@dataclass
class Terminal:
    """Standard output, and answers from standard input. With `--yes` a question is agreed to."""

    out: OutputWrapper
    yes: bool

    def say(self, line: str) -> None:
        self.out.write(line)

    def agrees(self, question: str, answer: str) -> bool:
        self.out.write(f"{question} [{answer}] ", ending="")
        if self.yes:
            self.out.write(f"{answer}, by --yes")
            return True
        return sys.stdin.readline().strip() == answer


class Command(BaseCommand):
    help = (
        "Create, upgrade and remove a whole stack on AWS, with credentials from the usual places; see docs/deploy.md. "
        "Status 1: refused, or AWS failed, with the reason."
    )
    # It runs where the portal itself may have no settings.
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own declaration

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["deploy", "upgrade", "operator", "run", "teardown"])
        parser.add_argument("name", help="the stack's name")
        parser.add_argument("--region", help="the region; without it that of the AWS profile")
        parser.add_argument("--yes", action="store_true", help="ask nothing")
        for name, help_text in (
            ("image", "the image in Amazon ECR: <registry>/<repository>:<tag>"),
            ("certificate", "the ARN of the certificate of the address's host"),
            ("address", "the portal's address: https://desk.example.com"),
            ("sender", "DEFAULT_FROM_EMAIL of the portal"),
            ("mail-domain", "MAIL_DOMAIN of the portal, if letters come in"),
            ("email-url", "EMAIL_URL, if mail does not go out by Amazon SES"),
            ("size", "small or large"),
            ("processor", "what the image is built for: x86_64 or arm64"),
            ("alarm-topic", "the ARN of the SNS topic that alarms go to"),
            ("email", "operator: the address that the person signs in with"),
            ("person", "operator: the name that others see"),
            ("command", "run: the command and its arguments, in one text"),
            ("role", "run: Web, Seed or Lifecycle"),
        ):
            parser.add_argument(f"--{name}", help=help_text)
        parser.add_argument("--set", action="append", metavar="NAME=VALUE", help="any parameter of the template")
        parser.add_argument("--delete-data", action="store_true", help="teardown: delete the data too; asks once more")

    def handle(self, *args: Any, action: str, name: str, **options: Any) -> None:
        try:
            control = StackControl.opened(name, options["region"], Terminal(self.stdout, options["yes"]))
            status = self._do(action, control, options)
        except PortalError as error:
            raise CommandError(error.message) from error
        except AWS_ERRORS as error:
            raise CommandError(f"AWS: {error}") from error
        if status:
            sys.exit(status)

    def _do(self, action: str, control: StackControl, options: dict[str, Any]) -> int:
        match action:
            case "deploy" | "upgrade":
                stack_steps.deploy(control, options, only_upgrade=action == "upgrade")
            case "teardown":
                stack_steps.teardown(control, delete_data=options["delete_data"])
            case "operator":
                if not (options["email"] and options["person"]):
                    raise CommandError("An operator needs EMAIL and NAME.")
                return stack_steps.operator(control, options["email"], options["person"], password())
            case "run":
                return stack_steps.run(control, shlex.split(options["command"] or ""), role=options["role"] or "Web")
        return 0


def password() -> str:
    """Ask for a password twice on a terminal; else it is the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password: ")
    if getpass.getpass("Confirm password: ") != first:
        raise CommandError("The passwords do not match.")
    return first
