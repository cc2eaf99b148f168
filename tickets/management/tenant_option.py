"""Choose the tenants that a command goes through: one by --tenant, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.management.base import CommandParser

from portal.dynamo.store import Store
from portal.management.command import seconds
from tenants.tenancy import context, tenant_directory


@dataclass(frozen=True)
class Chosen:
    slug: str
    tenant_id: str

    @cached_property
    def repository(self) -> Store:
        """The way to its content where it lies now: one read."""
        return context.for_system(tenant_directory.get(self.tenant_id)).repository


def add_arguments(parser: CommandParser, waiting: str = "", *, default: float = 0) -> None:
    """Add --tenant and --all, and with `waiting` an option of that name for the patience with the stream worker."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--tenant", action="append", default=[], metavar="SLUG", dest="slugs", help="these only; may be repeated"
    )
    which.add_argument("--all", action="store_true", help="all tenants, one after the other; as without --tenant")
    if waiting:
        parser.add_argument(
            waiting, type=seconds, default=default, metavar="SECONDS",
            help="how long the stream worker may make no progress (%(default)s)",
        )  # fmt: skip


def chosen(options: dict[str, Any]) -> Iterator[Chosen]:
    """Yield the tenants that the options name. Raises NotFound for a slug that nobody has, before the first is used."""
    if options["slugs"]:
        found = [tenant_directory.find(slug) for slug in dict.fromkeys(options["slugs"])]
        yield from (Chosen(tenant.slug, tenant.tenant_id) for tenant in found)
    else:
        yield from (Chosen(item.name, item.tenant_id) for item in tenant_directory.all_tenants())
