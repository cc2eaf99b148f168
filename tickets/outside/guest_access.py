"""Find the desk that an address outside names. Whatever is no open desk is one and the same NotFound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
    return of_tenant(desk_addresses.desk_named(arguments["slug"]))


# Declares a view whose address has the desk's name as `slug`. Costs two reads. A page with a signed token declares its
# own by `guest(find)`, where `find` reads the token and passes `desk_addresses.desk_at_work(...)` to `of_tenant`.
by_name: Final = guest(_named)
