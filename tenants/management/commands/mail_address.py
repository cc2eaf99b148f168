"""`manage.py mail_address`: tells whether mail is sent to an address, and lets it be sent again."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.validators import validate_email

from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.audit_trail.recording import Actor
from tenants.sign_in import suppressed_addresses

BY = Actor(origin="mail_address")


class Command(PortalCommand):
    costs = cost(get="suppressed address", write="audit row, suppressed address", reads=3, writes=20)
    help = (
        "Say whether mail is sent to an address (show): none is after mail to it bounced for good, or was reported as "
        "unwanted. clear lets it be sent again, which is kept in the platform's audit trail."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["show", "clear"])
        parser.add_argument("address", help="the whole e-mail address")

    def work(self, options: dict[str, Any]) -> None:
        address = options["address"]
        if options["action"] == "clear":
            suppressed_addresses.clear(address, by=BY)
        try:
            validate_email(address)
        except ValidationError:
            raise CommandError(f"“{address}” is not an e-mail address.") from None
        known = suppressed_addresses.of([address]).get(address)
        self.stdout.write(known.in_full if known else "Mail is sent to this address.")
