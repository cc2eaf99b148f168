"""Change the groups of a desk: make, rename and delete them, each with its row in the audit trail.

Each change holds for the version of the desk's setup that its author saw. A deleted group keeps its id and its name,
which resolved tickets may still have, and takes no new tickets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.errors import Conflict, Invalid, NotFound
from portal.web import locales
from tenants.audit_trail import browsing
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.custom_fields.definitions import operator_word
from tickets.desk_setup import setup
from tickets.desk_setup.setup import CHANGED, GROUPS, AgentGroup, Assigning
from tickets.ticket.custom_values import MOST_IDS

GROUPS_LIMIT: Final = 30  # groups of a desk that are in use
NAME_LIMIT: Final = 40  # characters

Groups = tuple[AgentGroup, ...]


def add(
    tenant: TenantContext, name: str, assigns: Assigning, *, is_default: bool = False, version: int, by: Actor
) -> str:
    """Make a group, and return its id. Raises Invalid and Conflict."""
    made: list[str] = []

    def with_it(groups: Groups) -> Groups:
        number = 1 + max((int(one.id.rpartition("_")[2]) for one in groups), default=0)
        if number > MOST_IDS:
            raise Invalid(_("A desk can make %(most)s groups in all, deleted ones included.") % {"most": MOST_IDS})
        if sum(not one.is_archived for one in groups) >= GROUPS_LIMIT:
            raise Invalid(
                _("A desk has at most %(limit)s groups at a time. Delete one first.") % {"limit": GROUPS_LIMIT}
            )
        made.append(f"group_{number}")
        group = AgentGroup(made[0], _name(name, groups), assigns.value, is_default)
        return _with(groups, group)

    _change(tenant, with_it, version=version, by=by)
    return made[0]


def change(
    tenant: TenantContext,
    group_id: str,
    name: str,
    assigns: Assigning,
    *,
    is_default: bool = False,
    version: int,
    by: Actor,
) -> None:
    """Rename a group, let it assign in another way, or make it the default one. Raises NotFound, Invalid, Conflict."""

    def changed(groups: Groups, group: AgentGroup) -> AgentGroup:
        others = [one for one in groups if one.id != group_id]
        return replace(group, name=_name(name, others), assigns=assigns.value, is_default=is_default)

    _change_one(tenant, group_id, changed, version=version, by=by)


def delete(tenant: TenantContext, group_id: str, *, version: int, by: Actor) -> None:
    """Delete a group. The caller has seen that no unresolved ticket is in it. Raises NotFound and Conflict."""
    _change_one(
        tenant, group_id, lambda _, group: replace(group, is_archived=True, is_default=False), version=version, by=by
    )


def _change_one(
    tenant: TenantContext,
    group_id: str,
    changed: Callable[[Groups, AgentGroup], AgentGroup],
    *,
    version: int,
    by: Actor,
) -> None:
    def with_it(groups: Groups) -> Groups:
        stored = next((one for one in groups if one.id == group_id and not one.is_archived), None)
        if stored is None:
            raise NotFound(_("There is no such group."))
        return _with(groups, changed(groups, stored))

    _change(tenant, with_it, version=version, by=by)


def _with(groups: Groups, group: AgentGroup) -> Groups:
    """Return groups with this one in its place, or at the end; where it is the default one, no other is."""
    others = [replace(one, is_default=False) if group.is_default else one for one in groups]
    if not any(one.id == group.id for one in groups):
        return (*others, group)
    return tuple(group if one.id == group.id else one for one in others)


def _change(tenant: TenantContext, changed: Callable[[Groups], Groups], *, version: int, by: Actor) -> None:
    seen = setup.read(tenant)
    if seen.version != version:
        raise Conflict(_(CHANGED))
    before = setup.parsed_groups(seen.part(GROUPS))
    after = changed(before)
    if after == before:
        return
    told = [{f"group {one.id}": _told(one) for one in groups} for groups in (before, after)]
    names = [name for name in told[1] if told[0].get(name) != told[1][name]]
    rows = [{name: one.get(name, "") for name in names} for one in told]
    setup.change(tenant, GROUPS, setup.written_groups(after), seen=seen, by=by, told=(rows[0], rows[1]))


def _name(typed: str, others: Groups | list[AgentGroup]) -> str:
    name = plain_text.line(typed)
    if not plain_text.has_visible_text(name) or not operator_word(name):
        raise Invalid(_("A group needs a name with letters or digits."), field="name")
    locales.within(name, NAME_LIMIT, "name")
    if any(operator_word(name) == operator_word(one.name) for one in others if not one.is_archived):
        raise Invalid(_("Another group has this name."), field="name")
    return name


_DEFAULT, _DELETED = gettext_noop("default"), gettext_noop("deleted")
_ASSIGNS: Final = {
    Assigning.HAND: gettext_noop("assigns by hand"),
    Assigning.TURN: gettext_noop("assigns by turn"),
    Assigning.LOAD: gettext_noop("assigns by load"),
}
_WORDS: Final = (*_ASSIGNS.values(), _DEFAULT, _DELETED)
browsing.declare_values(browsing.codes({one: one for one in _WORDS}, behind=" · "), "group group_")


def _told(group: AgentGroup) -> str:
    return " · ".join(
        [group.name, f"assigns by {group.assigns}", *[_DEFAULT] * group.is_default, *[_DELETED] * group.is_archived]
    )
