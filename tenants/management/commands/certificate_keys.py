"""`manage.py certificate_keys`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.lifecycle import certificates


class Command(PortalCommand):
    costs = cost()
    help = (
        "Print the public keys of this installation's certificates as JSON, former ones included: who verifies "
        "certificates elsewhere gives this to verify_certificate --keys. Needs no database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--new", action="store_true", help="make a private key for CERTIFICATE_KEY, and print it")

    def work(self, options: dict[str, Any]) -> None:
        if options["new"]:
            self.stdout.write(f"CERTIFICATE_KEY={certificates.new_key()}")
        else:
            self.stdout.write(certificates.write_keys(certificates.known_keys()))
