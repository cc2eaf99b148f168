"""Find the desk that an address outside names. Whatever is no open desk is one and the same NotFound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from portal.bounded_cache import BoundedCache
from portal.errors import NotFound
from portal.web.access import guest
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tenants.tenancy.stored import TenantItem
from tickets.letters import desk_addresses


def of_tenant(tenant: TenantItem | None) -> TenantContext:
    """Return the context of a desk for somebody outside: nobody is at work in it, and an agent's rules refuse it.

    Raises NotFound for a desk that is no more, is closing, or lets nobody in.
    """
    if tenant is None:
        raise NotFound
    desk = context.of_tenant(tenant, role=Role.VIEWER, user_id="", user_name="")
    if desk.suspended or desk.where.purged:
        raise NotFound
    return desk


def _named(arguments: Mapping[str, Any]) -> TenantContext:
    """Return the desk with this name. Where the process remembers whose it was, the desk itself says if it still is."""
    name = arguments["slug"]
    known = _ids.get(name)
    tenant = desk_addresses.desk_at_work(known) if known else None
    if tenant is None or tenant.slug != name:
        tenant = desk_addresses.desk_named(name)
    if tenant is not None:
        _ids.put(name, tenant.tenant_id)
    return of_tenant(tenant)


_ids: Final[BoundedCache[str, str]] = BoundedCache(1024)
forget: Final = _ids.clear  # as a process that was just started


# Declares a view whose address has the desk's name as `slug`. Costs one read, two for a name that the
# process has not met. A page with a signed token declares its
# own by `guest(find)`, where `find` reads the token and passes `desk_addresses.desk_at_work(...)` to `of_tenant`.
by_name: Final = guest(_named)
