"""`manage.py place_tenant`: moves what a desk holds to another place, while people go on working."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from portal import clock
from portal.dynamo.placement import Placement
from portal.errors import Conflict
from portal.management.command import placement, whole_number
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.management.job_command import JobCommand
from tickets.moving import move_requests, place_changes, tenant_mover
from tickets.moving.place_changes import MOVES
from tickets.moving.stored import MoveItem
from tickets.moving.tenant_mover import job_of


class Command(JobCommand):
    costs = cost(
        get="counter, import source, marker, move, request, resharding, slug, tenant",
        query="API answers by time, aggregate, bulk part, counter, due row, export part, file, import, letters by "
        "time, move log, outbox rows by tenant, past move, recount, rehearsal part, request, rule run, search "
        "directory, ticket",
        write="aggregate, audit row, counter, marker, move, move log, past move, placed tenant, request, resharding, "
        "tenant, ticket",
        per="item",
        reads=80,
        writes=80,
        each=(0, 15, 10),
    )
    help = (
        "Move the content of a desk to tables of its own (bridge), to those at a site of the settings (silo/NAME), or "
        "back to those of all (pool), while people go on working: readers notice nothing, and writes wait once for a "
        "moment. It may be stopped at any moment, even killed; run again with the same options, it goes on where it "
        "was. The old copy is kept for a grace; --roll-back goes back to it, or ends a move that has not switched, and "
        "--discard deletes it. Bulk imports are refused meanwhile. Needs a stream worker. "
        "Exit status: 0 done; 1 refused or failed; 130 interrupted."
    )
    goes_with: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "now": ("discard",),
        "unchecked": ("discard",),
        "lost": ("discard", "roll_back"),
    }
    again = "Run it again, and it goes on where it was. Nobody waits meanwhile."
    doing = "Moving"
    steps: ClassVar[Mapping[str, str]] = {
        "preparing": "tables are made at the new place",
        "announcing": "all processes learn of it",
        "copying": "tickets are copied",
        "catching": "the new place counts and indexes them",
        "holding": "writes wait for the switch",
        "verifying": "both copies are compared",
        "cancelling": "everything goes back to as it was",
        "comparing": "both copies are compared",
        "clearing": "the old copy is deleted",
    }

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--on", type=placement, metavar="PLACE", help="pool, bridge or silo/NAME")
        which.add_argument("--roll-back", action="store_true", help="to the old copy, with all that was changed since")
        which.add_argument("--discard", action="store_true", help="delete the old copy, after its grace")
        parser.add_argument(
            "--grace", type=whole_number(0, 365), default=move_requests.GRACE_DAYS, metavar="DAYS",
            help="that the old copy is kept at least (%(default)s), and then until somebody discards it",
        )  # fmt: skip
        self.add_job_arguments(parser, rate=tenant_mover.RATE, what="copy", settle=tenant_mover.SETTLE_SECONDS)
        parser.add_argument("--now", action="store_true", help="with --discard: before the end of the grace")
        parser.add_argument(
            "--unchecked", action="store_true",
            help="with --discard: although the old copy has something that the new place lacks; needs --reason",
        )  # fmt: skip
        parser.add_argument(
            "--lost", action="store_true",
            help="with --discard or --roll-back: the other place can be reached no more. It is forgotten, and what is "
            "there stays; needs --reason",
        )  # fmt: skip
        parser.add_argument("--reason", default="", help="for the audit trail")

    def work(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["slug"])
        how: dict[str, Any] = {"by": Actor(origin="place_tenant"), "holder": self.me}
        if options["discard"]:
            gives_up = {name: options[name] for name in ("unchecked", "lost", "reason")}
            move_requests.discard(tenant, early=options["now"], **gives_up, **how)
        elif options["roll_back"]:
            self._roll_back(tenant, lost=options["lost"], reason=options["reason"], **how)
        elif not self._begin(tenant, options, **how):
            self.stdout.write(f"{tenant.slug} lies {options['on'].in_words} already.")
            return
        mover = {"rate": options["rate"], "settle_seconds": options["settle"]}
        item = self.carried_out(MOVES, tenant.tenant_id, partial(job_of, mover=mover))
        self.stdout.write(f"{tenant.slug}{_said(item)}")
        if item.trouble:
            raise CommandError(item.trouble)

    def _begin(self, tenant: TenantItem, options: dict[str, Any], **how: Any) -> bool:
        """Ask for it, unless the same is running already. Return whether there is anything to do."""
        if running := MOVES.under_way(tenant.tenant_id):
            if running.to_place != str(options["on"]) or running.state != place_changes.RUNNING:
                raise Conflict(f"{tenant.name} is on its way to {running.to_place}. Wait for that, or roll it back.")
            return True
        if placements.location(tenant).placement == options["on"]:
            return False
        move_requests.begin(tenant, to=options["on"], grace_days=options["grace"], reason=options["reason"], **how)
        return True

    def _roll_back(self, tenant: TenantItem, *, lost: bool, **how: Any) -> None:
        running = MOVES.last(tenant.tenant_id)
        goes_back = running and running.state in MOVES.unfinished and running.to_place == tenant.former_placement
        if lost or (not goes_back and not (running and running.state == place_changes.CANCELLING)):
            move_requests.roll_back(tenant, lost=lost, **how)

    def progress(self, item: MoveItem) -> str:
        return f"up to number {int(item.done):,}"


def _said(item: MoveItem) -> str:
    """Return what has come of it, behind the slug."""
    if item.state == place_changes.CANCELLED:
        return f": the move was ended, and the desk lies where it lay, {_words(item.from_place)}."
    if item.state == place_changes.DONE:
        return f": the old copy {_words(item.from_place)} is gone."
    day = f", from {item.kept_until[:10]} on" if item.kept_until > clock.stamp() else ", at any time"
    return (
        f" lies {_words(item.to_place)} now. {int(item.last_number):,} ticket numbers and "
        f"{int(item.changes):,} later changes were copied, and writes waited for {int(item.held_ms) / 1000:.2f} s "
        f"at most. The old copy {_words(item.from_place)} is kept until you delete it with --discard{day}."
    )


def _words(place: str) -> str:
    return Placement.parse(place).in_words
