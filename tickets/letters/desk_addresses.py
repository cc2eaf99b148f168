"""Find the desk that an address of an envelope belongs to. The letter's own To says nothing: anybody writes there."""

from __future__ import annotations

from django.conf import settings

from portal.errors import NotFound
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem, TenantStatus
from tickets.replies import reply_addresses

_READ_TO_THE_END = (TenantStatus.CLOSING, TenantStatus.PURGING)


def is_ours(address: str) -> bool:
    """Tell whether an address is at the domain of the desks."""
    return bool(settings.MAIL_DOMAIN) and address.rpartition("@")[2].lower() == settings.MAIL_DOMAIN


def desk_of(address: str) -> TenantItem | None:
    """Return the desk of a recipient, None where no desk takes letters at it. Costs two reads, one if it is signed.

    `acme+anything@` is `acme@`, and case does not matter. A desk that is closing takes no letters any more.
    """
    local, _, domain = address.strip().strip("<>").lower().rpartition("@")
    if tenant_id := reply_addresses.desk_in(address):
        return desk_at_work(tenant_id)
    if not settings.MAIL_DOMAIN or domain != settings.MAIL_DOMAIN:
        return None
    return desk_named(local.partition("+")[0])


def pace_of(address: str) -> str:
    """Return a text that is the same for all addresses of a name, and for all reply addresses of a desk: no read."""
    claim = reply_addresses.read(address)
    return claim.tenant_id if claim else address.strip().strip("<>").lower().partition("@")[0].partition("+")[0]


def desk_named(name: str) -> TenantItem | None:
    """Return the desk with this name, or with it before its last renaming, as `desk_of` does: two reads."""
    tenant_id = tenant_directory.id_of(name)
    return desk_at_work(tenant_id) if tenant_id else None


def desk_at_work(tenant_id: str) -> TenantItem | None:
    """Return the desk with this id, None where there is none or it is closing: one read."""
    try:
        tenant = tenant_directory.get(tenant_id)
    except NotFound:
        return None
    return None if tenant.status in _READ_TO_THE_END else tenant
