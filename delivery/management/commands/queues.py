"""`manage.py queues`: which tenant has which queues."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from delivery.queues import allocation, blast_radius, depths, queue_sets
from delivery.queues.allocation import said
from delivery.queues.queue_transport import QueueTransport
from portal.management.command import PortalCommand
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.tenancy import tenant_directory

BY = Actor(origin="queues")


class Command(PortalCommand):
    costs = cost(
        per="tenant",
        get="queue depths, slug, tenant",
        query="given queues, queue set, tenant by name",
        write="audit row, given queues, queue set, tenant",
        reads=10,
        writes=15,
        each=(0, 3, 12),
    )
    help = (
        "show: each tenant's queues, how full they are, and who shares most. assign: give a set to each tenant that "
        "has none, and forget the sets of tenants that do not exist. check: whether every tenant has a set, stored "
        "alike in both places, nobody else has one, and every queue exists; status 1 if not. move: give one tenant "
        "another set, the next of the list unless --to names one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="show|assign|check|move")
        for name in ("show", "assign", "check"):
            actions.add_parser(name)
        moving = actions.add_parser("move")
        moving.add_argument("--tenant", required=True, metavar="SLUG")
        moving.add_argument("--to", nargs="+", type=int, metavar="NUMBER", help="the four queues of the set")

    def work(self, options: dict[str, Any]) -> None:
        getattr(self, f"_{options['action']}")(options)

    def _show(self, options: dict[str, Any]) -> None:
        survey = allocation.survey()
        for slug, tenant_id in survey.slugs.items():
            self.stdout.write(f"{slug}: {said(survey.sets.get(tenant_id, ()))}")
        seen = depths.read()
        for number, tenants in enumerate(blast_radius.load(survey.sets, survey.queues)):
            held = f", {seen.queues[number].total} messages" if seen and number < len(seen.queues) else ""
            self.stdout.write(f"queue {number}: {amount(tenants, 'tenant')}{held}")
        if worst := blast_radius.worst_pair(survey.named()):
            self.stdout.write(f"{worst.one} and {worst.other} share {said(worst.shared)}; no two share more.")

    def _assign(self, options: dict[str, Any]) -> None:
        given = 0
        for item in tenant_directory.all_tenants():
            if chosen := allocation.assign(item.tenant_id, by=BY):
                self.stdout.write(f"{item.name}: {said(chosen)}")
                given += 1
        forgotten = allocation.of_nobody(allocation.allocated())
        for tenant_id in forgotten:
            allocation.forget(tenant_id)
        self.stdout.write(f"{given} sets given, {len(forgotten)} of tenants that do not exist forgotten.")

    def _check(self, options: dict[str, Any]) -> None:
        queues = queue_sets.valid_count(settings.DELIVERY_QUEUES)
        problems = [
            *allocation.problems(),
            *(f"the queue {name} does not exist" for name in QueueTransport().missing()),
        ]
        if problems:
            raise CommandError(f"{'; '.join(problems)}.")
        self.stdout.write(f"Every tenant has a set, and all {queues} queues exist.")

    def _move(self, options: dict[str, Any]) -> None:
        tenant = tenant_directory.find(options["tenant"])
        chosen = allocation.move(tenant.tenant_id, to=options["to"], by=BY)
        self.stdout.write(f"{tenant.slug}: {said(chosen)}. What is in its former queues is delivered from there.")
