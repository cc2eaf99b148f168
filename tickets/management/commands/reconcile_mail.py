"""`manage.py reconcile_mail`: finds letters that were left behind, and lets them be filed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantStatus
from tickets.letters import reconciling


class Command(PortalCommand):
    help = (
        "Compare the bucket of letters with the ledgers of the desks. Letters that nobody has handed to a desk, and "
        "those that a desk has and its ledger does not know, are filed again; what was filed meanwhile stays as it is. "
        "Letters of the last five minutes are on their way and left alone. Run it each day."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="look at this desk alone")

    def work(self, options: dict[str, Any]) -> None:
        if options["tenant"]:
            tenant = tenant_directory.find(options["tenant"])
            self._say(f"{tenant.slug}: ", reconciling.desk(tenant.tenant_id), "in its bucket")
            return
        self._say("", reconciling.arrived(), "that no desk had")
        total = reconciling.LettersFound()
        active = [one for one in tenant_directory.all_tenants() if one.status == TenantStatus.ACTIVE]
        with Progress(self, "comparing", len(active)) as progress:
            for one in active:
                found = reconciling.desk(one.tenant_id)
                total.letters, total.asked = total.letters + found.letters, total.asked + found.asked
                progress.advance()
        self._say("", total, f"in the bucket, of {amount(len(active), 'desk')}")
        if unclaimed := reconciling.unclaimed():
            self.stdout.write(f"{amount(len(unclaimed), 'letter')} to addresses that no desk has, kept for 90 days.")

    def _say(self, begin: str, found: reconciling.LettersFound, where: str) -> None:
        behind = "none of them left behind" if not found.asked else f"{found.asked:,} left behind; they are filed now"
        self.stdout.write(f"{begin}{amount(found.letters, 'letter')} {where}: {behind}.")
