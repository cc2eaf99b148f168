"""`manage.py reshard_tenant`: spreads a tenant's tickets over more or fewer partitions, while people go on working."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from portal.errors import Conflict
from portal.management.command import whole_number
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.tenancy import tenant_directory
from tenants.tenancy.placements import ShardLayout
from tenants.tenancy.stored import MOST_SHARDS, TenantItem
from tickets.management.job_command import JobCommand
from tickets.sharding import reshard_job, reshard_requests
from tickets.sharding.reshard_job import Mover
from tickets.sharding.reshard_requests import RESHARDINGS
from tickets.sharding.stored import ReshardItem


class Command(JobCommand):
    costs = cost(
        get="resharding, slug, tenant",
        query="tickets by status",
        write="audit row, past resharding, resharding, tenant, ticket",
        per="ticket",
        reads=10,
        writes=15,
        each=(0, 1.5, 5),
    )
    help = (
        "Spread the tickets of a tenant over another number of partitions in the indexes, while people go on working: "
        "lists stay whole at every moment, and nobody's form becomes stale. It may be stopped at any moment, even "
        "killed; run again, or left to a stream worker, it goes on where it was. With --stop what runs ends where it "
        "is, which is safe too. Waits three times for 40 seconds until all processes know. Costs some six "
        "write units per KB of each ticket's summary that moves. "
        "Exit status: 0 done; 1 refused or failed; 130 interrupted."
    )
    again = "Run it again, and it goes on where it was. A stream worker goes on with it too."
    doing = "Resharding"
    steps: ClassVar[Mapping[str, str]] = {
        "widening": "lists learn of all partitions",
        "switching": "writes go to their new partitions",
        "moving": "tickets are moved",
        "narrowing": "lists leave partitions that are empty",
        "sweeping": "a last look at partitions that were left",
    }

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--shards", type=whole_number(1, MOST_SHARDS), metavar="N", help=f"from 1 to {MOST_SHARDS}")
        which.add_argument("--stop", action="store_true", help="end what runs, and leave tickets where they are")
        self.add_job_arguments(parser, rate=reshard_job.RATE, what="move", settle=reshard_job.SETTLE_SECONDS)
        parser.add_argument("--reason", default="", help="for the history")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        actor = Actor(origin="reshard_tenant")
        if options["stop"]:
            reshard_requests.stop(tenant, by=actor)
            self.stdout.write(f"{tenant.slug}: whoever carries it out ends it.")
            return
        if not self._begin(tenant, options, actor):
            self.stdout.write(f"{tenant.slug} has {amount(options['shards'], 'shard')} already.")
            return
        job = partial(Mover, rate=options["rate"], settle_seconds=options["settle"])
        item = self.carried_out(RESHARDINGS, tenant.tenant_id, job)
        moved = amount(int(item.moved), "ticket was moved", "tickets were moved")
        if item.state == reshard_requests.STOPPED:
            raise CommandError(f"{tenant.slug}: somebody has stopped it, {moved}.")
        shards = reshard_requests.said(int(item.to_shards))
        self.stdout.write(f"{tenant.slug}: {shards} now, {moved}.")

    def _begin(self, tenant: TenantItem, options: dict[str, Any], actor: Actor) -> bool:
        """Ask for it, unless the same is running already. Return whether there is anything to do."""
        if running := RESHARDINGS.under_way(tenant.tenant_id):
            if int(running.to_shards) != options["shards"] or running.state != reshard_requests.RUNNING:
                shards = reshard_requests.said(int(running.to_shards))
                raise Conflict(f"{tenant.name} is being resharded to {shards}. Stop that first, or wait for its end.")
            return True
        layout = ShardLayout.of(tenant)
        if layout.rests and layout.readers == options["shards"]:
            return False
        reshard_requests.begin(tenant, shards=options["shards"], reason=options["reason"], by=actor, holder=self.me)
        return True

    def progress(self, item: ReshardItem) -> str:
        return f"{int(item.moved):,} moved"
