"""Read the audit trail as the admins of a tenant do: newest first, a page at a time, of all, one person or one entity.

One Query per page, of the table or of the index that the filter names. Days are in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.paging import Pager, all_pages
from portal.dynamo.repository import Page, TenantRepository
from portal.errors import Invalid
from portal.schema import keys
from tenants.audit_trail.erased_people import NOBODY, ErasedPeople
from tenants.audit_trail.recording import AuditAction
from tenants.audit_trail.stored import (
    AUDIT,
    AuditByActor,
    AuditByEntity,
    AuditItem,
    audit_actor_key,
    audit_entity_key,
    audited_at_key,
    event_id,
)

PAGE_SIZE: Final = 50
_EXPORT_PAGE: Final = 500  # rows read at once for an export
_NAME_ROWS: Final = 5  # rows in which a name is looked for: some have none

# Each stands between who did it and the name of what it was done to.
WORDS: Final[dict[str, str]] = {
    AuditAction.TENANT_CREATED: "created",
    AuditAction.TENANT_IMPORTED: "brought in",
    AuditAction.TENANT_SUSPENDED: "suspended",
    AuditAction.TENANT_RESUMED: "resumed",
    AuditAction.TENANT_CLOSED: "closed",
    AuditAction.TENANT_REOPENED: "undid the closing of",
    AuditAction.TENANT_PURGE_ORDERED: "ordered the deletion of",
    AuditAction.TENANT_PURGE_WITHDRAWN: "took back the order to delete",
    AuditAction.TENANT_PURGE_BEGUN: "began to delete",
    AuditAction.TENANT_PURGED: "deleted a desk, by",
    AuditAction.TENANT_RENAMED: "renamed",
    AuditAction.TENANT_DEFAULTS_CHANGED: "changed the defaults of",
    AuditAction.TENANT_SIGN_IN_CHANGED: "changed how members sign in to",
    AuditAction.TENANT_LIMITS_CHANGED: "changed the plan or limits of",
    AuditAction.TENANT_QUEUES_CHANGED: "changed the queues of",
    AuditAction.TENANT_RESHARDED: "asked for other shards of",
    AuditAction.TENANT_RESHARDING_STOPPED: "stopped the resharding of",
    AuditAction.TENANT_MOVE_BEGUN: "asked for another place of",
    AuditAction.TENANT_MOVE_CANCELLED: "ended the move of",
    AuditAction.TENANT_MOVED: "moved the content of",
    AuditAction.TENANT_DISCARD_ORDERED: "asked to discard the old copy of",
    AuditAction.TENANT_COPY_DISCARDED: "discarded the old copy of",
    AuditAction.MEMBER_ADDED: "added",
    AuditAction.MEMBER_INVITED: "invited",
    AuditAction.MEMBER_ROLE_CHANGED: "changed the role of",
    AuditAction.MEMBER_REMOVED: "removed",
    AuditAction.MEMBER_LEFT: "left the desk",
    AuditAction.INVITATION_RESENT: "resent the invitation to",
    AuditAction.INVITATION_REVOKED: "revoked the invitation for",
    AuditAction.INVITATION_ACCEPTED: "accepted the invitation",
    AuditAction.PERSON_ERASED: "erased from the desk",
    AuditAction.TICKETS_HANDED_ON: "reassigned the tickets of",
    AuditAction.TICKETS_RESTORED: "restored",
    AuditAction.USER_CREATED: "created the account of",
    AuditAction.USER_RESET_LINK_SENT: "sent a link for a new password to",
    AuditAction.USER_PASSWORD_SET: "set the password of",
    AuditAction.USER_DISABLED: "disabled the account of",
    AuditAction.USER_ENABLED: "enabled the account of",
    AuditAction.USER_MADE_OPERATOR: "gave an operator's rights to",
    AuditAction.USER_OPERATOR_ENDED: "took an operator's rights from",
    AuditAction.USER_SIGNED_OUT_EVERYWHERE: "ended all sessions of",
    AuditAction.USER_FACTOR_ADDED: "added a second factor to the account of",
    AuditAction.USER_FACTOR_REMOVED: "removed a second factor from the account of",
    AuditAction.USER_RECOVERY_CODES_RENEWED: "replaced the recovery codes of",
    AuditAction.USER_RECOVERY_CODE_USED: "used a recovery code of",
    AuditAction.USER_FACTORS_RESET: "removed all second factors from the account of",
    AuditAction.ADDRESS_CLEARED: "let mail go out again to",
    AuditAction.WEBHOOK_ADDED: "added the webhook",
    AuditAction.WEBHOOK_CHANGED: "changed the webhook",
    AuditAction.WEBHOOK_ROTATED: "replaced the secret of the webhook",
    AuditAction.WEBHOOK_PAUSED: "paused the webhook",
    AuditAction.WEBHOOK_RESUMED: "resumed the webhook",
    AuditAction.WEBHOOK_REMOVED: "removed the webhook",
    AuditAction.API_KEY_CREATED: "made the API key",
    AuditAction.API_KEY_CHANGED: "changed the API key",
    AuditAction.API_KEY_ROLLED: "rolled the API key",
    AuditAction.API_KEY_REVOKED: "revoked the API key",
    AuditAction.SESSION_STARTED: "signed in to the desk",
    AuditAction.SESSION_REFUSED: "was refused at sign-in",
    AuditAction.SESSION_ENDED: "ended a session of",
    AuditAction.IMPERSONATION_BEGUN: "began to act as",
    AuditAction.IMPERSONATION_ENDED: "stopped acting as",
    AuditAction.CONTENT_OPENED: "may read the content of",
    AuditAction.EXPORT_ASKED: "asked for an export of",
    AuditAction.EXPORT_CANCELLED: "cancelled the export of",
    AuditAction.EXPORT_MADE: "exported",
    AuditAction.EXPORT_DOWNLOADED: "downloaded the export of",
    AuditAction.DEAD_LETTER_REPLAYED: "counted after all the dead letter",
    AuditAction.DEAD_LETTER_REFUSED: "could not count the dead letter",
    AuditAction.DEAD_LETTER_DROPPED: "dropped the dead letter",
    AuditAction.DEAD_DELIVERY_REPLAYED: "sent again the dead delivery",
    AuditAction.DEAD_DELIVERY_DROPPED: "dropped the dead delivery",
    AuditAction.DELIVERIES_PAUSED: "paused all deliveries of",
    AuditAction.DELIVERIES_DRAINED: "let later deliveries wait, of",
    AuditAction.DELIVERIES_RESUMED: "resumed the deliveries of",
    AuditAction.DELIVERIES_DROPPED: "dropped the waiting deliveries of",
    AuditAction.RECORD_ADDED: "added",
    AuditAction.RECORD_CHANGED: "changed",
    AuditAction.RECORD_REMOVED: "removed",
}


# Actions about oneself, whose sentence is complete without a name behind it.
_ALONE: Final = (
    AuditAction.MEMBER_LEFT,
    AuditAction.SESSION_STARTED,
    AuditAction.INVITATION_ACCEPTED,
)


_UNSAID: Final = ("visit",)  # what rows have in common that belong together: exports have it


@dataclass(frozen=True)
class TrailFilter:
    """The rows to read. Choose an actor or an entity, not both: each has an index of its own. Days are in UTC."""

    actor: str = ""
    entity: tuple[str, str] | None = None  # type and id
    first: date | None = None
    last: date | None = None

    def bounds(self) -> tuple[str, str]:
        """Return sort keys around the days, both included."""
        return f"{self.first or '0'}", f"{self.last or ''}~"


@dataclass(frozen=True)
class TrailRow:
    """One event in words. `id` is unlike that of any other event."""

    id: str
    at: datetime
    actor_id: str
    actor: str
    origin: str
    action: str
    words: str
    entity_type: str
    entity_id: str
    entity: str
    before: dict[str, str]
    after: dict[str, str]

    @property
    def is_whole(self) -> bool:
        """Tell whether the words are complete without the name of the entity."""
        return self.action in _ALONE

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Return name, before and after of each value that says something to people, "" if there was or is none."""
        names = [name for name in dict.fromkeys((*self.before, *self.after)) if name not in _UNSAID]
        return [(name.replace("_", " "), self.before.get(name, ""), self.after.get(name, "")) for name in names]


