"""Change who is in a group, how many open tickets somebody can have, and until when somebody is away.

Admins change all of it, every agent their own absence. Each change has its row in the audit trail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.store import Action, Transaction
from portal.errors import Conflict, Forbidden, Invalid, NotFound
from portal.schema import keys
from portal.web.locales import declare_stored, stored_text
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members
from tenants.membership.members import Member
from tenants.tenancy.context import Role, TenantContext
from tickets.groups import roster
from tickets.groups.roster import Agent
from tickets.groups.stored import MOST_CAPACITY, AgentItem

MEMBERS_LIMIT: Final = 50  # of one group, whose stand-ins one BatchGetItem reads
_MOST_CHANGES: Final = 90  # members in one transaction
_CHANGED: Final = gettext_noop("Somebody else has just changed this. Please check and try again.")
_NOBODY: Final = gettext_noop("There is no such agent in this desk.")


def set_members(tenant: TenantContext, group_id: str, wanted: Collection[str], *, by: Actor) -> int:
    """Make these agents the members of a group, and return how many came or went: one Query of the roster, a
    BatchGetItem for each of both, and one transaction. Raises Invalid for somebody who is no agent here, Forbidden and
    Conflict."""
    if not tenant.is_admin:
        raise Forbidden(_("Admins and owners change groups."))
    if len(set(wanted)) > MEMBERS_LIMIT:
        raise Invalid(
            _("A group has at most %(limit)s members; these are %(count)s.")
            % {"limit": MEMBERS_LIMIT, "count": len(set(wanted))},
            field="members",
        )
    found = roster.read(tenant)
    before = found.members(group_id)
    added, removed = set(wanted) - {*before}, {*before} - set(wanted)
    agents = _agents(tenant, added)
    if missing := added - agents.keys():
        raise Invalid(
            _("%(count)s of those chosen are no agents of this desk.") % {"count": len(missing)}, field="members"
        )
    changes = [(found.agent(one), found.agent(one).groups | {group_id}) for one in sorted(added)]
    changes += [(found.agent(one), found.agent(one).groups - {group_id}) for one in sorted(removed)]
    if not changes:
        return 0
    if len(changes) > _MOST_CHANGES:
        raise Invalid(_("Change up to %(most)s members at a time.") % {"most": _MOST_CHANGES}, field="members")
    gone = {one.id: one for one in members.members_with(tenant.repository, [*removed])}
    # Who stays is told by neither side: a row with all members would need all of their names.
    told = [
        {f"members of {group_id}": ", ".join(known[one].name if one in known else one for one in sorted(some))}
        for some, known in ((removed, gone), (added, agents))
    ]
    _store(tenant, [(one, replace(one, groups=groups)) for one, groups in changes], told=(told[0], told[1]), by=by)
    return len(changes)


def set_availability(
    tenant: TenantContext,
    user_id: str,
    *,
    away_until: str,
    stand_in: str,
    capacity: int | None = None,
    version: int,
    by: Actor,
) -> None:
    """Say until when a member is away, "" for not, and who has their turns meanwhile; None leaves the capacity.

    Raises NotFound, Forbidden, Invalid with the field, and Conflict where others changed it since `version`.
    """
    if not tenant.is_admin and (user_id != tenant.user_id or capacity is not None):
        raise Forbidden(_("You can change your own absence. Ask an admin for anything else."))
    found = roster.read(tenant)
    people = _agents(tenant, filter(None, (user_id, stand_in)))
    if user_id not in people:
        raise NotFound(_(_NOBODY))
    now = found.agent(user_id)
    if now.version != version:
        raise Conflict(_(_CHANGED))
    if away_until:
        _check_day(away_until, roster.today(tenant))
    if stand_in and stand_in not in people:
        raise Invalid(_(_NOBODY), field="stand_in")
    if stand_in == user_id:
        raise Invalid(_("Nobody stands in for themselves. Choose somebody else, or nobody."), field="stand_in")
    if capacity is not None and not 0 <= capacity <= MOST_CAPACITY:
        raise Invalid(
            _("Use a number from 1 to %(most)s, or leave it empty.") % {"most": MOST_CAPACITY}, field="capacity"
        )
    wanted = replace(
        now,
        away_until=away_until,
        stand_in=stand_in if away_until else "",
        capacity=now.capacity if capacity is None else capacity,
    )
    if wanted == now:
        return
    name = people[user_id].name
    told = [_told(name, one, people[one.stand_in].name if one.stand_in in people else "") for one in (now, wanted)]
    _store(tenant, [(now, wanted)], told=(told[0], told[1]), by=by)


def _check_day(text: str, today: str) -> None:
    try:
        day = date.fromisoformat(text).isoformat()
    except ValueError:
        day = ""
    if day != text:
        raise Invalid(_("Enter a day as 2026-11-30."), field="away_until")
    if text <= today:
        raise Invalid(_("Choose a day after today: the first day on which they are back."), field="away_until")


def _agents(tenant: TenantContext, wanted: Iterable[str]) -> dict[str, Member]:
    known = [one for one in wanted if keys.USER_ID.match(one)]
    found = members.members_with(tenant.repository, known)
    return {one.id: one for one in found if one.role.at_least(Role.AGENT)}


_AWAY_TO: Final = declare_stored(gettext_noop("until %(day)s, to %(name)s"))  # first: it has the other one in it
_AWAY: Final = declare_stored(gettext_noop("until %(day)s"))
browsing.declare_values(stored_text, "absence of ")


def _told(name: str, agent: Agent, stand_in: str) -> dict[str, str]:
    words = _AWAY_TO if stand_in else _AWAY
    away = words % {"day": agent.away_until, "name": stand_in} if agent.away_until else ""
    return {f"absence of {name}": away, f"capacity of {name}": str(agent.capacity or "")}


def _store(
    tenant: TenantContext,
    changes: Iterable[tuple[Agent, Agent]],
    *,
    told: tuple[dict[str, str], dict[str, str]],
    by: Actor,
) -> None:
    """Write what agents are to be, where they are still as they were read, with one audit row."""
    transaction = Transaction()
    for now, wanted in changes:
        values = {
            "groups": set(wanted.groups) or None,
            "capacity": wanted.capacity or None,
            "away_until": wanted.away_until or None,
            "stand_in": wanted.stand_in or None,
        }
        actions: list[Action] = [AgentItem.version.set(now.version + 1)]
        for attribute, value in values.items():
            of = AgentItem.get_attributes()[attribute]
            actions.append(of.remove() if value is None else of.set(value))
        is_seen = AgentItem.version == now.version if now.version else AgentItem.agent.does_not_exist()
        transaction.update(AgentItem(keys.tenant(tenant.tenant_id), now.id), actions, condition=is_seen)
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_SETUP_CHANGED, by, *told)
    recording.commit(transaction, [entry], refused=Conflict(_(_CHANGED)))
