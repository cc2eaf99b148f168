"""Show what rules did, and undo one run: its changes go back, comments and mails that have left stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo import paging
from portal.dynamo.store import Page, Transaction
from portal.errors import Conflict, NotFound, TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk import many
from tickets.desk.changing import EntryOfChange
from tickets.desk.many import TicketOutcome
from tickets.rules import stored
from tickets.rules.stored import RunItem

PAGE: Final = 50
_RUN: Final = "run"
_UNDONE: Final = gettext_noop("This run was undone already.")


def listed(tenant: TenantContext, rule_id: str, *, after: str = "", limit: int = PAGE) -> tuple[list[RunItem], str]:
    """Return a page of a rule's runs, the newest first, and the cursor of the next one, "" for none: one Query.

    Raises NotFound, and Invalid for a cursor of another list.
    """
    if not stored.is_id(rule_id):
        raise NotFound(_("There is no such rule."))
    query, start = ("runs", rule_id), None
    if after:
        (run_id,) = paging.load(after, tenant_id=tenant.tenant_id, query=query)
        start = {"pk": {"S": tenant.repository.key(stored.runs)}, "sk": {"S": stored.run(rule_id, run_id)}}
    page: Page[RunItem] = tenant.repository.query(
        RunItem, stored.runs, begins_with=stored.runs_of(rule_id), descending=True, limit=limit + 1, start=start
    )
    shown, has_more = page.items[:limit], len(page.items) > limit
    return shown, paging.dump([shown[-1].run_id], tenant_id=tenant.tenant_id, query=query) if has_more else ""


def find(tenant: TenantContext, rule_id: str, run_id: str) -> RunItem:
    """Return a run: one consistent GetItem. Raises NotFound."""
    found = None
    if stored.is_id(rule_id) and stored.is_run_id(run_id):
        found = tenant.repository.get(RunItem, stored.runs, sort=stored.run(rule_id, run_id), consistent=True)
    if found is None:
        raise NotFound(_("There is no such run. Runs are kept for 30 days."))
    return found


def undo(tenant: TenantContext, run: RunItem) -> None:
    """Take back what a run has changed, by whoever is at work, and note the moment in the run. The rules that ran for
    the same event do not run again.

    Raises Conflict for a run that changed nothing, that was undone before, or whose fields somebody has changed again.
    """
    if not run.entry:
        raise Conflict(_("This run has changed no field, so there is nothing to undo."))
    if run.undone_at:
        raise Conflict(_(_UNDONE))

    at = clock.stamp()

    def join(transaction: Transaction, outcomes: Sequence[TicketOutcome]) -> None:
        if outcomes[0].did == many.REFUSED:
            raise Conflict(outcomes[0].sentence)
        still = RunItem.pk.exists() & RunItem.undone_at.does_not_exist()
        transaction.update(run, [RunItem.undone_at.set(at)], name=_RUN, condition=still)

    entry = EntryOfChange(int(run.number), int(run.made), run.at, run.entry)
    try:
        many.take_back(replace(tenant, cause=run.cause), [entry], join=join)
    except TransactionRefused as refused:
        if refused.reason(_RUN):
            raise Conflict(_(_UNDONE)) from refused
        raise
    run.undone_at = at
