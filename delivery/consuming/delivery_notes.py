"""Note, for the operators' page, what came of a message, and how long it had been in its queue."""

from __future__ import annotations

import time
from typing import Final

from delivery.queues.queue_transport import Message, Received
from portal.noise import noise_teller
from portal.noise.noise_tally import NoiseTally

_FIELDS: Final = {"answered": "deliveries", "failed": "failed", "dead": "dead", "held": "held", "postponed": "put_off"}


def waited(received: Received) -> float:
    """Return for how many seconds the message has been in its queue, by SQS's clock and ours."""
    return max(0.0, time.time() - received.sent_at) if received.sent_at else 0.0


def note(message: Message, did: str, seconds: float) -> None:
    """Add it to what this process tells of the tenant. `seconds` are those before it was taken up."""
    field = _FIELDS.get(did)
    if field is not None:
        noise_teller.note(message.tenant_id, NoiseTally(**{field: 1, "wait": seconds}))
