"""Lend a tenant units beyond its cap while slots are idle, and while what it has comes back quickly; keep all but one
back while its deliveries hang.

A cap protects the others when a tenant's messages hold their slots for long. A tenant that merely has much to do, and
whose messages are soon answered, takes nothing from anybody while slots are idle. Which of the two it is, its last
answers say: only a tenant that waits, and whose answers since then were all quick, borrows. One slow answer ends it,
so a receiver that hangs holds the cap and no more, except for what was lent while it was quick.

A delivery hangs that fails and took long. As many in a row as the cap show that all of them would: from then on one
delivery is tried at a time, until one succeeds or fails at once. So a hang is bounded by deliveries, not by seconds.
"""

from __future__ import annotations

from typing import Final

QUICK_SECONDS: Final = 2.0  # from sending to the answer
HANG_SECONDS: Final = 5.0  # from sending until a delivery failed, from which on it hung
ANSWERS: Final = 12  # quick ones in a row before anything is lent
_SHARE_LENT: Final = 3  # one more unit for so many of the cap
_SHARE_IDLE: Final = 8  # one slot in so many stays idle


class Lending:
    """Remember how quickly the tenants that wait are answered. The caller holds a lock around each call.

    `slots` is the number of messages that all workers together can work on; 0 where nobody knows, and nothing is lent.
    """

    def __init__(self, slots: int) -> None:
        self._most_at_work = slots - -(-slots // _SHARE_IDLE)
        self._quick: dict[str, int] = {}  # by tenant that waits, its last quick answers in a row
        self._hung: dict[str, int] = {}  # by tenant, its last deliveries in a row that hung

    def ended(self, tenant_id: str, seconds: float, *, failed: bool, waits: bool) -> None:
        """Take note of the end of a delivery, of a tenant that waits for more or not."""
        if failed and seconds > HANG_SECONDS:
            self._hung[tenant_id] = self._hung.get(tenant_id, 0) + 1
        else:
            self._hung.pop(tenant_id, None)
        if waits:
            self._quick[tenant_id] = self._quick.get(tenant_id, 0) + 1 if seconds <= QUICK_SECONDS else 0

    def forget(self, tenant_id: str) -> None:
        """Take note that the tenant waits no longer."""
        self._quick.pop(tenant_id, None)

    def units(self, tenant_id: str, cap: int, *, at_work: float) -> int:
        """Return how many units a tenant may have while so many messages of all are on their way."""
        if self._hung.get(tenant_id, 0) >= cap:
            return 1
        return cap + self._lent(tenant_id, cap, at_work=at_work)

    def _lent(self, tenant_id: str, cap: int, *, at_work: float) -> int:
        if self._quick.get(tenant_id, 0) < ANSWERS or at_work >= self._most_at_work:
            return 0
        return cap // _SHARE_LENT
