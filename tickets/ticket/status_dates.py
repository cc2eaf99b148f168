"""Say what a summary remembers of its changes of status: for the aggregates, and for the lists behind their numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

from portal import clock
from portal.dynamo.store import Action
from tenants.tenancy.context import TenantContext
from tickets.ticket import fields, stored
from tickets.ticket.stored import COUNT_FORM, CounterItem, SummaryItem


class Counting(NamedTuple):
    """The attributes `epoch` and `count_form` of a new ticket."""

    epoch: int = 0
    form: int | None = None


def counting_of(tenant: TenantContext, counter: CounterItem | None) -> Counting:
    """Return how a ticket is counted that has got its number from this counter, None for one that was never asked."""
    form = COUNT_FORM if tenant.counts_months or (counter and counter.count_form) else None
    return Counting(int(counter.epoch) if counter else 0, form)


def reopens(before: str, after: str) -> bool:
    """Tell whether a change of status opens a ticket again."""
    return fields.is_unresolved(after) and not fields.is_unresolved(before)


def dates(before: str, after: str, at: str) -> dict[str, str | None]:
    """Return the moments that a ticket has by a change of status at this moment; None for one that it has no more."""
    if fields.is_unresolved(before) == fields.is_unresolved(after):
        return {}
    return {"resolved_at": None, "reopened_at": at} if fields.is_unresolved(after) else {"resolved_at": at}


def dates_counted(before: str, after: str, at: str, *, zone: str) -> list[Action]:
    """Count what `dates` tells of, on its day in this time zone; a reopened ticket keeps what `forgotten` needs."""
    kinds = {"resolved_at": stored.RESOLVED, "reopened_at": stored.REOPENED}
    found = [counted(kinds[name], moment, zone=zone) for name, moment in dates(before, after, at).items() if moment]
    if reopens(before, after):
        found.append(SummaryItem.resolved_before.set(SummaryItem.resolved_at | ""))
        found.append(SummaryItem.reopened_before.set(SummaryItem.reopened_at | ""))
    return found


def dated(before: str, after: str, at: str, *, zone: str) -> list[Action]:
    """Remember that the ticket was resolved or reopened at this moment, if the change of status did either."""
    moments = [set_to(name, moment) for name, moment in dates(before, after, at).items()]
    return [*moments, *dates_counted(before, after, at, zone=zone)]


def set_to(name: str, value: Any) -> Action:
    """Make an attribute of the summary this value, or remove it for None."""
    attribute: Any = getattr(SummaryItem, name)
    action: Action = attribute.remove() if value is None else attribute.set(value)
    return action


def forgotten(summary: SummaryItem, before: str, *, zone: str) -> tuple[dict[str, str | None], list[Action]]:
    """Return the moments of a ticket, and what to count, as if it had never left `before` for its present status.

    This must have been the last change of its status.
    """
    if fields.is_unresolved(before) == fields.is_unresolved(summary.status):
        return {}, []
    if fields.is_unresolved(before):
        kind, at = stored.RESOLVED, summary.resolved_at
        former: dict[str, str | None] = {"resolved_at": None}
    else:
        kind, at = stored.REOPENED, summary.reopened_at
        former = {"resolved_at": summary.resolved_before or None, "reopened_at": summary.reopened_before or None}
        former |= {"resolved_before": None, "reopened_before": None}
    return former, [counted(kind, at, by=-1, zone=zone)] if at else []


def counted_in(tenant: TenantContext) -> str | None:
    """Return the time zone in which new tickets are counted, None for UTC."""
    return tenant.zone if tenant.zone != clock.UTC_NAME else None


def counted(kind: str, at: str, *, zone: str, by: int = 1) -> Action:
    """Count an event of this kind on the day of this moment in the time zone of the desk; see `stored.day_count`."""
    count: Any = SummaryItem.days[stored.day_count(kind, at, zone)]
    action: Action = count.set((count | 0) + by)
    return action
