"""Declare the two tables of the lists, their keys, what each role may do with them, and the models of their rows."""

from __future__ import annotations

from typing import Final

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import IndexModel, Item
from portal.schema import keys
from portal.schema.registry import Grant, Table, declare

TODOS: Final = Table("Lists.Todos", "tenant", "pk", "sk", stream=True, leading_keys=keys.OWN_COLLECTIONS)
COUNTS: Final = Table("Lists.Counts", "tenant", "tenant_id")
LIST: Final = "LIST"

declare(
    TODOS,
    COUNTS,
    grants=(
        Grant("tenant", TODOS, ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")),
        Grant("tenant", COUNTS, ("GetItem",)),
        Grant(
            "worker",
            TODOS,
            ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
            "FollowTodos",
            stream=True,
        ),
        Grant("worker", COUNTS, ("GetItem", "PutItem")),
    ),
)


def list_key(tenant_id: str, name: str) -> str:
    """Form the partition key of a list."""
    return keys.collection(tenant_id, LIST, name)


def numbers_key(tenant_id: str) -> str:
    """Form the partition key of the last numbers of a tenant's lists."""
    return keys.collection(tenant_id, "NUMBERS")


def state_key(tenant_id: str, *, done: bool) -> str:
    """Form the partition key, in the index, of what is open, or done, in all lists of a tenant."""
    return keys.composite(tenant_id, "DONE" if done else "OPEN")


def number_key(number: int) -> str:
    """Form the sort key of a to-do: sorted as text, it is sorted by number."""
    return keys.whole_number(number, "a number", least=1).zfill(8)


class TodoItem(Item):
    """A to-do. `state_key` says for the index what `is_done` says."""

    table = TODOS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    text = UnicodeAttribute()
    added_at = UnicodeAttribute()
    is_done = BooleanAttribute(default=False)
    state_key = UnicodeAttribute()


class TodoByState(IndexModel):
    """A row of the index of to-dos by state, the oldest first."""

    table = TODOS
    label = "state"
    leading_keys = keys.OWN_COMPOSITES

    state_key = UnicodeAttribute(hash_key=True)
    added_at = UnicodeAttribute(range_key=True)
    pk = UnicodeAttribute()
    sk = UnicodeAttribute()
    text = UnicodeAttribute()


class LastNumberItem(Item):
    """The last number of a list, which is the sort key."""

    table = TODOS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    last = NumberAttribute(default=0)


class CountItem(Item):
    """The counts of a tenant. `marks` tells, by shard of the stream, up to which record they hold; see `counting.py`.

    `version` grows with each write, so that of two writers at once one is refused.
    """

    table = COUNTS

    tenant_id = UnicodeAttribute(hash_key=True)
    open = NumberAttribute(default=0)
    done = NumberAttribute(default=0)
    marks = UnicodeAttribute(default="{}")  # JSON
    version = NumberAttribute(default=0)
