"""Let one verification or repair of a tenant run at a time, whoever starts it: a command or an owner's button.

A lease is about work, not about correctness: two that run side by side cost twice and may call the other's corrections
movement. So a lease whose holder died is simply taken when it has not been renewed for long enough.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

from portal import clock
from portal.dynamo.repository import TenantRepository
from portal.errors import ConditionFailed, Conflict
from tickets.counting import keys
from tickets.counting.items import VerifyLeaseItem

DEAD_AFTER: Final = timedelta(minutes=10)  # without a renewal
_RENEW_AFTER: Final = timedelta(minutes=1)


@contextmanager
def held(repository: TenantRepository, *, by: str, take_over: bool = False) -> Iterator[Callable[[], None]]:
    """Hold the tenant's lease; call what this yields now and then while there is progress.

    Raises Conflict where somebody else holds it, unless `take_over` says that whoever does is dead or is to end. What
    is called while there is progress raises Conflict once somebody else has taken the lease.
    """
    holder = uuid.uuid4().hex
    item = VerifyLeaseItem(repository.key(keys.aggregate), keys.VERIFYING)
    dead = VerifyLeaseItem.renewed_at < clock.stamp(clock.now() - DEAD_AFTER)
    actions = [VerifyLeaseItem.holder.set(holder), VerifyLeaseItem.by.set(by)]
    renewed = clock.now()
    try:
        repository.update(
            item,
            [*actions, VerifyLeaseItem.renewed_at.set(clock.stamp(renewed))],
            condition=None
            if take_over
            else VerifyLeaseItem.holder.does_not_exist()
            | (VerifyLeaseItem.holder == "")
            | (VerifyLeaseItem.holder == holder)  # a lost answer, sent again
            | dead,
        )
    except ConditionFailed as failed:
        other = (failed.item or {}).get("by", {}).get("S", "somebody else")
        raise Conflict(f"The numbers are being verified already, by {other}.") from failed

    def renew() -> None:
        nonlocal renewed
        if clock.now() - renewed > _RENEW_AFTER:
            renewed = clock.now()
            mine = VerifyLeaseItem.holder == holder
            try:
                repository.update(item, [VerifyLeaseItem.renewed_at.set(clock.stamp(renewed))], condition=mine)
            except ConditionFailed as failed:
                raise Conflict("Somebody else has begun to verify the numbers.") from failed

    try:
        yield renew
    finally:
        with suppress(ConditionFailed):
            repository.update(item, [VerifyLeaseItem.holder.set("")], condition=VerifyLeaseItem.holder == holder)
