"""`manage.py verify_audit`: is the audit trail what was written?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from tenants.audit_trail import chain, recording
from tenants.tenancy import tenant_directory


class Command(PortalCommand):
    help = (
        "Read the audit trail of one tenant, or of all and of the platform, and name each row that was altered, is "
        "missing or was slipped in. Ends with exit status 1 if there is one. Prints a fingerprint for each trail: the "
        "same again means that nothing was added or changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("--tenant", metavar="SLUG", help="the trail of this tenant")
        chosen.add_argument("--all", action="store_true", help="the trails of all tenants and of the platform")

    def work(self, options: dict[str, Any]) -> None:
        found = 0
        with Progress(self, "Rows", None) as progress:
            for name, tenant_id in self._trails(options):
                progress.label(f"Rows of {name}")
                verified = chain.verify(tenant_id, progress=progress.advance)
                for finding in verified.findings:
                    progress.say(
                        f"{name}: {finding.kind}: partition {finding.partition}, row {finding.sequence} {finding.where}"
                    )
                found += len(verified.findings)
                state = f"{len(verified.findings)} findings" if verified.findings else "whole"
                self.stdout.write(f"{name}: {verified.rows:,} rows, {state}, fingerprint {verified.fingerprint}")
        if found:
            raise CommandError("The audit trail is not what was written.")

    def _trails(self, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if options["tenant"]:
            tenant = tenant_directory.find(options["tenant"])
            yield tenant.slug, tenant.tenant_id
            return
        yield "the platform", recording.PLATFORM
        for entry in tenant_directory.all_tenants():
            yield entry.name, entry.tenant_id
