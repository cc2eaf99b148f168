"""Save lists of tickets under names: views of one member, and views of the desk, which its admins make.

A view is a name and the query of a list, as the queue's address has it, so whatever becomes a filter or an order there
is in views, too. Each owner has one item: its views in their order. Members star views, their own and the desk's;
starred ones stand beside the queue, and above them the groups of the member.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Forbidden, Invalid, NotFound, Overtaken, TransactionRefused
from portal.schema import keys
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.custom_fields import definitions
from tickets.groups.stored import OWN_ITEM as OWN_GROUPS
from tickets.groups.stored import AgentItem
from tickets.saved_views.stored import DESK, DESK_ITEM, OWN_ITEM, ViewsItem
from tickets.ticket.fields import GROUP

VIEWS_LIMIT: Final = 40  # of one owner
STARS_LIMIT: Final = 12  # beside the queue
NAME_LIMIT: Final = 60  # characters
QUERY_LIMIT: Final = 1_000  # characters
_ITEM: Final = "views"
_GONE: Final = gettext_noop("This view is gone.")
_LEFT_OUT: Final = ("name", "after")  # the name is that of a person, whose id is what the list needs


@dataclass(frozen=True)
class View:
    """`query` is that of the queue's address, "status=open&sort=created". `more` is what a newer version has stored of
    the view, and is written back as it is."""

    id: str
    name: str
    query: str
    is_desks: bool = False
    more: tuple[Any, ...] = ()

    @property
    def params(self) -> dict[str, str]:
        return dict(parse_qsl(self.query))


@dataclass(frozen=True)
class Views:
    """The views that a member sees: the desk's, then their own. Those of their `groups` follow from these."""

    desk: tuple[View, ...] = ()
    own: tuple[View, ...] = ()
    stars: frozenset[str] = frozenset()
    groups: tuple[View, ...] = ()

    @property
    def starred(self) -> list[View]:
        return [view for view in (*self.desk, *self.own) if view.id in self.stars]

    @property
    def beside(self) -> list[View]:
        return [*self.groups, *self.starred]

    def get(self, view_id: str) -> View:
        """Return a view. Raises NotFound."""
        for view in (*self.desk, *self.own):
            if view.id == view_id:
                return view
        raise NotFound(_(_GONE))


def read(tenant: TenantContext) -> Views:
    """Return the views that the person at work sees: on the whole page of the queue no read, else one BatchGetItem of
    three items."""
    if {DESK_ITEM, OWN_ITEM} <= tenant.items.keys():
        desk, mine = tenant.items[DESK_ITEM], tenant.items[OWN_ITEM]
    else:
        owners = [owner for owner in (DESK, tenant.user_id) if owner == DESK or keys.USER_ID.match(owner)]
        wanted = [tenant.repository.wanted(ViewsItem, keys.tenant, sort=owner) for owner in owners]
        member = [tenant.repository.wanted(AgentItem, keys.tenant, sort=owner) for owner in owners[1:]]
        desk, *own = tenant.repository.get_all([*wanted, *member])
        mine, tenant.items[OWN_GROUPS] = own or (None, None)
    stars = frozenset(json.loads(mine.starred)) if mine else frozenset[str]()
    return Views(views_of(desk), views_of(mine), stars, _of_groups(tenant))


def _of_groups(tenant: TenantContext) -> tuple[View, ...]:
    """Return the open tickets of each group of the person at work."""
    item = tenant.items[OWN_GROUPS]
    own = item.groups or () if isinstance(item, AgentItem) else ()
    groups = definitions.of(tenant).in_use_of(GROUP) if own else []
    return tuple(View(one.id, one.name, urlencode({GROUP.name: one.id})) for one in groups if one.id in own)


def of_desk(tenant: TenantContext) -> tuple[View, ...]:
    """Return the views of the desk: one GetItem."""
    return views_of(tenant.repository.get(ViewsItem, keys.tenant, sort=DESK))


