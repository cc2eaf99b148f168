"""Print the policy of a role, for an AWS account to attach."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.dynamo import placement
from portal.dynamo.placement import Site
from portal.isolation import policies
from portal.schema.registry import ROLES


class Command(BaseCommand):
    help = "Print the IAM policy of a role as JSON. The account in its ARNs is AWS_ACCOUNT_ID."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", choices=ROLES, help="whose policy")
        parser.add_argument(
            "--site",
            metavar="NAME",
            help="the part of it that counts at this site of SILOS",
        )
        parser.add_argument("--part", type=int, help="one of the managed policies that it is attached as, from 1 on")

    def handle(self, *args: Any, role: str, part: int | None, site: str | None, **options: Any) -> None:
        if site is not None:
            if site not in settings.SILOS:
                raise CommandError(f"The setting SILOS has no site {site}.")
            self.stdout.write(json.dumps(_at(placement.site(site), role), indent=2))
            return
        document, managed = policies.document(role), policies.managed(role)
        if part is not None:
            if not 1 <= part <= len(managed):
                raise CommandError(f"The policy of the {role} role has the parts 1 to {len(managed)}.")
            document = managed[part - 1]
        self.stdout.write(json.dumps(document, indent=2))


def _at(site: Site, role: str) -> Any:
    """Return the policy of a role with ARNs of the site's region, and of the account that its role is in."""
    document = json.dumps(policies.document(role, prefix_of_site=site.prefix))
    account = site.tenant_role_arn.split(":")[4] if site.tenant_role_arn else settings.AWS_ACCOUNT_ID
    here = f":{settings.AWS_REGION}:{settings.AWS_ACCOUNT_ID}:"
    return json.loads(document.replace(here, f":{site.region}:{account}:"))
