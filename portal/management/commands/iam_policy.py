"""Print the policy of a role, for an AWS account to attach."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.isolation import policies
from portal.schema.registry import ROLES


class Command(BaseCommand):
    help = "Print the IAM policy of a role as JSON. The account in its ARNs is AWS_ACCOUNT_ID."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", choices=ROLES, help="whose policy")
        parser.add_argument("--part", type=int, help="one of the managed policies that it is attached as, from 1 on")

    def handle(self, *args: Any, role: str, part: int | None, **options: Any) -> None:
        document, managed = policies.document(role), policies.managed(role)
        if part is not None:
            if not 1 <= part <= len(managed):
                raise CommandError(f"The policy of the {role} role has the parts 1 to {len(managed)}.")
            document = managed[part - 1]
        self.stdout.write(json.dumps(document, indent=2))
