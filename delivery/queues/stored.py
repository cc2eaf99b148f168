"""Declare what is stored about queues: who has which, how full they are, held tenants, and dead deliveries.

The table of queues is the platform's. A tenant's own set is in its configuration; here it stands with all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from delivery.outbox.stored import OUTBOX
from delivery.queues.queue_transport import NAME
from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding, own_partition
from portal.schema.registry import Grant, QueueGrant, Table, declare
from tenants.tenancy.stored import DIRECTORY

# --- queues and sets ---

GIVEN: Final = "GIVEN"  # how many sets have been given out, by the number of queues
SETS: Final = "SETS"  # who has which, by tenant
DEPTHS: Final = "DEPTHS"  # how full the queues were when a worker looked last
LATEST: Final = "LATEST"

QUEUES = Table(
    "Events.Queues", "platform", "kind", "name", shared="operators and the allocation see the queue sets of all tenants"
)
_ACTIONS: Final = (
    "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage", "SendMessage",
)  # fmt: skip

declare(
    QUEUES,
    grants=(
        QueueGrant("worker", NAME, _ACTIONS, "CarryWhatLeaves"),
        QueueGrant("delivery", NAME, _ACTIONS, "CarryWhatLeaves"),
        Grant("worker", QUEUES, ("PutItem",), "TellDepths", leading_keys=DEPTHS),
        Grant("platform", QUEUES, ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
    ),
)


def count_of(queues: int) -> str:
    """Return the sort key of the count of sets given out of so many queues: in numerical order."""
    return keys.part(f"{queues:03}")


class GivenItem(Item):
    """Count the sets given to tenants, for the number of queues in `name`."""

    table = QUEUES

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    given = NumberAttribute()


class QueueSetItem(Item):
    """The set of one tenant, whose id is `name`. `queues` is JSON, as in the tenant's own item, which is what counts;
    both are written in one transaction."""

    table = QUEUES

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    queues = UnicodeAttribute()


class DepthsItem(Item):
    """Hold the lengths of all queues at one time, as JSON: a list of [waiting, in flight, delayed] by number."""

    table = QUEUES

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    at = UnicodeAttribute()
    depths = UnicodeAttribute()


def _set(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(QUEUES, SETS, begins_with=reader.tenant_id)


# --- holds ---

HOLDS: Final = keys.part("DELIVERYHOLD")  # the partition of the directory in which all of them are
EVERYTHING: Final = "0"  # sorts before every stamp, so all events are later

declare(
    grants=(
        Grant("platform", DIRECTORY, ("GetItem", "Query"), "ReadHolds", leading_keys=HOLDS),
        Grant("delivery", DIRECTORY, ("Query",), "ObeyHolds", leading_keys=HOLDS),
        Grant("worker", DIRECTORY, ("DeleteItem", "Query", "UpdateItem"), "CarryOutHolds", leading_keys=HOLDS),
    ),
)


class HoldItem(Item):
    """Hold back deliveries of one tenant. `name` is the tenant's id, `title` what it was called then.

    Events after the moment `waits_from` wait; `EVERYTHING` is before all of them. Events up to `dropped_until` are not
    delivered at all. Either is missing where it holds nothing back.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    title = UnicodeAttribute(default="")
    waits_from = UnicodeAttribute(null=True)
    dropped_until = UnicodeAttribute(null=True)
    changed_at = UnicodeAttribute()


def _hold(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(DIRECTORY, HOLDS, begins_with=reader.tenant_id)


# --- dead deliveries ---

LISTED: Final = keys.part("LISTED")  # the one partition of the index that lists those of all tenants

DEAD_DELIVERIES = Table("Events.DeadLetters", "tenant", "tenant_id", "letter_id", ttl="expires_at")


class DeadDeliveryRow(IndexModel):
    """A row of the list of all tenants' dead deliveries. No tenant reads it."""

    table = DEAD_DELIVERIES
    label = "by-time"
    leading_keys = ""
    shared = "operators list failed deliveries of all tenants, newest first"

    listed = UnicodeAttribute(hash_key=True)
    at = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    letter_id = UnicodeAttribute()
    event_id = UnicodeAttribute()
    timestamp = UnicodeAttribute()
    index = NumberAttribute()
    destination = UnicodeAttribute()
    event_type = UnicodeAttribute()
    subject = UnicodeAttribute()
    reason = UnicodeAttribute()
    expires_at = NumberAttribute()


declare(
    DEAD_DELIVERIES,
    grants=(
        # A consumer acts as the tenant whose message it holds.
        Grant("tenant", DEAD_DELIVERIES, ("BatchGetItem", "GetItem", "PutItem", "Query")),
        Grant("platform", DEAD_DELIVERIES, ("DeleteItem",)),
        Grant("platform", DEAD_DELIVERIES, ("Query",), "ListDeadDeliveries", index=DeadDeliveryRow.gsi),
        Grant("platform", OUTBOX, ("UpdateItem",), "ReplayDeadDeliveries"),
        # It puts aside what an operator holds.
        Grant("delivery", OUTBOX, ("UpdateItem",), "PutAsideWhatIsHeld"),
    ),
)


def dead_delivery(timestamp: str, event_id: str, member: str) -> str:
    """Return the sort key of a dead delivery within its tenant: the moment of its event, and a digest of what it is."""
    return keys.joined(timestamp, keys.digest(f"{event_id} {member}", size=8))


class DeadDeliveryItem(Item):
    """A delivery that was given up. The event stays in the outbox, in the row `event_id` and `timestamp`, and expires
    by TTL at the same time as that row.

    `index` is the event's place in the row, `reason` a sentence, `at` when it was given up. `listed` is the
    partition of the index. `placement` says in whose outbox the row is, missing for that of all; the index lacks it.
    """

    table = DEAD_DELIVERIES

    tenant_id = UnicodeAttribute(hash_key=True)
    letter_id = UnicodeAttribute(range_key=True)
    event_id = UnicodeAttribute()
    timestamp = UnicodeAttribute()
    index = NumberAttribute()
    destination = UnicodeAttribute()
    event_type = UnicodeAttribute()
    subject = UnicodeAttribute()
    reason = UnicodeAttribute()
    at = UnicodeAttribute()
    listed = UnicodeAttribute()
    placement = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()


_dead = own_partition(DEAD_DELIVERIES)


declare_holding(
    Holding("queue set", (QUEUES,), _set, Stage.OWN, left_out="an installation gives its own queues"),
    Holding("hold", (DIRECTORY,), _hold, Stage.BESIDE, left_out="it holds what another outbox has"),
    Holding(
        "dead deliveries", (DEAD_DELIVERIES,), _dead, Stage.BESIDE, left_out="each is a row of an outbox that stays"
    ),
)


declare_keys(
    QUEUES, {"queue depths": "DEPTHS, LATEST", "given queues": "GIVEN, <number>", "queue set": "SETS, <tenant>"}
)
declare_keys(DEAD_DELIVERIES, {"dead delivery": ""}, indexes={"dead deliveries by time": "by-time"})
declare_keys(DIRECTORY, {"hold of deliveries": "DELIVERYHOLD, <tenant>"})
