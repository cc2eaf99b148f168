"""`manage.py create_api_key`."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandParser

from portal import clock
from portal.errors import Invalid
from portal.management.command import PortalCommand, whole_number
from portal.schema.access_patterns import cost
from tenants.api_keys import key_changes, scopes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import Actor
from tenants.tenancy import context, tenant_directory

SCOPES: Final = ", ".join(scope.value for scope in Scope)


class Command(PortalCommand):
    costs = cost(get="slug, tenant", query="API key", write="API key, audit row", reads=8, writes=20)
    help = "Make an API key of a tenant and print it, and nothing else, on standard output. It is not shown again."
    again = "The key may have been made. The page API keys of the desk shows it, and there it can be revoked."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="the slug of the tenant")
        parser.add_argument("--name", required=True, help="what the key is for; histories show it as who did something")
        parser.add_argument(
            "--scopes",
            required=True,
            metavar="A,B",
            help=f"what it may do: {SCOPES}",
        )
        parser.add_argument("--days", type=whole_number(1, 3650), help="how long it works (until it is revoked)")
        parser.add_argument(
            "--from",
            dest="addresses",
            default="",
            metavar="NETWORKS",
            help="the networks that it may be used from, such as 203.0.113.0/24,2001:db8::/32 (any)",
        )
        parser.add_argument(
            "--origins", default="", help="the origins of pages whose scripts may use it, separated by commas (none)"
        )

    def work(self, options: dict[str, Any]) -> None:
        choice = KeyChoice(
            name=" ".join(options["name"].split()),
            scopes=_scopes(options["scopes"]),
            expires_at=clock.now() + timedelta(days=options["days"]) if options["days"] else None,
            addresses=_words(options["addresses"]),
            origins=_words(options["origins"]),
        )
        tenant = tenant_directory.find(options["tenant"])
        tenant_directory.refuse_closed(tenant)
        by = Actor(origin="create_api_key")
        _, text = key_changes.create(context.for_system(tenant), choice=choice, request_id=uuid.uuid4().hex, by=by)
        self.stdout.write(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in text.split(","))))


def _scopes(text: str) -> frozenset[Scope]:
    words = _words(text)
    known = scopes.named(words)
    if unknown := [word for word in words if word not in known]:
        raise Invalid(f"There is no scope “{unknown[0][:80]}”. There are {SCOPES}.")
    return known
