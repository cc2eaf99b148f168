"""Gather small texts in one row of the outbox until it is due, so that what happens within a minute is sent together.

The row of a group and a minute has an id that follows from both, so a text that is added again is added to the row that
has it. The delivery seals the row first: from then on it takes no more, and a later text goes into the row of the next
minute. A text is therefore in one row, however often and by however many processes it is added.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from delivery.outbox import publisher
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import Event, EventType
from delivery.outbox.stored import OutboxItem
from portal import clock
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, Unavailable
from portal.schema import keys

WINDOW: Final = timedelta(minutes=1)
KEPT_SECONDS: Final = 5 * 86400  # of a row: whatever adds to it is itself tried for three days
_MOST_ROWS: Final = 500  # that are looked at for one text; each of them was sealed before


@dataclass(frozen=True)
class RowGroup:
    """Name what belongs together: all texts with the same `name` in the same minute.

    `tenant_id` and `queues` are those of the desk, `destination` is who delivers the row, `event` what the row tells.
    """

    tenant_id: str
    queues: Sequence[int]
    name: str
    destination: str
    event: EventType


def add(repository: Store, group: RowGroup, text: str, *, at: str) -> bool:
    """Add a text about something that happened at the stamp `at`. Return False where a row has it already.

    Costs one write for the first text of a row, two for each later one, and one more for each row that is sealed.
    """
    moment = clock.parse(at).replace(second=0, microsecond=0)
    for _ in range(_MOST_ROWS):
        row = _row(group, clock.stamp(moment), clock.stamp(moment + WINDOW), text)
        try:
            repository.put(row, condition=OutboxItem.event_id.does_not_exist())
        except ConditionFailed as refused:
            stored = refused.stored(OutboxItem)
        else:
            return True
        if stored is not None and text in (stored.gathered or ()):
            return False
        open_still = OutboxItem.pending.exists() & OutboxItem.sealed_at.does_not_exist()
        try:
            repository.update(
                OutboxItem(row.event_id, row.timestamp), [OutboxItem.gathered.add({text})], condition=open_still
            )
        except ConditionFailed as refused:
            stored = refused.stored(OutboxItem)
            if stored is not None and text in (stored.gathered or ()):
                return False
            moment += WINDOW
        else:
            return True
    raise Unavailable("Too many rows are being sent at once.")


def seal(work: Work) -> set[str]:
    """Let the row take no more texts, and return those that it has: one write."""
    row = OutboxItem(work.row.event_id, work.row.timestamp)
    stored = work.repository.update(row, [OutboxItem.sealed_at.set(OutboxItem.sealed_at | clock.stamp())])
    return set(stored.gathered or ())


def _row(group: RowGroup, since: str, due: str, text: str) -> OutboxItem:
    row = publisher.new_row(
        tenant_id=group.tenant_id,
        tenant={"id": group.tenant_id},
        queues=group.queues,
        events=[Event(group.event, {}, 0)],
        members=[publisher.member(0, group.destination)],
        subject=group.name,
        at=since,
        kept=KEPT_SECONDS,
        row_id=keys.digest(json.dumps([group.tenant_id, group.destination, group.name, since]), size=16),
        due_at=due,
    )
    row.gathered = {text}
    return row
