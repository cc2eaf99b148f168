"""Print the policy of a role, for an AWS account to attach."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.isolation import policies
from portal.schema.registry import ROLES


class Command(BaseCommand):
    help = "Print the IAM policy of a role as JSON. The account in its ARNs is AWS_ACCOUNT_ID."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", choices=ROLES, help="whose policy")

    def handle(self, *args: Any, role: str, **options: Any) -> None:
        self.stdout.write(json.dumps(policies.document(role), indent=2))