def views_of(item: ViewsItem | None) -> tuple[View, ...]:
    told = json.loads(item.views) if item else []
    is_desks = item is not None and item.owner == DESK
    return tuple(View(one[0], one[1], one[2], is_desks, tuple(one[3:])) for one in told)


def texts_of(views: Sequence[View]) -> str:
    return json.dumps([[view.id, view.name, view.query, *view.more] for view in views], ensure_ascii=False)


def query_of(params: Mapping[str, str]) -> str:
    """Return the query of a list, of the parameters of its address, as a view keeps it. Raises Invalid."""
    query = urlencode({name: value for name, value in params.items() if value and name not in _LEFT_OUT})
    if len(query) > QUERY_LIMIT:
        raise Invalid(_("This list has too many filters for a view."))
    return query


# --- changes ---


def save(tenant: TenantContext, name: str, query: str, *, is_desks: bool, is_starred: bool = True, by: Actor) -> View:
    """Save a list under a name, behind the owner's other views. Raises Invalid, with the field; Forbidden, Conflict."""
    made = View(uuid.uuid4().hex[:12], _name(name), query, is_desks)

    def add(views: list[View]) -> list[View]:
        if len(views) >= VIEWS_LIMIT:
            whose = _("A desk can have up to %(limit)s views. Delete one that nobody needs any more.")
            own = _("You can have up to %(limit)s views. Delete one that nobody needs any more.")
            raise Invalid((whose if is_desks else own) % {"limit": VIEWS_LIMIT})
        return [*views, _unlike(made, views)]

    if is_starred and not is_desks:
        _change(tenant, is_desks, add, by, star=made.id)
        return made
    _change(tenant, is_desks, add, by)
    if is_starred:
        star(tenant, made.id, on=True, by=by)
    return made


def change(
    tenant: TenantContext, view_id: str, *, name: str, query: str | None = None, seen: View | None = None, by: Actor
) -> None:
    """Give a view, where it is still as it was `seen`, another name and, where `query` is given, another list. Raises
    what `save` does, NotFound, and Overtaken."""
    clean = _name(name)

    def put(views: list[View]) -> list[View]:
        at = _place(views, view_id)
        if seen not in (None, views[at]):
            raise Overtaken(_("Somebody else has just changed this view. Please check and try again."))
        changed = replace(views[at], name=clean, query=views[at].query if query is None else query)
        return [*views[:at], _unlike(changed, views[:at] + views[at + 1 :]), *views[at + 1 :]]

    _change(tenant, read(tenant).get(view_id).is_desks, put, by)


def move(tenant: TenantContext, view_id: str, by_places: int, *, by: Actor) -> None:
    """Move a view up (below 0) or down by some places, at most to an end. Raises NotFound, Forbidden, Conflict."""

    def put(views: list[View]) -> list[View]:
        at = _place(views, view_id)
        moved = views.pop(at)
        views.insert(max(0, at + by_places), moved)
        return views

    _change(tenant, read(tenant).get(view_id).is_desks, put, by)


def delete(tenant: TenantContext, view_id: str, *, by: Actor) -> View:
    """Delete a view, and return it. Raises NotFound, Forbidden, Conflict."""
    gone = read(tenant).get(view_id)

    def drop(views: list[View]) -> list[View]:
        del views[_place(views, view_id)]
        return views

    _change(tenant, gone.is_desks, drop, by)
    return gone


def star(tenant: TenantContext, view_id: str, *, on: bool, by: Actor) -> None:
    """Let a view stand beside the member's queue, or no longer. Raises NotFound, Invalid, Conflict."""
    seen = read(tenant)
    seen.get(view_id)
    if on and len([view for view in seen.starred if view.id != view_id]) >= STARS_LIMIT:
        raise Invalid(
            _("Up to %(limit)s views can be starred. Take the star from another one first.") % {"limit": STARS_LIMIT}
        )
    known = {view.id for view in (*seen.desk, *seen.own)}  # stars of deleted views go by the way
    stars = (seen.stars & known | {view_id}) if on else (seen.stars & known) - {view_id}
    _change(tenant, False, lambda views: views, by, stars=stars)


