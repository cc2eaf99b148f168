"""`manage.py verify_audit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal import clock
from portal.management.command import PortalCommand, Progress
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail import chain, recording
from tenants.audit_trail.chain import Head
from tenants.tenancy import tenant_directory


class Command(PortalCommand):
    costs = cost(
        get="slug, tenant", query="audit chain, audit row, tenant by name", per="audit row", reads=12, each=(0, 0.5, 0)
    )
    help = (
        "Read the audit trail of one tenant, or of the platform and all tenants, and name each row that was altered, "
        "deleted or inserted. If there is one, the exit status is 1. Also print a fingerprint of each trail; while it "
        "stays the same, nothing was added or changed. A monthly letter has the head of the trail at the end of its "
        "month: with it, also tell whether the rows of then are still those of now."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("--tenant", metavar="SLUG", help="the trail of this tenant")
        chosen.add_argument("--all", action="store_true", help="the trails of all tenants and of the platform")

        parser.add_argument("--head", help="the head of the trail of --tenant, as a monthly letter has it")

    def work(self, options: dict[str, Any]) -> None:
        faults, head = 0, self._head(options)
        with Progress(self, "Rows", None) as progress:
            for name, tenant_id in self._trails(options):
                progress.label(f"Rows of {name}")
                verified = chain.verify(tenant_id, head=head, progress=progress.advance)
                for finding in verified.findings:
                    place = f"chain partition {finding.partition}, row {finding.sequence}"
                    progress.say(f"{name}: {place}: {finding.kind} {finding.where}".rstrip())
                faults += len(verified.findings)
                state = amount(len(verified.findings), "fault") if verified.findings else "chain intact"
                rows = amount(verified.rows, "entry", "entries")
                self.stdout.write(f"{name}: {rows}, {state}, fingerprint {verified.fingerprint}")
                if head is not None and not any(one.kind == "not of the head" for one in verified.findings):
                    known = amount(head.rows, "entry", "entries")
                    self.stdout.write(
                        f"{name}: the {known} before {clock.in_words(clock.stamp(head.before))} are those of the head"
                    )
        if faults:
            raise CommandError("The audit trail was tampered with, or is damaged.")

    def _head(self, options: dict[str, Any]) -> Head | None:
        if not options["head"]:
            return None
        if not options["tenant"]:
            raise CommandError("A head is of one trail: name its tenant with --tenant.")
        try:
            return Head.parse(options["head"])
        except ValueError as error:
            raise CommandError(f"This is no head of an audit trail: {error}.") from error

    def _trails(self, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if options["tenant"]:
            tenant = tenant_directory.find(options["tenant"])
            yield tenant.slug, tenant.tenant_id
            return
        yield "the platform", recording.PLATFORM
        for entry in tenant_directory.all_tenants():
            yield entry.name, entry.tenant_id
