"""Put together a write of several items that happens as a whole or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal.dynamo import client
from portal.dynamo.client import Item, fan_out
from portal.errors import TransactionRefused

_T = TypeVar("_T")
_Told = TypeVar("_Told", contravariant=True)

TRANSACTION_LIMIT: Final = 100  # members of one TransactWriteItems; AWS, "Quotas in Amazon DynamoDB"


@dataclass
class Transaction:
    """Members of one all-or-nothing write, sent in the order given.

    A member may have a name, by which a refusal is asked for its reason: `refused.reason("seat")`. PynamoDB's own
    TransactWrite reorders members by kind; its serialisation is used, its ordering is not.
    """

    members: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def put(self, item: Item, *, name: str = "", condition: Condition | None = None) -> None:
        """Write an item in place of the stored one."""
        if condition is None:  # PynamoDB takes as long again to find that there is no expression to build
            self.add("Put", {"TableName": item.table.full_name, "Item": item.serialize()}, name=name)
        else:
            self.add("Put", item.get_save_kwargs_from_instance(condition=condition), name=name)

    def update(self, item: Item, actions: list[Action], *, name: str = "", condition: Condition | None = None) -> None:
        """Update attributes of the stored item that has this item's key."""
        member = item.get_update_kwargs_from_instance(actions=actions, condition=condition)
        self.add("Update", member, name=name)

    def delete(self, item: Item, *, name: str = "", condition: Condition | None = None) -> None:
        """Delete the stored item that has this item's key."""
        self.add("Delete", item.get_delete_kwargs_from_instance(condition=condition), name=name)

    def check(self, item: Item, condition: Condition, *, name: str = "") -> None:
        """Refuse all of it unless the stored item that has this item's key meets the condition."""
        self.add("ConditionCheck", item.get_delete_kwargs_from_instance(condition=condition), name=name)

    def add(self, kind: str, member: dict[str, Any], *, name: str = "") -> None:
        """Add a member as DynamoDB takes it. Where it has a condition, a refusal carries the stored item."""
        if "ConditionExpression" in member:
            member["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        self.members.append({kind: member})
        self.names.append(name)

    def copy(self) -> Transaction:
        """Return the same members, to which others can be added."""
        return Transaction([*self.members], [*self.names])

    def __len__(self) -> int:
        return len(self.members)


def write(connection: client.SharedConnection, transaction: Transaction, *, token: str | None = None) -> None:
    """Send a transaction. `token` (up to 36 characters) makes a repeated send within 10 minutes do nothing.

    Raises TransactionRefused with one reason per member, and ValueError above TRANSACTION_LIMIT.
    """
    if len(transaction) > TRANSACTION_LIMIT:
        raise ValueError(f"a transaction has at most {TRANSACTION_LIMIT} members, not {len(transaction)}")
    try:
        connection.dispatch(
            "TransactWriteItems",
            {"TransactItems": transaction.members, "ClientRequestToken": token or str(uuid.uuid4())},
        )
    except TransactionRefused as refused:
        refused.names = tuple(transaction.names)
        raise


class Companion(Protocol[_Told]):
    """Add what a rule's caller has to a change: the record of an answer, say, which is written with it or not at all.

    Its errors end the rule. It takes one member of the transaction.
    """

    def meanwhile(self) -> None:
        """Do what has to be done before the change is written; called beside the rule's first reads, once."""

    def join(self, transaction: Transaction, told: _Told) -> None:
        """Add its member to the transaction, anew for each attempt. `told` is what the change makes."""

    def blame(self, refused: TransactionRefused) -> None:
        """Raise what the caller is to be told, where its own member was what refused the transaction."""


def with_companion(companion: Companion[Any] | None, read: Callable[[], _T]) -> _T:
    """Read, and let the companion do its part at the same time: one round trip for both."""
    if companion is None:
        return read()
    found: list[_T] = []
    fan_out([companion.meanwhile, lambda: found.append(read())])
    return found[0]