def may_change(tenant: TenantContext, view: View) -> bool:
    """Tell whether the person at work may change this view: admins the desk's, everybody their own."""
    return not view.is_desks or tenant.is_admin


def _change(
    tenant: TenantContext,
    is_desks: bool,
    change: Callable[[list[View]], list[View]],
    by: Actor,
    *,
    star: str = "",
    stars: frozenset[str] | None = None,
) -> None:
    """Change the views of one owner as they are stored now, with an audit row where they are the desk's."""
    if is_desks and not tenant.is_admin:
        raise Forbidden(_("Admins and owners change the views of the desk."))
    if not is_desks and not keys.USER_ID.match(tenant.user_id):
        raise Forbidden(_("Only members have views of their own."))
    owner = DESK if is_desks else tenant.user_id

    def build() -> ReadChange:
        stored = tenant.repository.get(ViewsItem, keys.tenant, sort=owner, consistent=True)
        before = views_of(stored)
        after = [replace(view, is_desks=is_desks) for view in change([*before])]
        starred = frozenset(json.loads(stored.starred)) if stored else frozenset[str]()
        now = (starred if stars is None else stars) | ({star} if star else frozenset())
        item = ViewsItem(keys.tenant(tenant.tenant_id), owner)
        item.views, item.starred = texts_of(after), json.dumps(sorted(now))
        item.version = int(stored.version) + 1 if stored else 1
        transaction = Transaction()
        seen = ViewsItem.version == int(stored.version) if stored else ViewsItem.owner.does_not_exist()
        transaction.put(item, name=_ITEM, condition=seen)
        member_changes.require_role(transaction, tenant)
        return transaction, _entries(tenant, before, after, by)

    def built() -> ReadChange | None:
        transaction, entries = build()
        return (transaction, entries) if entries else None  # else nothing has changed

    try:
        if is_desks:
            recording.commit_read(tenant.tenant_id, built, depending=[_ITEM])
        else:
            recording.commit_built(lambda: build()[0], [], depending=[_ITEM])
    except TransactionRefused as error:
        raise Conflict(_("Your role in this desk has changed. Nothing was saved.")) from error


def _entries(tenant: TenantContext, before: Sequence[View], after: Sequence[View], by: Actor) -> list[AuditEntry]:
    """Return what the audit trail says of a change: one row, for one view was added, changed, moved or deleted."""
    was, now = ({view.id: view for view in views} for views in (before, after))
    for view_id in was.keys() | now.keys():
        old, new = was.get(view_id), now.get(view_id)
        if old == new:
            continue
        action = (
            AuditAction.VIEW_CHANGED if old and new else AuditAction.VIEW_SAVED if new else AuditAction.VIEW_DELETED
        )
        told = [{"name": view.name, "list": view.query} if view else {} for view in (old, new)]
        return [AuditEntry(tenant.tenant_id, action, by, "view", view_id, (new or old or after[0]).name, *told)]
    moved = next((one for one, other in zip(after, before, strict=True) if one != other), None)
    if moved is None:
        return []
    places = [{"order": ", ".join(view.name for view in views)} for views in (before, after)]
    return [AuditEntry(tenant.tenant_id, AuditAction.VIEW_CHANGED, by, "view", moved.id, moved.name, *places)]


def _name(name: str) -> str:
    clean = plain_text.line(name)
    if not clean:
        raise Invalid(_("A view needs a name."), field="name")
    locales.within(clean, NAME_LIMIT, "name")
    return clean


def _unlike(view: View, others: Sequence[View]) -> View:
    """Return the view. Raises Invalid where another one has its name."""
    if any(other.name.casefold() == view.name.casefold() for other in others):
        raise Invalid(_("There is a view with this name already."), field="name")
    return view


def _place(views: Sequence[View], view_id: str) -> int:
    for at, one in enumerate(views):
        if one.id == view_id:
            return at
    raise NotFound(_(_GONE))
