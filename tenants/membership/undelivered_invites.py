"""Keep of an invitation that its mail did not get through, so that whoever sent it sees that and why.

It stands in a table of its own, because who carries mail acts as the tenant, and a tenant's role changes no invitation:
with that right it could raise the role that one gives.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from typing import Final

from portal import clock
from portal.dynamo.repository import Action, TenantRepository, Transaction
from portal.errors import ConditionFailed
from portal.schema import keys
from tenants.membership.items import InviteItem, UnreachedItem
from tenants.membership.tables import UNREACHED

WHY_LIMIT: Final = 400  # characters
_KEPT: Final = timedelta(days=30)


def listed(repository: TenantRepository) -> dict[str, UnreachedItem]:
    """Return what is known of a tenant's invitations, by the invitation's id: one Query up to 1 MB."""
    stored = map(UnreachedItem.from_raw_data, repository.query_all(UNREACHED, keys.tenant))
    return {item.invite_id: item for item in stored}


def is_about(item: UnreachedItem, invite: InviteItem) -> bool:
    """Tell whether it is about the mail that was sent last, and not about one before."""
    return bool(item.sent_at >= invite.sent_at)


def note(repository: TenantRepository, invite_id: str, *, why: str, sent_at: str) -> None:
    """Write it down of the mail that was written at `sent_at`: one UpdateItem. Nothing where a later mail is known."""
    if not keys.USER_ID.match(invite_id):
        return
    actions: list[Action] = [
        UnreachedItem.sent_at.set(sent_at),
        UnreachedItem.at.set(clock.stamp()),
        UnreachedItem.why.set(why[:WHY_LIMIT]),
        UnreachedItem.expires_at.set(_expiry()),
    ]
    newest = UnreachedItem.sent_at.does_not_exist() | (UnreachedItem.sent_at <= sent_at)
    with suppress(ConditionFailed):
        repository.update(UnreachedItem(repository.tenant_id, invite_id), actions, condition=newest)


def forget_why(repository: TenantRepository, invite_id: str) -> None:
    """Take away what a mail server said, in which an address may be: one UpdateItem. Nothing where nothing is known."""
    with suppress(ConditionFailed):
        repository.update(
            UnreachedItem(repository.tenant_id, invite_id),
            [UnreachedItem.why.set("")],
            condition=UnreachedItem.why.exists(),
        )


def put(transaction: Transaction, invite: InviteItem, *, why: str) -> None:
    """Add to the transaction of an invitation that no mail brings it."""
    transaction.put(
        UnreachedItem(
            invite.tenant_id,
            invite.invite_id,
            sent_at=invite.sent_at,
            at=clock.stamp(),
            why=why[:WHY_LIMIT],
            expires_at=_expiry(),
        )
    )


def _expiry() -> int:
    return int(time.time() + _KEPT.total_seconds())
