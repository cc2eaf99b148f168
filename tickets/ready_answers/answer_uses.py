"""Count how often ready answers are used: in the transaction of the comment, so that the number is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.transaction import Companion, Transaction
from portal.errors import TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.ready_answers import answer_reading, stored
from tickets.ready_answers.stored import ReadyAnswerItem, UsesItem
from tickets.ticket.stored import counter

MOST: Final = 5  # answers of one comment that are counted


class Uses:
    """Count these answers with a comment: a `Companion`, which goes with another one where there is one.

    `has_begun` says that the other one has done its part meanwhile. Answers that are gone, and what is no answer of
    this desk, are not counted. One BatchGetItem beside the first reads of the comment, and for each answer a member of
    its transaction.
    """

    def __init__(
        self,
        tenant: TenantContext,
        answer_ids: Sequence[str],
        *,
        beside: Companion[Any] | None = None,
        has_begun: bool = False,
    ) -> None:
        self.tenant, self.answer_ids, self.beside = tenant, [*dict.fromkeys(answer_ids)][:MOST], beside
        self.has_begun = has_begun
        self.found: list[ReadyAnswerItem] = []

    def meanwhile(self) -> None:
        parts = [self._read, *([self.beside.meanwhile] if self.beside and not self.has_begun else ())]
        fan_out(parts) if len(parts) > 1 else self._read()

    def _read(self) -> None:
        self.found = answer_reading.known(self.tenant, self.answer_ids)

    @property
    def counted(self) -> list[str]:
        return [item.answer_id for item in self.found]

    def join(self, transaction: Transaction, told: Any) -> None:
        key = self.tenant.repository.key(counter)
        for item in self.found:
            transaction.update(UsesItem(key, stored.uses(item.answer_id)), [UsesItem.uses.add(1)])
        if self.beside:
            self.beside.join(transaction, told)

    def blame(self, refused: TransactionRefused) -> None:
        if self.beside:
            self.beside.blame(refused)


def uncount(tenant: TenantContext, transaction: Transaction, answer_ids: Sequence[str]) -> None:
    """Take the uses of a comment back that is deleted as if it had never been."""
    key = tenant.repository.key(counter)
    for answer_id in answer_ids:
        transaction.update(UsesItem(key, stored.uses(answer_id)), [UsesItem.uses.add(-1)])
