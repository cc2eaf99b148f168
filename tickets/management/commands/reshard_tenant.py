"""`manage.py reshard_tenant`: spreads a tenant's tickets over more or fewer partitions, while people go on working."""

from __future__ import annotations

import sys
import time
import uuid
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.errors import Conflict, NotFound
from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number, seconds, whole_number
from tenants.audit_trail.recording import Actor
from tenants.provisioning.tenant_lifecycle import MOST_SHARDS
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import TenantItem
from tickets.sharding import mover, reshard_notes, reshard_requests
from tickets.sharding.items import ReshardItem
from tickets.sharding.mover import Mover
from tickets.sharding.reshard_notes import UNFINISHED, HolderWatch

_LOOK_SECONDS = 0.5
_STEPS = {
    "widening": "lists learn of all partitions",
    "switching": "writes go to their new partitions",
    "moving": "tickets are moved",
    "narrowing": "lists leave partitions that are empty",
    "sweeping": "a last look at partitions that were left",
}


class Command(PortalCommand):
    help = (
        "Spread the tickets of a tenant over another number of partitions in the indexes, while people go on working: "
        "lists stay whole at every moment, and nobody's form becomes stale. It may be stopped at any moment, even "
        "killed; run again, or left to a stream worker, it goes on where it was. With --stop what runs ends where it "
        "is, which is safe too. Waits twice for some seconds until all processes have heard of it. Costs some six "
        "write units per KB of each ticket's summary that moves. "
        "Exit status: 0 done; 1 refused or failed; 130 interrupted."
    )
    again = "Run it again: it goes on where it was. A stream worker goes on with it too."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--shards", type=whole_number(1, MOST_SHARDS), metavar="N", help=f"from 1 to {MOST_SHARDS}")
        which.add_argument("--stop", action="store_true", help="end what runs, and leave tickets where they are")
        parser.add_argument(
            "--rate",
            type=number(0.1, 100_000, "a number of tickets from 0.1 to 100,000"),
            default=mover.RATE,
            metavar="TICKETS",
            help="to move in a second, at most (%(default)g)",
        )
        parser.add_argument(
            "--settle",
            type=seconds,
            default=mover.SETTLE_SECONDS,
            metavar="SECONDS",
            help="to wait until all processes know of a change (%(default)g); less is safe only where nobody works",
        )
        parser.add_argument("--reason", default="", help="for the history")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        actor = Actor(origin="reshard_tenant")
        if options["stop"]:
            reshard_requests.stop(tenant, by=actor)
            self.stdout.write(f"{tenant.slug}: whoever carries it out ends it.")
            return
        self._me = uuid.uuid4().hex
        self._begin(tenant, options, actor)
        item = self._carried_out(tenant.tenant_id, options)
        if item.state == reshard_notes.STOPPED:
            raise CommandError(f"{tenant.slug}: somebody has stopped it, {int(item.moved):,} tickets were moved.")
        shards = reshard_requests.said(int(item.to_shards))
        self.stdout.write(f"{tenant.slug}: {shards} now, {int(item.moved):,} tickets were moved.")

    def _begin(self, tenant: TenantItem, options: dict[str, Any], actor: Actor) -> None:
        """Ask for it, unless the same is running already."""
        running = reshard_notes.last(tenant.tenant_id)
        if running and running.state in UNFINISHED:
            if int(running.to_shards) != options["shards"] or running.state != reshard_notes.RUNNING:
                shards = reshard_requests.said(int(running.to_shards))
                raise Conflict(f"{tenant.name} is being resharded to {shards}. Stop that first, or wait for its end.")
            return
        reshard_requests.begin(tenant, shards=options["shards"], reason=options["reason"], by=actor, holder=self._me)

    def _carried_out(self, tenant_id: str, options: dict[str, Any]) -> ReshardItem:
        """Carry it out, or look on while somebody else does."""
        watch, waits = HolderWatch(), False
        with Progress(self, "Resharding", None) as progress:
            while True:
                item = reshard_notes.last(tenant_id)
                if item is None:
                    raise NotFound("There is no such resharding any more.")
                if item.state not in UNFINISHED:
                    return item
                if item.holder == self._me or watch.is_free(item):
                    self._carry_out(item, options, progress)
                    continue
                if not waits:
                    progress.say("Another process carries it out.")
                waits = True
                progress.label(f"{_STEPS.get(item.phase, item.phase)}, {int(item.moved):,} moved")
                time.sleep(_LOOK_SECONDS)

    def _carry_out(self, item: ReshardItem, options: dict[str, Any], progress: Progress) -> None:
        def say(phase: str) -> None:
            progress.label(_STEPS[phase])
            if not sys.stderr.isatty():
                progress.say(f"{item.slug}: {_STEPS[phase]}")

        how = {"rate": options["rate"], "settle_seconds": options["settle"]}
        with suppress(Conflict):  # another process has taken it over
            Mover(item, me=self._me, say=say, advance=progress.advance, **how).run()