@dataclass(frozen=True)
class TrailPage:
    """Rows, newest first. `next` and `previous` are cursors, None at the ends."""

    rows: list[TrailRow]
    next: str | None
    previous: str | None


def page(
    repository: TenantRepository,
    *,
    only: TrailFilter,
    after: str | None = None,
    size: int = PAGE_SIZE,
    erased: ErasedPeople = NOBODY,
) -> TrailPage:
    """Return a page of the trail, in which those who are erased have other names: one Query.

    Raises Invalid for a cursor of another list.
    """
    pager = Pager(repository.tenant_id, _bound(only))
    place = pager.place(after, size=1) if after else None
    backwards = place is not None and place.backwards
    start = _start(repository, only, str(place.position[0])) if place else None
    stored = _query(repository, only, size + 1, start, descending=not backwards)
    rows = stored.items[:size]
    if not rows:
        return TrailPage([], None, None)
    more = len(stored.items) > size or stored.last_key is not None
    begin, end = ([row.timestamp_event_id] for row in (rows[0], rows[-1]))
    links = pager.links(place, begin=begin, end=end, more=more)
    in_order = rows[::-1] if backwards else rows
    return TrailPage([_shown(_row(stored), erased) for stored in in_order], links.next, links.previous)


def everything(repository: TenantRepository, *, only: TrailFilter, erased: ErasedPeople = NOBODY) -> Iterator[TrailRow]:
    """Yield all rows of a filter, newest first, read while they are taken."""
    for found in all_pages(lambda start: _query(repository, only, _EXPORT_PAGE, start)):
        yield from (_shown(_row(stored), erased) for stored in found.items)


