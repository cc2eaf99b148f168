"""Let something go along with a change, in its transaction and without a round trip of its own: see `Companion`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from portal.dynamo.client import fan_out
from portal.dynamo.repository import Transaction
from portal.errors import TransactionRefused

_T = TypeVar("_T")
_Told = TypeVar("_Told", contravariant=True)


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


def beside(companion: Companion[Any] | None, read: Callable[[], _T]) -> _T:
    """Read, and let the companion do its part at the same time: one round trip for both."""
    if companion is None:
        return read()
    found: list[_T] = []
    fan_out([companion.meanwhile, lambda: found.append(read())])
    return found[0]
