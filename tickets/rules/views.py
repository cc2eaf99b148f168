"""The pages of rules: list, form, one rule with its versions, its runs with their undo, and its rehearsal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from delivery.webhooks import endpoints
from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import put_on_newer
from portal.web.heavy_work import heavy
from tenants.membership import members
from tenants.membership.forms import offered_members
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.custom_fields import definitions
from tickets.desk import changing, ticket_presenters
from tickets.ready_answers import answer_reading
from tickets.rules import presenters, rehearsal_requests, rule_changes, runs, stored
from tickets.rules.forms import Offered, RuleForm
from tickets.rules.presenters import Names
from tickets.rules.stored import RuleItem, RuleVersionItem
from tickets.ticket.causes import Cause
from tickets.ticket.fields import ASSIGNEE
from tickets.ticket.stored import ActivityItem, activity, ticket

_ANSWERS: Final = 200  # shared ready answers that a form offers, and whose titles are known
_LATEST: Final = 5  # runs on the page of a rule


def _read(request: TenantRequest, *more: Callable[[], Any]) -> tuple[list[Any], Names, Offered]:
    """Read at the same time what rules name by ids, all rules, and what else a page needs: four Queries and more. Then
    those whom rules name and who are not at hand: one BatchGetItem."""
    tenant = request.tenant
    reads: list[Callable[[], Any]] = [
        partial(members.at_hand, tenant),
        partial(answer_reading.listed, tenant, shared=True, limit=_ANSWERS),
        partial(endpoints.listed, tenant.repository),
        partial(rule_changes.listed, tenant),
        *more,
    ]
    first, (answers, _), webhooks, rules, *found = fan_out(reads)
    known = members.with_ids(tenant.repository, first, _named_by(rules))
    titles = [(row.answer_id, row.title) for row in answers]
    urls = [(one.endpoint_id, one.url) for one in webhooks]
    named = {item.rule_id: item.name for item in rules}
    names = Names(known.names, dict(titles), dict(urls), named)
    agents = offered_members(tenant, known)
    return [rules, *found], names, Offered(agents, known, titles, urls, definitions.of(tenant))


def _named_by(rules: Iterable[RuleItem | RuleVersionItem]) -> Iterator[str]:
    """Yield the members whom rules ask for, set and write to, and other words that stand in their places."""
    for rule in map(rule_changes.of_item, rules):
        yield from (rule.only.params.get("resolver", ""), rule.then.mail_to)
        yield from (value for name, value in rule.then.edit.values.items() if name == ASSIGNEE.name)


def _line(request: TenantRequest, item: RuleItem, names: Names) -> dict[str, Any]:
    said = presenters.words(request.tenant, rule_changes.of_item(item), names)
    return {"id": item.rule_id, "name": item.name, "is_on": item.is_on, "version": int(item.version)} | said


@member(Role.ADMIN)
@on_get(get="member", query="members by name, ready answer, rule, webhook", trips=3, reads=30)
def list_rules(request: TenantRequest) -> HttpResponse:
    """List the rules in the order in which they run: four Queries in one round trip."""
    (rules,), names, _ = _read(request)
    page = {"rules": [_line(request, item, names) for item in rules], "most": stored.MOST}
    return render(request, "rules/list.html", page)


@member(Role.ADMIN)
@on_get(get="member", query="members by name, ready answer, rule, webhook", trips=3, reads=30)
@on_post(
    get="member",
    query="members by name, ready answer, rule, webhook",
    write="audit row, membership, rule",
    trips=10,
    reads=30,
    writes=20,
)
def new_rule(request: TenantRequest) -> HttpResponse:
    """Add a rule, which is off until somebody switches it on."""
    _, _, offered = _read(request)
    form = RuleForm(request.POST or None, offered=offered)
    if request.method == "POST" and form.is_valid():
        try:
            item = rule_changes.create(request.tenant, form.cleaned_data["name"], form.given, by=actor_of(request))
        except Invalid as error:
            form.refuse(error)
        else:
            messages.success(request, gettext("Rule saved. It is off: rehearse it, then switch it on."))
            return redirect("tickets:rule", item.rule_id)
    return _form_page(request, form)


@member(Role.ADMIN)
@on_get(get="member, rule", query="members by name, ready answer, rule, webhook", trips=3, reads=25)
@on_post(
    get="member, rule",
    query="members by name, ready answer, rule, webhook",
    write="audit row, membership, rule, tenant",
    trips=11,
    reads=30,
    writes=25,
)
def edit_rule(request: TenantRequest, rule: str) -> HttpResponse:
    """Change a rule. A conflict keeps what was typed, on the newer revision."""
    (_, item), _, offered = _read(request, partial(rule_changes.find, request.tenant, rule))
    make = partial(RuleForm, offered=offered, stored=rule_changes.of_item(item), revision=int(item.revision))
    if request.method != "POST":
        return _form_page(request, make(), item)
    form = make(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        try:
            rule_changes.change(
                request.tenant, rule, form.given, name=data["name"], revision=data["revision"], by=actor_of(request)
            )
        except Conflict as error:
            form.add_error(None, error.message)
            newer = rule_changes.find(request.tenant, rule)
            now = make(stored=rule_changes.of_item(newer), revision=int(newer.revision))
            put_on_newer(form, now, version="revision")
            return _form_page(request, form, item, status=409)
        except Invalid as error:
            form.refuse(error)
        else:
            messages.success(request, gettext("Rule saved."))
            return redirect("tickets:rule", rule)
    return _form_page(request, form, item)


def _form_page(
    request: TenantRequest, form: RuleForm, item: RuleItem | None = None, *, status: int = 0
) -> HttpResponse:
    rule = {"id": item.rule_id, "name": item.name, "is_on": item.is_on} if item else None
    page = {"form": form, "rule": rule}
    return render(request, "rules/form.html", page, status=status or (422 if form.errors else 200))


@member(Role.ADMIN)
@on_get(
    get="member, rehearsal, rule", query="members by name, ready answer, rule, rule run, webhook", trips=3, reads=35
)
def rule_page(request: TenantRequest, rule: str) -> HttpResponse:
    """Show one rule with its versions, its latest runs and its last rehearsal: one round trip."""
    tenant = request.tenant
    (_, item, versions, last, (ran, _)), names, offered = _read(
        request,
        partial(rule_changes.find, tenant, rule),
        partial(rule_changes.versions, tenant, rule),
        partial(rehearsal_requests.last, tenant),
        partial(runs.listed, tenant, rule, limit=_LATEST),
    )
    names = replace(names, people=members.names_of(tenant.repository, offered.known, _named_by(versions)))
    page = {
        "rule": _line(request, item, names) | {"revision": int(item.revision)},
        "rehearsal": presenters.rehearsal_line(last) if last and last.rule_id == rule else None,
        "runs": [presenters.run_line(one) for one in ran],
        "versions": [
            {"number": int(one.version), "name": one.name, "made": clock.parse(one.made_at)}
            | presenters.words(tenant, rule_changes.of_item(one), names)
            for one in versions
        ],
    }
    return render(request, "rules/rule.html", page)


@member(Role.ADMIN)
@on_post(get="rule", query="rule", write="audit row, membership, rule, tenant", trips=5, reads=6, writes=20)
def switch(request: TenantRequest, rule: str) -> HttpResponse:
    """Switch a rule on or off, in the revision that the page showed."""
    is_on, seen = request.POST.get("on") == "yes", request.POST.get("revision", "")
    with refusal_told(request, Invalid, Conflict):
        revision = plain_text.whole_number(seen)
        rule_changes.change(request.tenant, rule, {}, is_on=is_on, revision=revision, by=actor_of(request))
        messages.success(request, gettext("The rule is on.") if is_on else gettext("The rule is off."))
    return redirect("tickets:rule", rule)


@member(Role.ADMIN)
@on_post(query="rule", write="audit row, membership, rule, tenant", trips=4, reads=5, writes=20)
def delete(request: TenantRequest, rule: str) -> HttpResponse:
    """Delete a rule. Its runs and their changes stay."""
    with refusal_told(request, Conflict):
        rule_changes.delete(request.tenant, rule, by=actor_of(request))
        messages.success(request, gettext("Rule deleted."))
        return redirect("tickets:rules")
    return redirect("tickets:rule", rule)


@member(Role.ADMIN)
@on_get(get="member, rule", query="members by name, ready answer, rule, rule run, webhook", trips=3, reads=30)
def list_runs(request: TenantRequest, rule: str) -> HttpResponse:
    """Show a page of what a rule did, the newest first: one round trip."""
    tenant, after = request.tenant, request.GET.get("after", "")
    (_, item, (found, more)), names, _ = _read(
        request, partial(rule_changes.find, tenant, rule), partial(runs.listed, tenant, rule, after=after)
    )
    page = {
        "rule": _line(request, item, names),
        "runs": [presenters.run_line(one) for one in found],
        "more": more,
        "is_late": bool(after),
    }
    return render(request, "rules/runs.html", page)


@member(Role.AGENT)
@on_get(get="member, rule, rule run, ticket", query="members by name, ready answer", trips=4, reads=30)
@on_post(get="rule run, ticket", query="ticket", write="rule run, ticket", trips=5, reads=10, writes=20)
def run_page(request: TenantRequest, rule: str, run: str) -> HttpResponse:
    """Say why this happened, or take it back: two round trips."""
    tenant = request.tenant
    found = runs.find(tenant, rule, run)
    number = int(found.number)
    if request.method == "POST":
        with refusal_told(request, Conflict):
            runs.undo(tenant, found)
            messages.success(request, gettext("#%(number)s is as it was before the rule.") % {"number": number})
            return redirect("tickets:ticket", number)
        return redirect("tickets:rule_run", rule, run)
    reads: list[Callable[[], Any]] = [
        partial(changing.read, tenant, number, consistent=False),
        partial(rule_changes.find_version, tenant, rule, int(found.version)),
        partial(members.at_hand, tenant),
        partial(answer_reading.listed, tenant, shared=True, limit=_ANSWERS),
    ]
    if found.entry:
        sort = activity(found.at, found.entry)
        reads.append(partial(tenant.repository.get, ActivityItem, ticket, number, sort=sort))
    summary, version, people, (answers, _), *entries = fan_out(reads)
    cause, ran = Cause.parse(found.cause), rule_changes.of_item(version)
    webhook = {ran.then.webhook: gettext("of the desk")}
    known_as = members.names_of(tenant.repository, people, _named_by([version]))
    names = Names(known_as, {a.answer_id: a.title for a in answers}, webhook, {})
    changes = [
        change
        for one in entries
        if one
        for change in ticket_presenters.timeline_entry(one, definitions.of(tenant)).changes
    ]
    page: dict[str, Any] = {
        "rule": {"id": rule, "name": version.name, "version": int(version.version)},
        "run": presenters.run_line(found),
        "words": presenters.words(tenant, ran, names),
        "title": summary.title,
        "changes": changes,
        "answered": ticket_presenters.entry_url(number, found.answer) if found.answer else "",
        "followed": cause is not None and cause.depth > 1,
    }
    return render(request, "rules/run.html", page)


@member(Role.ADMIN)
@on_get(
    get="member, rehearsal, rule",
    query="members by name, noted tickets, ready answer, rehearsal part, rule, tickets by status, webhook",
    trips=5,
    reads=55,
)
@on_post(
    get="member, rehearsal, rule",
    query="members by name, ready answer, rule, webhook",
    write="audit row, membership, rehearsal",
    trips=10,
    reads=35,
    writes=15,
)
@heavy
def rehearsal_page(request: TenantRequest, rule: str) -> HttpResponse:
    """Say what a rehearsal will cost and begin one, or show how far the last one is and what it found."""
    tenant, first = request.tenant, request.GET.get("from", "1")
    (_, item, last), names, offered = _read(
        request, partial(rule_changes.find, tenant, rule), partial(rehearsal_requests.last, tenant)
    )
    if request.method == "POST":
        with refusal_told(request, Invalid, Conflict):
            rehearsal_requests.ask(tenant, item, by=actor_of(request))
        return redirect("tickets:rule_rehearsal", rule)
    page: dict[str, Any] = {"rule": _line(request, item, names) | {"revision": int(item.revision)}}
    is_mine = last is not None and last.rule_id == rule
    is_busy = rehearsal_requests.REHEARSALS.goes_on(last)
    if last is None or not is_mine or ("again" in request.GET and not is_busy):
        page |= {"days": rehearsal_requests.DAYS, "most": rehearsal_requests.MOST, "is_busy": is_busy}
        page["no_history"] = "" if rehearsal_requests.can_rehearse(item) else gettext(rehearsal_requests.NO_HISTORY)
        if not page["no_history"]:
            page["extent"] = presenters.extent_words(rehearsal_requests.extent(tenant))
        return render(request, "rules/rehearse.html", page)
    begin = plain_text.whole_number(first, digits=6) or 1
    found, more = rehearsal_requests.findings(tenant, last, first=begin)
    named = presenters.people_in(last, found)
    names = replace(names, people=members.names_of(tenant.repository, offered.known, named))
    page |= {"rehearsal": presenters.rehearsal_page(tenant, last, names, found, more), "is_late": begin > 1}
    return render(request, "rules/rehearsal.html", page)


@member(Role.ADMIN)
@on_post(get="rehearsal, rule", write="audit row, membership, rehearsal", trips=6, reads=5, writes=15)
def cancel_rehearsal(request: TenantRequest, rule: str) -> HttpResponse:
    with refusal_told(request, Conflict):
        item = rule_changes.find(request.tenant, rule)
        rehearsal_requests.cancel(request.tenant, item, by=actor_of(request))
    return redirect("tickets:rule_rehearsal", rule)
