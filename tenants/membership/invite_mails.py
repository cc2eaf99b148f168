"""Keep of an invitation that its mail did not get through, so that whoever sent it sees that and why."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from portal import clock
from portal.dynamo.repository import Action
from portal.errors import ConditionFailed
from portal.isolation import guard
from portal.schema import keys
from portal.streams import worker
from tenants.membership.items import InviteItem

WHY_LIMIT: Final = 400  # characters


def note_unreached(tenant_id: str, invite_id: str, *, why: str, sent_at: str) -> None:
    """Write it down, as who carries mail: one UpdateItem. Nothing where the invitation is gone, or was sent again after
    `sent_at`, the stamp of that mail."""
    if not keys.USER_ID.match(invite_id):
        return
    actions: list[Action] = [InviteItem.unreached_at.set(clock.stamp()), InviteItem.unreached_why.set(why[:WHY_LIMIT])]
    unsent = InviteItem.sent_at <= sent_at
    with suppress(ConditionFailed), guard.acting_for(tenant_id):
        worker.change(InviteItem(tenant_id, invite_id), actions, condition=unsent)
