"""Remember of a requester's address that mail does not reach it, and why, until it writes itself or somebody lets mail
go to it again."""

from __future__ import annotations

from portal.dynamo.retry import retrying
from portal.dynamo.store import Transaction
from portal.errors import TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.requesters import requesters, stored
from tickets.requesters.stored import ADDRESS, PROFILE, AddressItem, ProfileItem

_ATTEMPTS = 4
WHY_LIMIT = 200  # characters


def note(tenant: TenantContext, address: str, why: str) -> bool:
    """Write on the person who has this address that mail does not reach it; "" as the reason takes that back.

    Returns whether anything was written: nobody may have the address. Costs two GetItems and, where the reason is
    another one, a transaction of two items.
    """
    return retrying(
        lambda: _note(tenant, address, why[:WHY_LIMIT]),
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
    )


def _note(tenant: TenantContext, address: str, why: str) -> bool:
    requester_id = requesters.id_of_address(tenant, address)
    person = requesters.find(tenant, requester_id) if requester_id else None
    key = next((one for one in person.addresses if one == address.strip().lower()), None) if person else None
    if person is None or key is None or person.bounced.get(key, "") == why:
        return False
    item = tenant.repository.get(ProfileItem, stored.requester, person.id, sort=PROFILE, consistent=True)
    row = tenant.repository.get(AddressItem, stored.address, key, sort=ADDRESS, consistent=True)
    if item is None or row is None:
        return False
    seen = int(item.version)
    bounced = stored.bounced_of(item)
    bounced.pop(key, None)
    item.bounced = bounced | ({key: why} if why else {})
    item.version, row.bounced_because = seen + 1, why or None
    transaction = Transaction()
    transaction.put(item, condition=ProfileItem.version == seen)
    transaction.put(row, condition=AddressItem.requester_id == person.id)
    tenant.repository.transact(transaction)
    return True
