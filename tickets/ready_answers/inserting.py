"""Prepare a ready answer for the comment of one ticket: its text, and the changes that it suggests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from portal.dynamo.client import alongside
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.ready_answers import answer_reading, filling
from tickets.ready_answers.answer_reading import STATUS_ACTION, TAGS_ACTION, Action
from tickets.ready_answers.stored import ReadyAnswerItem
from tickets.ticket.fields import MOVES, Status
from tickets.ticket.stored import SummaryItem


@dataclass(frozen=True)
class FilledAnswer:
    """An answer as a comment's form takes it. `actions` are those that change something in the ticket as it is."""

    id: str
    title: str
    text: str
    actions: tuple[Action, ...]

    @property
    def told(self) -> dict[str, Any]:
        return asdict(self)


def filled(tenant: TenantContext, number: int, answer_id: str) -> FilledAnswer:
    """Return an answer for a ticket. Raises NotFound.

    One round trip, and one more where it assigns the ticket to a certain member.
    """
    item, summary = alongside(
        partial(answer_reading.read, tenant, answer_id), aside=partial(changing.read, tenant, number, consistent=False)
    )
    return fill(tenant, item, summary)


def fill(tenant: TenantContext, item: ReadyAnswerItem, summary: SummaryItem) -> FilledAnswer:
    """Return an answer for a ticket, both as they were read."""
    text = filling.filled(tenant, summary, item.body)
    return FilledAnswer(item.answer_id, item.title, text, (*_actions(tenant, item, summary),))


def _actions(tenant: TenantContext, item: ReadyAnswerItem, summary: SummaryItem) -> Iterator[Action]:
    names: dict[str, str] = {}
    if item.resolver not in ("", "me", summary.resolver):
        person = members.member(tenant.repository, item.resolver)
        names = {item.resolver: person.name} if person else {}
    for action in answer_reading.actions(item, names):
        if _changes(tenant, action, summary):
            yield action


def _changes(tenant: TenantContext, action: Action, summary: SummaryItem) -> bool:
    if action.name == STATUS_ACTION:
        return Status(action.value) in MOVES[Status(summary.status)]
    if action.name == TAGS_ACTION:
        return action.value not in summary.tags
    return summary.resolver != (tenant.user_id if action.value == "me" else action.value)
