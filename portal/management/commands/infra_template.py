"""Print the CloudFormation template, or tell whether the committed one is still what the code declares."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.deployment import cfn_yaml, placed_template, template

PATH = "infra/template.yaml"


class Command(BaseCommand):
    help = f"Print the CloudFormation template of the declared tables and roles: infra_template > {PATH}"
    # It reads declarations only, so it works on a machine where the portal itself could not run.
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own declaration

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help=f"print nothing, fail if {PATH} differs")
        other = parser.add_mutually_exclusive_group()
        other.add_argument("--placed", metavar="TENANT_ID", help="print that of a tenant's own tables instead")
        other.add_argument("--site", action="store_true", help="print that of the account of a site of SILOS instead")

    def handle(self, *args: Any, check: bool, placed: str | None, site: bool, **options: Any) -> None:
        if placed is not None:
            try:
                found = placed_template.placed_template(placed)
            except ValueError as error:
                raise CommandError(f"{error}.") from error
            self.stdout.write(cfn_yaml.dump(found), ending="")
            return
        if site:
            self.stdout.write(cfn_yaml.dump(placed_template.site_template()), ending="")
            return
        wanted = template.HEADER + "\n" + cfn_yaml.dump(template.template())
        if not check:
            self.stdout.write(wanted, ending="")
            return
        path = settings.BASE_DIR / PATH
        committed = path.read_text(encoding="utf-8") if path.exists() else ""
        if committed == wanted:
            return
        difference = difflib.unified_diff(
            committed.splitlines(), wanted.splitlines(), PATH, "what the code declares", lineterm="", n=1
        )
        self.stderr.write("\n".join(difference))
        raise CommandError(f"{PATH} is not what the code declares. Run: python manage.py infra_template > {PATH}")
