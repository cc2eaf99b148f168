"""Write on a comment how the letter fared that it became: held, sent, bounced, complained.

Held: it waits in the outbox, or is tried again. Sent: a carrier has taken it. Bounced: it was refused or came back.
Complained: somebody there reported it as unwanted. The later ones stay where an earlier one comes after them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from portal import clock
from portal.dynamo.store import Action
from portal.errors import ConditionFailed
from tenants.tenancy.context import TenantContext
from tickets.ticket import stored
from tickets.ticket.stored import BOUNCED, COMPLAINED, HELD, SENT, ActivityItem

NOTE_LIMIT: Final = 200  # characters
_ADDRESS: Final = re.compile(r"<?[^\s<>@]+@[^\s<>@]+>?")
_OVER: Final = {HELD: (HELD,), SENT: (HELD,), BOUNCED: (HELD, SENT), COMPLAINED: (HELD, SENT, BOUNCED)}


def mark(tenant: TenantContext, number: int, sort: str, state: str, *, note: str = "") -> bool:
    """Write the state on the entry with this sort key; False where it is none that became a letter, or is further.

    `note` says why, and is stored without addresses, so that a person who is erased is not named here. Costs one
    UpdateItem.
    """
    entry = ActivityItem(tenant.repository.key(stored.ticket, number), sort)
    delivery = ActivityItem.delivery
    actions: list[Action] = [delivery.set(state), ActivityItem.delivery_at.set(clock.stamp())]
    shown = _ADDRESS.sub("(address)", note)[:NOTE_LIMIT]
    actions.append(ActivityItem.delivery_note.set(shown) if shown else ActivityItem.delivery_note.remove())
    before: Any = delivery.is_in(*_OVER[state])
    with suppress(ConditionFailed):
        tenant.repository.update(entry, actions, condition=before)
        return True
    return False
