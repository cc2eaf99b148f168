"""`manage.py seed_conversation`: customers of the sample data write to a desk by SMTP, and agents answer."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, whole_number
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tickets.seeding import cast, conversation, demonstration


class Command(PortalCommand):
    costs = cost(
        get="account, address, address of a requester, file, inbox, letter, looks, mail settings, member, membership, "
        "outbox row, requester, setup, suppressed address, tenant, ticket, waiting letters",
        query="certificate, closing tenant, hold of deliveries, letters by time, placed tenant, ticket, tickets of a "
        "requester",
        write="address of a requester, counter, file, letter, outbox row, request, requester, ticket",
        per="ticket",
    )
    help = (
        "Let three customers write to the first desk of the sample data, by SMTP at MAIL_RECEIVER, answer two of them, "
        "and let one write back. It needs DEBUG=1, the sample data, receive_mail and the workers. make run starts it. "
        "What is there already is left alone."
    )
    again = "Run it again to continue."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the sample data (%(default)s)")
        parser.add_argument(
            "--wait",
            type=whole_number(1, 600),
            default=120,
            metavar="SECONDS",
            help="for each letter to be filed, and each answer to be sent (%(default)s)",
        )

    def work(self, options: dict[str, Any]) -> None:
        demonstration.refuse_in_production()
        if not settings.MAIL_DOMAIN:
            raise CommandError("MAIL_DOMAIN is empty, so that no desk has an address.")
        desk = next(cast.desks(seed=options["seed"], tenants=1, tickets=None, users=cast.DEFAULT_USERS))
        if desk.tenant_id in demonstration.purged():
            self.stdout.write(f"{desk.name} was purged; nobody writes to it.")
            return
        played = conversation.play(desk, seconds=options["wait"])
        if not (played.letters or played.answers):
            self.stdout.write("All of it is there already.")
            return
        letters, answers = amount(played.letters, "letter"), amount(played.answers, "answer")
        self.stdout.write(f"{desk.name} got {letters} and sent {answers}.")
