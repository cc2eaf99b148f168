"""Find tenants: by slug, by id, or all of them in the order of their slugs; and check slugs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, NotFound
from portal.schema import keys
from tenants.sign_in.stored import UniqueItem
from tenants.tenancy.stored import DirectoryItem, TenantItem, TenantStatus, slug_key

TENANTS = "TENANT"  # the directory's partition that lists them
SUSPENDED_TENANTS = "SUSPENDED"  # the partition of those that are suspended
CLOSING_TENANTS = "CLOSING"  # the partition of those that are closing or purged
_PARTITIONS: dict[str, str] = {
    TenantStatus.SUSPENDED: SUSPENDED_TENANTS,
    TenantStatus.CLOSING: CLOSING_TENANTS,
    TenantStatus.PURGING: CLOSING_TENANTS,
}


def find(slug: str) -> TenantItem:
    """Return the tenant with this slug, for commands: two GetItems. Raises NotFound."""
    tenant_id = id_of(slug)
    tenant = get(tenant_id) if tenant_id is not None else None
    if tenant is None or slug_key(tenant.slug) != slug_key(slug):  # a former name is kept for the desk's mail alone
        raise NotFound(f"There is no tenant with the slug {slug!r}.")
    return tenant


def with_slug(slug: str) -> TenantItem | None:
    """Return the tenant with this slug, for pages that ask for one; None where there is none, or no slug was given."""
    try:
        return find(slug) if slug else None
    except NotFound:
        return None


def id_of(slug: str) -> str | None:
    """Return the id of the tenant that has this slug, or had it before its last renaming: one read."""
    try:
        (named,) = PLATFORM.get_all([(UniqueItem, slug_key(slug), None)], consistent=True)
    except ValueError:
        return None
    return named.owner if named else None


def all_tenants() -> Iterator[DirectoryItem]:
    """Return all tenants by slug, a Query for every megabyte of them; for commands that go through all."""
    return PLATFORM.query_all(DirectoryItem, TENANTS)


def has_at_least(number: int) -> bool:
    """Tell whether there are so many tenants: one Query of so many."""
    return len(PLATFORM.query(DirectoryItem, TENANTS, limit=number).items) == number


def after(slug: str, *, limit: int) -> list[DirectoryItem]:
    """Return the next tenants by slug behind this one, "" for the first ones: one Query."""
    start = {"kind": {"S": TENANTS}, "name": {"S": slug}} if slug else None
    return PLATFORM.query(DirectoryItem, TENANTS, limit=limit, start=start).items


def get(tenant_id: str) -> TenantItem:
    """Return the tenant as stored now: one consistent read. Raises NotFound."""
    try:
        (tenant,) = PLATFORM.get_all([(TenantItem, keys.tenant(tenant_id), None)], consistent=True)
    except ValueError:
        tenant = None
    if tenant is None:
        raise NotFound(_("There is no such tenant."))
    stored: TenantItem = tenant
    return stored


def get_many(tenant_ids: Sequence[str]) -> list[TenantItem]:
    """Return the tenants of up to 100 ids, as stored now, without those that do not exist: one consistent
    BatchGetItem."""
    wanted: list[Any] = [(TenantItem, keys.tenant(tenant_id), None) for tenant_id in tenant_ids]
    return [tenant for tenant in PLATFORM.get_all(wanted, consistent=True) if tenant is not None]


def refuse_arriving(tenant: TenantItem) -> None:
    """Raise Conflict for a tenant that is being brought in: the import writes to the place that it has seen."""
    if tenant.arriving:
        raise Conflict(
            f"{tenant.name} is being brought in. Let that end first, or give it up: import_tenant --abandon "
            f"{tenant.slug}."
        )


def refuse_closed(tenant: TenantItem) -> None:
    """Raise Conflict for a tenant that is closed or being purged: operators change nothing in it either."""
    if tenant.status == TenantStatus.PURGING:
        raise Conflict(_("%(desk)s is being purged. Nothing in it can be changed.") % {"desk": tenant.name})
    if tenant.status == TenantStatus.CLOSING:
        raise Conflict(
            _(
                "%(desk)s is closed, and nothing in it can be changed. Undo the closing first: in the admin, or by "
                "reopen_tenant %(slug)s."
            )
            % {"desk": tenant.name, "slug": tenant.slug}
        )


def suspended_tenants(limit: int) -> list[DirectoryItem]:
    """Return up to `limit` suspended tenants by slug: one Query of the partition that they have to themselves."""
    return list(PLATFORM.query(DirectoryItem, SUSPENDED_TENANTS, limit=limit).items)


def closing_tenants(limit: int) -> list[DirectoryItem]:
    """Return up to `limit` tenants by slug that are closing or purged: one Query of the partition that they have."""
    return list(PLATFORM.query(DirectoryItem, CLOSING_TENANTS, limit=limit).items)


def list_as(transaction: Transaction, tenant: TenantItem, status: str, *, closes_at: str = "") -> None:
    """Say in the directory what a tenant, as it was stored, is from now on, and in which partition it stands."""

    def listed(kind: str) -> DirectoryItem:
        return DirectoryItem(
            kind,
            tenant.slug,
            tenant_id=tenant.tenant_id,
            title=tenant.name,
            created_at=tenant.created_at,
            status=status,
            closes_at=closes_at or None,
        )

    before, after = _PARTITIONS.get(tenant.status), _PARTITIONS.get(status)
    transaction.put(listed(TENANTS))
    if after is not None:
        transaction.put(listed(after))
    if before not in (None, after):
        transaction.delete(listed(str(before)))


_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")
# What stands at the beginning of other addresses, now or perhaps one day.
_RESERVED_WORDS: Final = """
    about account admin api app articles assets auth billing blog callback contact dashboard desk desks docs
    download events forms health healthz help hooks impersonation inbound invitation invitations legal letters login
    logout mail media metrics new oauth operator operators password pooldesk portal pricing privacy public r readyz
    requesters robots search security session sessions settings sign-in sign-out sign-up signin signout signup sso
    static status support switch teams tenant tenants terms tickets user users webhook webhooks well-known www
"""
# A slug is also a desk's mail address. With these names a desk would get the mail of whoever runs the installation, by
# which authorities issue certificates, or answers to other desks' letters whose token was mangled on the way.
# Sources: RFC 2142; CA/Browser Forum, Baseline Requirements, 3.2.2.4.4.
_RESERVED_MAILBOXES: Final = """
    abuse administrator bounce bounces dmarc hostmaster mailer-daemon no-reply noc noreply postmaster reply root
    ssladmin tls-reports webmaster
"""
SLUG_RULE: Final = gettext_noop("Use 1-40 lowercase letters, digits or hyphens.")
RESERVED: Final = frozenset(_RESERVED_WORDS.split()) | frozenset(_RESERVED_MAILBOXES.split())


def slug_of(name: str) -> str:
    """Return a slug for a name: "Müller & Söhne" gives "muller-sohne"."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:40].strip("-")


def valid_slug(slug: str) -> str:
    """Return the slug. Raises Invalid where it has the wrong form or is reserved."""
    if slug.startswith("-") or slug.endswith("-"):
        raise Invalid(_("Begin and end with a letter or digit."), field="slug")
    if not _SLUG.match(slug):
        raise Invalid(_(SLUG_RULE), field="slug")
    if slug in RESERVED:
        raise Invalid(_("The name %(name)s is reserved. Choose another one.") % {"name": slug}, field="slug")
    return slug
