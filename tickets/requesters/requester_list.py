"""Read the requesters of a desk as a list: all of them by name, or those whom the beginning of a text names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from portal.dynamo import paging
from tenants.tenancy.context import TenantContext
from tickets.requesters import requesters, stored
from tickets.requesters.requesters import Requester
from tickets.requesters.stored import PROFILE, RequesterRow

_LIST: Final = ("requesters",)  # what cursors are bound to, beside the tenant


@dataclass(frozen=True)
class RequesterList:
    """A page of people. `next` is the cursor of the next one, "" where there is none."""

    people: list[Requester]
    next: str


def page(tenant: TenantContext, *, typed: str, after: str, limit: int, whole: bool = False) -> RequesterList:
    """Return a page of all people by name, or with `typed` those whom completion finds for it, who have one page.

    One Query, or two at the same time. The people know what rows of the index say of them, unless they are wanted
    `whole`, for one BatchGetItem more. Raises Invalid for a cursor of another list.
    """
    if typed.strip():
        found, cursor = requesters.complete(tenant, typed, limit=limit), ""
    else:
        start = _start(tenant, after) if after else None
        rows = tenant.repository.query(RequesterRow, stored.people, start=start, limit=limit)
        found, cursor = [*map(requesters.of_row, rows.items)], _cursor(tenant, rows.last_key)
    return RequesterList(requesters.stored_people(tenant, [one.id for one in found]) if whole else found, cursor)


def _cursor(tenant: TenantContext, last_key: dict[str, Any] | None) -> str:
    """Return the cursor behind this key: it holds no partition key."""
    if last_key is None:
        return ""
    return paging.dump([last_key["found_by"]["S"]], tenant_id=tenant.tenant_id, query=_LIST)


def _start(tenant: TenantContext, cursor: str) -> dict[str, Any]:
    """Return the key behind which a page begins, formed anew for this tenant."""
    (found_by,) = paging.load(cursor, tenant_id=tenant.tenant_id, query=_LIST)
    texts = {
        "tenant_group": tenant.repository.key(stored.people),
        "found_by": found_by,
        "pk": tenant.repository.key(stored.requester, stored.id_in_place(found_by)),
        "sk": PROFILE,
    }
    return {name: {"S": text} for name, text in texts.items()}
