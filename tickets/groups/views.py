"""Show the groups of a desk, let its admins change them, and let agents say until when they are away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from portal import plain_text
from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.web import locales
from portal.web.access import counted, member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from tenants.membership import members
from tenants.membership.forms import offered_members
from tenants.membership.members import AtHand
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.custom_fields import definitions
from tickets.desk import lists
from tickets.desk.filters import TicketFilter
from tickets.desk.ticket_presenters import queue_url
from tickets.desk_setup import setup
from tickets.desk_setup.setup import GROUPS, AgentGroup, Assigning
from tickets.groups import agent_changes, group_changes, roster
from tickets.groups.agent_changes import MEMBERS_LIMIT
from tickets.groups.forms import WAYS, AvailabilityForm, GroupForm
from tickets.groups.group_changes import GROUPS_LIMIT
from tickets.groups.roster import Roster
from tickets.ticket.fields import GROUP, UNRESOLVED

_PAGE: Final = "tickets:groups"
_MOST_SENT: Final = 2 * MEMBERS_LIMIT  # members of a sent form that are looked up


def _read(request: TenantRequest, *named: str) -> tuple[tuple[AgentGroup, ...], int, Roster, AtHand]:
    """Return the groups, the version of the desk's setup, the roster, and the members at hand with these, who are read
    at the same time even where they are at hand."""
    tenant = request.tenant
    reads: list[Callable[[], Any]] = [
        partial(setup.read, tenant),
        partial(roster.read, tenant),
        partial(members.at_hand, tenant),
        *(partial(members.member, tenant.repository, one) for one in named),
    ]
    seen, found, known, *others = fan_out(reads)
    known = replace(known, people=tuple({one.id: one for one in (*known.people, *filter(None, others))}.values()))
    groups = tuple(one for one in setup.parsed_groups(seen.part(GROUPS)) if not one.is_archived)
    return groups, seen.version, found, known


@member(Role.ADMIN)
@on_get(get="member", query="group turns, members by name", trips=3, reads=40)
def groups_page(request: TenantRequest) -> HttpResponse:
    """Show groups with their members, and who is away: a GetItem and two Queries at the same time. Of a large desk the
    agents at hand, and those of whom groups know, whom a BatchGetItem reads for each hundred; others are searched."""
    groups, _, found, known = _read(request)
    q, repository = request.GET.get("q", "").strip(), request.tenant.repository
    inside = members.with_ids(repository, known, found.agents)
    people = [one for one in inside.people if one.is_agent]
    shown = [one for one in members.matching(repository, q) if one.is_agent] if q else people
    names, day, ways = {one.id: one.name for one in people}, roster.today(request.tenant), dict(WAYS)
    rows = [
        {
            "id": one.id,
            "name": one.name,
            "way": ways.get(one.assigns, WAYS[0][1]),
            "is_default": one.is_default,
            "members": sorted(names[user_id] for user_id in found.members(one.id) if user_id in names),
            "url": queue_url(status="unresolved", group=one.id),
        }
        for one in groups
    ]
    agents = [
        {
            "id": one.id,
            "name": one.name,
            "away_until": date.fromisoformat(of.away_until) if (of := found.agent(one.id)).is_away(day) else None,
            "acting": names.get(found.acting_for(one.id, day), ""),
            "capacity": of.capacity,
        }
        for one in shown
    ]
    page = {"groups": rows, "agents": agents, "limit": GROUPS_LIMIT, "q": q, "has_others": not known.is_all}
    return render(request, "groups/groups.html", page)


@member(Role.ADMIN)
@on_get(get="member", query="group turns, members by name", trips=3, reads=40)
@on_post(
    get="member",
    query="group turns, members by name",
    write="agent, audit row, membership, setup",
    trips=16,
    reads=45,
    writes=50,
    per="member who comes or goes",
    each=(0, 2, 2),
)
def group(request: TenantRequest, group_id: str = "") -> HttpResponse:
    """Make a group, or change one, with its members. A conflict keeps what was typed, on the newer version."""
    groups, version, found, known = _read(request)
    stored = next((one for one in groups if one.id == group_id), None)
    if group_id and stored is None:
        raise Http404
    inside = found.members(group_id)
    people = offered_members(request.tenant, known, also=[*inside, *request.POST.getlist("members")[:_MOST_SENT]])
    make = partial(GroupForm, people=people, stored=stored, members=inside)
    form = make(request.POST or None, initial={"version": version})
    if request.method == "POST" and form.is_valid():
        with told_in(form, lambda: make(initial={"version": version}), is_new=not group_id):
            _save(request, group_id, form.cleaned_data)
            messages.success(request, gettext("Group saved."))
            return redirect(_PAGE)
    page = {"form": form, "stored": stored, "version": version}
    return render(request, "groups/form.html", page, status=status_of(form))


def _save(request: TenantRequest, group_id: str, given: dict[str, Any]) -> None:
    tenant, by = request.tenant, actor_of(request)
    name, assigns = given["name"], Assigning(given["assigns"])
    how: dict[str, Any] = {"is_default": given["is_default"], "version": given["version"], "by": by}
    if group_id:
        group_changes.change(tenant, group_id, name, assigns, **how)
    else:
        group_id = group_changes.add(tenant, name, assigns, **how)
    counted(request, agent_changes.set_members(tenant, group_id, given["members"], by=by))


@member(Role.ADMIN)
@on_post(query="noted tickets, tickets by status", write="audit row, membership, setup", trips=6, reads=20, writes=20)
def delete(request: TenantRequest, group_id: str) -> HttpResponse:
    """Delete a group that has no unresolved tickets: of others a sentence says where these are."""
    tenant = request.tenant
    if not any(one.id == group_id for one in definitions.of(tenant).in_use_of(GROUP)):
        raise Http404
    only = TicketFilter(**{GROUP.name: group_id})
    found = lists.page(tenant, status=UNRESOLVED, only=only, size=1)
    if found.rows or found.next:
        messages.error(
            request,
            gettext(
                "This group still has unresolved tickets. Move them to another group first: "
                "open its list and choose “Change all that match”."
            ),
        )
        return redirect("tickets:group", group_id)
    version = request.POST.get("version", "")
    with refusal_told(request, Conflict):
        seen = plain_text.whole_number(version) or -1
        group_changes.delete(tenant, group_id, version=seen, by=actor_of(request))
        messages.success(request, gettext("The group is deleted. Resolved tickets keep its name."))
        return redirect(_PAGE)
    return redirect("tickets:group", group_id)


# --- availability ---


_changes_group: Final = on_post(
    get="member",
    query="group turns, members by name",
    write="agent, audit row, membership",
    trips=12,
    reads=20,
    writes=15,
)


@member(Role.AGENT)
@on_get(get="member", query="group turns, members by name", trips=2, reads=10)
@_changes_group
def away(request: TenantRequest) -> HttpResponse:
    """Say until when one is away oneself, and who stands in."""
    return _availability(request, request.tenant.user_id, "tickets:queue")


@member(Role.ADMIN)
@on_get(get="member", query="group turns, members by name", trips=2, reads=10)
@_changes_group
def agent(request: TenantRequest, user_id: str) -> HttpResponse:
    """Say until when an agent is away, who stands in, and how many tickets they can have."""
    return _availability(request, user_id, _PAGE)


def _availability(request: TenantRequest, user_id: str, back: str) -> HttpResponse:
    tenant, is_other = request.tenant, back == _PAGE
    _, _, found, known = _read(request, user_id) if is_other else _read(request)
    known = members.with_ids(tenant.repository, known, [user_id, found.agent(user_id).stand_in])
    person = next((one for one in known.people if one.id == user_id), None)
    if person is None or not person.is_agent:
        raise Http404
    of = found.agent(user_id)
    people = offered_members(tenant, known, but=user_id)
    make = partial(AvailabilityForm, people=people, of=of, has_capacity=is_other, today=roster.today(tenant))
    form = make(request.POST or None, initial={"version": of.version})
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        until = data["away_until"]
        with told_in(form, lambda: make(initial={"version": of.version})):
            agent_changes.set_availability(
                tenant,
                user_id,
                away_until=until.isoformat() if until else "",
                stand_in=data["stand_in"],
                capacity=(data["capacity"] or 0) if is_other else None,
                version=data["version"],
                by=actor_of(request),
            )
            if is_other:
                said = gettext("%(name)s is away until %(day)s.") if until else gettext("%(name)s is here.")
            else:
                said = gettext("You are away until %(day)s.") if until else gettext("You are here.")
            day = locales.current().day(until) if until else ""
            messages.success(request, said % {"name": person.name, "day": day})
            return redirect(back)
    page = {"form": form, "person": person, "is_other": is_other, "back": back}
    return render(request, "groups/availability.html", page, status=status_of(form))
