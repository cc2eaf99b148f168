"""`manage.py reconcile_mail`: finds letters that were left behind, and lets them be filed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantStatus
from tickets.letters import reconciling, unclaimed


class Command(PortalCommand):
    costs = cost(
        get="slug, tenant, waiting letters",
        query="letters by time, letters that wait, tenant by name",
        per="desk",
        reads=6,
        each=(0, 3, 0),
    )
    help = (
        "Compare the bucket of letters with the ledgers of the desks. Letters that nobody has handed to a desk, and "
        "those that a desk has and its ledger does not know, are filed again; what was filed meanwhile stays as it is. "
        "Letters of the last five minutes are on their way and left alone. Run it each day."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        one = parser.add_mutually_exclusive_group()
        one.add_argument("--tenant", metavar="SLUG", help="look at this desk alone")
        one.add_argument("--unclaimed", action="store_true", help="list the letters to no desk, and do nothing else")

    def work(self, options: dict[str, Any]) -> None:
        if options["unclaimed"]:
            letters, has_more = unclaimed.newest()
            for letter in letters:
                to = ", ".join(letter.recipients) or "not known"
                self.stdout.write(f"{letter.at}  {letter.size:>9,}  {letter.name}  {to}")
            if has_more or not letters:
                self.stdout.write("There are more." if letters else "There are none.")
            return
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
        if kept := reconciling.unclaimed():
            self.stdout.write(
                f"{amount(len(kept), 'letter')} to addresses that no desk has, kept for 90 days. The admin's page "
                "Letters to unknown addresses hands them to a desk, or discards them."
            )

    def _say(self, begin: str, found: reconciling.LettersFound, where: str) -> None:
        behind = "none of them left behind" if not found.asked else f"{found.asked:,} left behind; they are filed now"
        self.stdout.write(f"{begin}{amount(found.letters, 'letter')} {where}: {behind}.")
