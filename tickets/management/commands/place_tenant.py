"""`manage.py place_tenant`: moves what a desk holds to another place, while people go on working."""

from __future__ import annotations

import sys
import time
import uuid
from argparse import ArgumentTypeError
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal import clock
from portal.dynamo.placement import Placement
from portal.errors import Conflict, NotFound
from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number, seconds, whole_number
from tenants.audit_trail.recording import Actor
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import TenantItem
from tickets.moving import discarding, move_notes, move_requests, tenant_mover
from tickets.moving.items import MoveItem
from tickets.moving.move_notes import UNFINISHED, TakenOver
from tickets.moving.tenant_mover import TenantMover
from tickets.sharding.reshard_notes import HolderWatch

_LOOK_SECONDS = 0.5
STEPS = {
    "preparing": "tables are made at the new place",
    "announcing": "all processes learn of it",
    "copying": "tickets are copied",
    "catching": "the new place counts and indexes them",
    "holding": "writes wait for the switch",
    "verifying": "both copies are compared",
    "cancelling": "everything goes back to as it was",
}


def _placement(text: str) -> Placement:
    try:
        return Placement.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _kept(item: MoveItem) -> str:
    """Return how long the old copy is there: nothing discards it but --discard."""
    day = f", from {item.kept_until[:10]} on" if item.kept_until > clock.stamp() else ", at any time"
    return f"is kept until you delete it with --discard{day}"


class Command(PortalCommand):
    help = (
        "Move the content of a desk to tables of its own (bridge), to those at a site of the settings (silo/NAME), or "
        "back to those of all (pool), while people go on working: readers notice nothing, and writes wait once for a "
        "moment. It may be stopped at any moment, even killed; run again with the same options, it goes on where it "
        "was. The old copy is kept for a grace; --roll-back goes back to it, or ends a move that has not switched, and "
        "--discard deletes it. Bulk imports are refused meanwhile. Needs a stream worker. "
        "Exit status: 0 done; 1 refused or failed; 130 interrupted."
    )
    again = "Run it again: it goes on where it was. Nobody waits meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--on", type=_placement, metavar="PLACE", help="pool, bridge or silo/NAME")
        which.add_argument("--roll-back", action="store_true", help="to the old copy, with all that was changed since")
        which.add_argument("--discard", action="store_true", help="delete the old copy, after its grace")
        parser.add_argument(
            "--grace", type=whole_number(0, 365), default=move_requests.GRACE_DAYS, metavar="DAYS",
            help="that the old copy is kept at least (%(default)s), and then until somebody discards it",
        )  # fmt: skip
        parser.add_argument(
            "--rate", type=number(0.1, 100_000, "a number of tickets from 0.1 to 100,000"), default=tenant_mover.RATE,
            metavar="TICKETS", help="to copy in a second, at most (%(default)g)",
        )  # fmt: skip
        parser.add_argument(
            "--settle", type=seconds, default=tenant_mover.SETTLE_SECONDS, metavar="SECONDS",
            help="to wait until all processes know of it (%(default)g); less is safe only where nobody works",
        )  # fmt: skip
        parser.add_argument("--now", action="store_true", help="with --discard: before the end of the grace")
        parser.add_argument("--reason", default="", help="for the audit trail")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        self._me, self._actor = uuid.uuid4().hex, Actor(origin="place_tenant")
        if options["discard"]:
            self._discard(tenant, options)
            return
        if options["roll_back"]:
            self._roll_back(tenant, options)
        else:
            self._begin(tenant, options)
        item = self._carried_out(tenant.tenant_id, options)
        if item.state == move_notes.CANCELLED:
            self.stdout.write(f"{tenant.slug}: the move was ended, and the desk lies where it lay: {item.from_place}.")
            return
        self.stdout.write(
            f"{tenant.slug} lies on {item.to_place} now. {int(item.last_number):,} ticket numbers and "
            f"{int(item.changes):,} later changes were copied, and writes waited for {int(item.held_ms) / 1000:.2f} s "
            f"at most. The old copy on {item.from_place} {_kept(item)}."
        )
        if item.trouble:
            raise CommandError(item.trouble)

    def _begin(self, tenant: TenantItem, options: dict[str, Any]) -> None:
        """Ask for it, unless the same is running already."""
        running = move_notes.last(tenant.tenant_id)
        if running and running.state in UNFINISHED:
            if running.to_place != str(options["on"]) or running.state != move_notes.RUNNING:
                raise Conflict(f"{tenant.name} is on its way to {running.to_place}. Wait for that, or roll it back.")
            return
        move_requests.begin(
            tenant, to=options["on"], grace_days=options["grace"], reason=options["reason"], by=self._actor,
            holder=self._me,
        )  # fmt: skip

    def _roll_back(self, tenant: TenantItem, options: dict[str, Any]) -> None:
        running = move_notes.last(tenant.tenant_id)
        goes_back = running and running.state in UNFINISHED and running.to_place == tenant.former_placement
        if not goes_back and not (running and running.state == move_notes.CANCELLING):
            move_requests.roll_back(tenant, reason=options["reason"], by=self._actor, holder=self._me)

    def _discard(self, tenant: TenantItem, options: dict[str, Any]) -> None:
        item = move_notes.take(move_requests.may_be_discarded(tenant, early=options["now"]), me=self._me)
        with Progress(self, "Discarding", None) as progress:
            discarding.discard(item, by=self._actor, me=self._me, advance=progress.advance)
        self.stdout.write(f"{tenant.slug}: the old copy on {item.from_place} is gone.")

    def _carried_out(self, tenant_id: str, options: dict[str, Any]) -> MoveItem:
        """Carry it out, or look on while somebody else does."""
        watch, waits = HolderWatch(), False
        with Progress(self, "Moving", None) as progress:
            while True:
                item = move_notes.last(tenant_id)
                if item is None:
                    raise NotFound("There is no such move any more.")
                if item.state not in UNFINISHED:
                    return item
                if item.holder == self._me or watch.is_free(item):
                    self._carry_out(item, options, progress)
                    continue
                if not waits:
                    progress.say("Another process carries it out.")
                waits = True
                progress.label(f"{STEPS.get(item.phase, item.phase)}, up to number {int(item.done):,}")
                time.sleep(_LOOK_SECONDS)

    def _carry_out(self, item: MoveItem, options: dict[str, Any], progress: Progress) -> None:
        def say(phase: str) -> None:
            progress.label(STEPS[phase])
            if not sys.stderr.isatty():
                progress.say(f"{item.slug}: {STEPS[phase]}")

        how = {"rate": options["rate"], "settle_seconds": options["settle"]}
        with suppress(TakenOver):  # another process has taken it over
            TenantMover(item, me=self._me, say=say, advance=progress.advance, **how).run()