def _shown(row: TrailRow, erased: ErasedPeople) -> TrailRow:
    then = erased.in_row_of(clock.stamp(row.at))
    before, after = then.values(row.before), then.values(row.after)
    return replace(row, actor=then.shown(row.actor), entity=then.shown(row.entity), before=before, after=after)


def names_of(repository: TenantRepository, user_ids: Sequence[str]) -> dict[str, str]:
    """Return the names by which the trail last called these people: one Query of a few rows for each, in parallel."""

    def name(user_id: str) -> str:
        newest = _query(repository, TrailFilter(entity=("user", user_id)), _NAME_ROWS, None)
        return next((row.entity for row in map(_row, newest.items) if row.entity), "")

    names = fan_out([partial(name, user_id) for user_id in user_ids]) if user_ids else []
    return dict(zip(user_ids, names, strict=True))


def filter_of(*, actor: str = "", entity: str = "", first: str = "", last: str = "") -> TrailFilter:
    """Return the filter of a page's address. An entity is given as "user:<id>". Raises Invalid with the parameter."""
    if actor and entity:
        raise Invalid("Choose what one actor did or what was done to one thing, not both.", field="entity")
    only = TrailFilter(actor=actor, first=_day(first, "first"), last=_day(last, "last"))
    try:
        if entity:
            kind, _, entity_id = entity.partition(":")
            only = replace(only, entity=(kind, entity_id))
        _partition(TenantRepository(keys.PLATFORM), only)
    except ValueError as error:
        raise Invalid("This filter is not valid.", field="entity" if entity else "actor") from error
    if only.first and only.last and only.first > only.last:
        raise Invalid("The first day must not be after the last day.", field="first")
    return only


def _day(text: str, field: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise Invalid("This filter is not valid: a day is written as 2026-11-20.", field=field) from error


def _partition(repository: TenantRepository, only: TrailFilter) -> tuple[Any, Any, tuple[str, ...]]:
    """Return model, key builder and its arguments. Raises ValueError for text that cannot stand in a key."""
    if only.actor:
        found: tuple[Any, Any, tuple[str, ...]] = (AuditByActor, audit_actor_key, (only.actor,))
    elif only.entity:
        found = (AuditByEntity, audit_entity_key, only.entity)
    else:
        return AuditItem, keys.tenant, ()
    repository.key(found[1], *found[2])
    return found


def _query(
    repository: TenantRepository,
    only: TrailFilter,
    limit: int,
    start: dict[str, Any] | None,
    *,
    descending: bool = True,
) -> Page[Any]:
    model, build, args = _partition(repository, only)
    return repository.query(model, build, *args, between=only.bounds(), descending=descending, limit=limit, start=start)


def _start(repository: TenantRepository, only: TrailFilter, sort: str) -> dict[str, Any]:
    model, build, args = _partition(repository, only)
    start = {AUDIT.hash: {"S": repository.tenant_id}, AUDIT.range or "": {"S": sort}}
    return start | ({model.gsi.hash: {"S": repository.key(build, *args)}} if model.gsi else {})


def _bound(only: TrailFilter) -> tuple[object, ...]:
    return ("audit", only.actor, only.entity, str(only.first), str(only.last))


def _row(stored: AuditItem | AuditByActor | AuditByEntity) -> TrailRow:
    return TrailRow(
        id=event_id(stored.timestamp_event_id),
        at=clock.parse(audited_at_key(stored.timestamp_event_id)),
        actor_id=stored.actor_id,
        actor=stored.actor_email or {"system": "Pooldesk"}.get(stored.actor_id, "Somebody"),
        origin=stored.origin or "",
        action=stored.action,
        words=WORDS.get(stored.action, stored.action),
        entity_type=stored.entity_type,
        entity_id=stored.entity_id,
        entity=stored.entity_name or "",
        before=json.loads(stored.before or "{}"),
        after=json.loads(stored.after or "{}"),
    )
