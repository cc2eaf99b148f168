"""`manage.py purge_tenant`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.dynamo.placement import Placement
from portal.errors import Conflict, Unavailable
from portal.management.command import PortalCommand, Progress, number
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import certificates
from tenants.tenancy import tenant_directory
from tickets.purging import erasing, purge_requests, tenant_purge
from tickets.purging.stored import PurgeItem
from tickets.purging.tenant_purge import TenantPurge

MOST_RATE = 10_000


class Command(PortalCommand):
    costs = cost(
        get="address of a requester, audit chain, counter, dead letter, import source, letter, marker, membership, "
        "move, purge, request, requester, resharding, slug, tenant",
        query="*",
        write="*",
        per="item",
        reads=160,
        writes=80,
        each=(0, 15, 6),
    )
    help = (
        "Delete a closed tenant whose grace is over, with all that is stored for it, and print the certificate. It "
        "cannot be undone. It may be stopped at any time; run again, it goes on where it was. Needs a running stream "
        "worker, and on AWS the lifecycle role. Deleted items count against the tables: --rate bounds them."
    )
    again = "Run it again, and it goes on where it was."

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("slug", nargs="?", help="the slug of the tenant")
        which.add_argument("--ordered", action="store_true", help="each tenant whose purge an operator has ordered")
        parser.add_argument("--count", action="store_true", help="say what would be deleted, and delete nothing")
        parser.add_argument("--now", action="store_true", help="although its grace is not over; needs --reason")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why; it stands in the certificate")
        parser.add_argument("--certificate", type=Path, metavar="FILE", help="write the certificate there as well")
        parser.add_argument(
            "--rate", type=number(1, MOST_RATE, f"a rate from 1 to {MOST_RATE:,}"), default=erasing.RATE, metavar="N",
            help="items a second that are deleted at most (%(default)g)",
        )  # fmt: skip
        parser.add_argument(
            "--settle", type=number(0, 3600, "a number of seconds, up to 3,600"), default=tenant_purge.SETTLE_SECONDS,
            metavar="SECONDS", help="how long to wait for what was begun before (%(default)g)",
        )  # fmt: skip

    def work(self, options: dict[str, Any]) -> None:
        by = Actor(origin="purge_tenant")
        if options["ordered"]:
            self._purge_ordered(options, by)
            return
        if options["count"]:
            self._say_counts(options["slug"])
            return
        item = purge_requests.by_slug(options["slug"])
        if item is not None and item.state != purge_requests.ORDERED:
            self._purge(item, options, by)
            return
        tenant = tenant_directory.with_slug(options["slug"])
        if tenant is None and (issued := certificates.last_of_slug(options["slug"])):
            self.stdout.write(
                f"{options['slug']} was purged before. {self._keep(issued.content.encode('ascii'), options)}"
            )
            return
        tenant = tenant or tenant_directory.find(options["slug"])
        self._purge(purge_requests.begin(tenant, by=by, reason=options["reason"], now=options["now"]), options, by)

    def _purge_ordered(self, options: dict[str, Any], by: Actor) -> None:
        """Purge one after the other. One that cannot be purged now keeps nobody else from it."""
        refused = []
        waiting = purge_requests.PURGES.all_last()
        if not waiting:
            self.stdout.write("No purge is ordered.")
        for ordered in waiting:
            if ordered.state != purge_requests.ORDERED and ordered.holder:
                self.stdout.write(
                    f"{ordered.slug} is being purged by another process. If that has died: purge_tenant {ordered.slug}"
                )
                continue
            try:
                if begun := purge_requests.begin_ordered(ordered, by=by):
                    self._purge(begun, options, by)
                else:
                    self.stdout.write(f"{ordered.slug} was reopened since: its order is dropped.")
            except (Conflict, Unavailable) as error:
                refused.append(f"{ordered.slug}: {error.message}")
        if refused:
            raise CommandError("\n".join(refused))

    def _say_counts(self, slug: str) -> None:
        tenant = tenant_directory.find(slug)
        places = [Placement.parse(place) for place in (tenant.placement, tenant.former_placement)]
        counts = tenant_purge.count(tenant.tenant_id, list(dict.fromkeys(places[: 1 + bool(tenant.former_placement)])))
        self.stdout.write(f"What is stored of {tenant.name}, in items: a ticket is several of them.")
        for name, items in counts.items():
            if items:
                self.stdout.write(f"{items:>9,} {name}")
        self.stdout.write(f"{sum(counts.values()):>9,} items in all. Nothing was deleted.")

    def _purge(self, item: PurgeItem, options: dict[str, Any], by: Actor) -> None:
        def go_on() -> bool:
            deleted = sum(one.deleted for one in purge.counts.values())
            progress.report(f"{item.slug}: {amount(deleted, 'item')} deleted")
            return True

        with Progress(self, f"Purging {item.slug}", None) as progress:
            purge = TenantPurge(
                item,
                by=by,
                rate=options["rate"],
                settle=options["settle"],
                say=lambda what: progress.report(f"{item.slug}: {what}"),
                again=go_on,
                advance=progress.advance,
            )
            purge.run()
        kept = self._keep(purge.certificate, options)
        total = sum(one.deleted for one in purge.counts.values())
        self.stdout.write(f"{item.slug} is purged: {amount(total, 'item')} deleted, none found again. {kept}")

    def _keep(self, content: bytes, options: dict[str, Any]) -> str:
        """Write the certificate where it is wanted, and return a sentence that says where it is."""
        file = options["certificate"]
        if file:
            try:
                file.write_bytes(content)
            except OSError as error:
                raise CommandError(f"The tenant is purged; its certificate is in the admin, but: {error}") from error
        said = certificates.verify(content, certificates.known_keys())
        return f"Certificate {said['number']} is in the admin{f', and in {file}' if file else ''}."
