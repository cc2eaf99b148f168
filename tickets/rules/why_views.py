"""The page that says why a rule changed a ticket: the rule in the version that ran, what it did, and its undo."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.web.access import get_or_post, member
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.custom_fields import definitions
from tickets.desk import changing, ticket_presenters
from tickets.ready_answers import answer_reading
from tickets.rules import presenters, rule_changes, runs
from tickets.rules.presenters import Names
from tickets.rules.stored import RunItem
from tickets.ticket import stored
from tickets.ticket.causes import Cause
from tickets.ticket.stored import ActivityItem

_ANSWERS: Final = 200  # shared ready answers whose titles are known


@member(Role.AGENT)
@get_or_post
def run_page(request: TenantRequest, rule: str, run: str) -> HttpResponse:
    """Say why this happened, or take it back: two round trips."""
    tenant = request.tenant
    found = runs.find(tenant, rule, run)
    number = int(found.number)
    if request.method == "POST":
        try:
            runs.undo(tenant, found)
        except Conflict as error:
            messages.error(request, error.message)
            return redirect("tickets:rule_run", rule, run)
        messages.success(request, f"#{number} is as it was before the rule.")
        return redirect("tickets:ticket", number)
    summary, version, people, (answers, _), entry = fan_out(_reads(tenant, found))
    cause = Cause.parse(found.cause)
    webhook = {rule_changes.of_item(version).then.webhook: "of the desk"}
    names = Names({one.id: one.name for one in people}, {a.answer_id: a.title for a in answers}, webhook, {})
    said = presenters.words(tenant, rule_changes.of_item(version), names)
    changes = ticket_presenters.timeline_entry(entry, definitions.of(tenant)).changes if entry else []
    page: dict[str, Any] = {
        "rule": {"id": rule, "name": version.name, "version": int(version.version)},
        "run": presenters.run_line(found),
        "words": said,
        "title": summary.title,
        "changes": changes,
        "answered": f"#entry-{stored.entry_id(found.answer)}" if found.answer else "",
        "followed": cause is not None and cause.depth > 1,
    }
    return render(request, "rules/run.html", page)


def _reads(tenant: TenantContext, found: RunItem) -> list[Callable[[], Any]]:
    number, repository = int(found.number), tenant.repository
    sort = stored.activity(found.at, found.entry) if found.entry else ""
    return [
        partial(changing.read, tenant, number, consistent=False),
        partial(rule_changes.find_version, tenant, found.rule_id, int(found.version)),
        partial(members.members_of, repository),
        partial(answer_reading.listed, tenant, shared=True, limit=_ANSWERS),
        lambda: repository.get(ActivityItem, stored.ticket, number, sort=sort) if sort else None,
    ]
