"""Read the audit trail as the admins of a tenant do: newest first, a page at a time, of all, one person or one entity.

One Query per page, of the table or of the index that the filter names. Days are in UTC.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _
from markupsafe import Markup

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.paging import Pager
from portal.dynamo.store import Page, Store, all_pages
from portal.errors import Invalid
from portal.schema import keys
from portal.web.locales import declare_stored, stored_text
from tenants.audit_trail.erased_people import NOBODY, ErasedPeople
from tenants.audit_trail.recording import AuditAction, sentence_of
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

# Exports whose names are texts of the program; others have the name of a desk.
_NAMED_BY_US: Final = {
    "audit": gettext_noop("the audit trail"),
    "evidence": gettext_noop("the evidence for auditors"),
    "isolation": gettext_noop("the signed report of an attack"),
    "person": gettext_noop("a person's data"),
}
# Actions about oneself, whose sentence is complete without a name behind it.
_ALONE: Final = (
    AuditAction.MEMBER_LEFT,
    AuditAction.SESSION_STARTED,
    AuditAction.INVITATION_ACCEPTED,
    AuditAction.AUDITOR_ADMITTED,
)


# The names of values that most rows have; others are shown as they are stored.
_NAMES: Final = (
    gettext_noop("owner"),
    gettext_noop("version"),
    gettext_noop("visibility"),
    gettext_noop("set"),
    gettext_noop("characters"),
    gettext_noop("secret"),
    gettext_noop("what"),
    gettext_noop("created by"),
    gettext_noop("event"),
    gettext_noop("name"),
    gettext_noop("role"),
    gettext_noop("status"),
    gettext_noop("reason"),
    gettext_noop("placement"),
    gettext_noop("slug"),
    gettext_noop("because"),
    gettext_noop("as of"),
    gettext_noop("until"),
    gettext_noop("tickets"),
    gettext_noop("signature"),
    gettext_noop("shards"),
    gettext_noop("operator"),
    gettext_noop("note"),
    gettext_noop("invited by"),
    gettext_noop("may be deleted from"),
    gettext_noop("second factor"),
    gettext_noop("codes left"),
    gettext_noop("language"),
    gettext_noop("zone"),
    gettext_noop("time zone"),
    gettext_noop("plan"),
    gettext_noop("email"),
    gettext_noop("priority"),
    gettext_noop("assignee"),
    gettext_noop("tags"),
    gettext_noop("title"),
    gettext_noop("member"),
    gettext_noop("address"),
    gettext_noop("browser"),
    gettext_noop("started"),
    gettext_noop("shortcut"),
    gettext_noop("section"),
    gettext_noop("sections"),
    gettext_noop("colour"),
    gettext_noop("owner"),
    gettext_noop("is on"),
    gettext_noop("scopes"),
    gettext_noop("expires"),
    gettext_noop("addresses"),
    gettext_noop("origins"),
    gettext_noop("groups"),
    gettext_noop("purpose"),
    gettext_noop("result"),
    gettext_noop("attempts"),
    gettext_noop("entries"),
    gettext_noop("faults"),
    gettext_noop("fingerprint"),
    gettext_noop("if"),
    gettext_noop("then"),
    gettext_noop("when"),
    gettext_noop("on"),
    gettext_noop("list"),
    gettext_noop("order"),
    gettext_noop("order of fields"),
    gettext_noop("order of kinds"),
    gettext_noop("default kind"),
    gettext_noop("form without a kind"),
    gettext_noop("add tags"),
    gettext_noop("remove tags"),
    gettext_noop("answer"),
    gettext_noop("webhook"),
    gettext_noop("rights"),
    gettext_noop("given up"),
    gettext_noop("letters"),
    gettext_noop("fields"),
    gettext_noop("targets"),
    gettext_noop("holidays"),
    gettext_noop("text"),
    gettext_noop("of"),
    gettext_noop("to"),
    gettext_noop("bytes"),
    gettext_noop("prefix"),
    gettext_noop("events"),
    gettext_noop("description"),
    gettext_noop("reply hold"),
    gettext_noop("ticket priority"),
    gettext_noop("sender name"),
    gettext_noop("acknowledges"),
    gettext_noop("acknowledgement"),
    gettext_noop("history"),
    gettext_noop("link days"),
    gettext_noop("link generation"),
    gettext_noop("blocked"),
    gettext_noop("domain sender"),
    gettext_noop("domain state"),
    gettext_noop("asks name"),
    gettext_noop("asks priority"),
    gettext_noop("takes files"),
    gettext_noop("intro"),
    gettext_noop("next steps"),
    gettext_noop("own fields"),
    gettext_noop("needed fields"),
    gettext_noop("logo"),
    gettext_noop("member limit"),
    gettext_noop("request rate"),
    gettext_noop("date form"),
    gettext_noop("number form"),
    gettext_noop("first weekday"),
    gettext_noop("state"),
    gettext_noop("replaced by"),
    gettext_noop("old key works until"),
    gettext_noop("merged"),
    gettext_noop("separate again"),
    gettext_noop("organisation"),
    gettext_noop("notes"),
    gettext_noop("copy"),
    gettext_noop("why"),
    gettext_noop("destination"),
)
# The beginnings of names that go on with the name or number of what was changed.
_NAMES_OF: Final = {
    "members of group_": gettext_noop("members of group %(of)s"),
    "group group_": gettext_noop("group %(of)s"),
    "field ": gettext_noop("field %(of)s"),
    "form of ": gettext_noop("form of %(of)s"),
    "forms of ": gettext_noop("forms of %(of)s"),
    "kind ": gettext_noop("kind %(of)s"),
    "colour of ": gettext_noop("colour of %(of)s"),
    "absence of ": gettext_noop("absence of %(of)s"),
    "capacity of ": gettext_noop("capacity of %(of)s"),
}
# Entries keep words of ours in English, and codes. A package that records others says beside their labels, by
# `declare_values`, how they are shown. All other values people have typed.
SaidValue = Callable[[str], str]
_said_by: Final[dict[tuple[str, str], SaidValue]] = {}


def declare_values(said: SaidValue, *names: str, about: str = "") -> None:
    """Let values of these names be shown as `said` returns, in the reader's words, from their stored text.

    A name may be one of the beginnings in _NAMES_OF. `about` is the only type of entity that is meant, "" for any.
    """
    _said_by.update({(about, name): said for name in names})


def codes(labels: Mapping[str, Any], *, behind: str = "") -> SaidValue:
    """Return how values are shown that are codes with these labels, or lists with some.

    With `behind`, words that people have typed stand first, and codes behind each such mark. A label is marked for
    translation, or lazy.
    """
    known = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    pattern = re.compile(f"{f'(?<={re.escape(behind)})' if behind else '(?:^|(?<=[,;] ))'}(?:{known})(?=$|[,;:] | · )")
    return partial(pattern.sub, lambda found: _(str(labels[found[0]])))


def counted(message: str) -> SaidValue:
    """Return how values are shown that end with this message, or have it before a mark, with a number as %(count)s."""
    before, after = map(re.escape, message.split("%(count)s"))
    pattern = re.compile(f"(?<=[·,] ){before}([0-9,]+){after}(?=$| · )")
    return partial(pattern.sub, lambda found: _(message) % {"count": found[1]})


declare_values(
    stored_text,
    *("role", "status", "priority", "visibility", "assignee", "because", "text", "why", "rights"),
    *("second factor", "given up", "domain state", "targets"),
)
_NONE: Final = {"none": gettext_noop("none"), "never": gettext_noop("never")}
_YES, _NO = gettext_noop("yes"), gettext_noop("no")
declare_values(
    codes({"True": _YES, "yes": _YES, "False": _NO, "no": _NO}),
    *("on", "is on", "acknowledges", "asks name", "asks priority", "takes files", "operator"),
)
declare_values(codes(_NONE), "member limit", "request rate", "expires")
for kind in ("dead_letter", "dead_delivery"):  # other reasons are those of people
    declare_values(stored_text, "reason", about=kind)
declare_values(stored_text, "signature", about="user")  # its length; a desk's is its text
declare_values(stored_text, "of", about="export")
declare_values(codes({"nobody": gettext_noop("nobody")}), "to", about="user")
declare_values(
    codes(
        {
            "held": gettext_noop("each attempt refused"),
            "crossed": gettext_noop("an attempt got through"),
            "refused": gettext_noop("nothing to be said"),
            "cancelled": gettext_noop("stopped"),
        }
    ),
    "result",
)
for word in (
    *(gettext_noop("viewer"), gettext_noop("agent"), gettext_noop("admin"), gettext_noop("auditor")),
    *(gettext_noop("active"), gettext_noop("suspended"), gettext_noop("closing"), gettext_noop("purging")),
    *(gettext_noop("public"), gettext_noop("desk"), gettext_noop("me"), gettext_noop("already a member")),
    *(gettext_noop("%(count)s characters"), gettext_noop("1 character"), gettext_noop("none")),
):
    declare_stored(word)
_UNSAID: Final = ("visit",)  # what rows have in common that belong together: exports have it


@dataclass(frozen=True)
class TrailFilter:
    """The rows to read. Choose an actor or an entity, not both: each has an index of its own. Days are in `zone`."""

    actor: str = ""
    entity: tuple[str, str] | None = None  # type and id
    first: date | None = None
    last: date | None = None
    zone: str = clock.UTC_NAME

    def bounds(self) -> tuple[str, str]:
        """Return sort keys around the days, both included."""
        if self.zone == clock.UTC_NAME:
            return f"{self.first or '0'}", f"{self.last or ''}~"
        begins = clock.stamp(clock.day_begins(self.first, self.zone)) if self.first else "0"
        # What follows a stamp in a key is before the tilde.
        return begins, f"{clock.stamp(clock.day_ends(self.last, self.zone)) if self.last else ''}~"


@dataclass(frozen=True)
class TrailRow:
    """One event in words. `id` is unlike that of any other event."""

    id: str
    at: datetime
    actor_id: str
    actor: str
    origin: str
    action: str
    entity_type: str
    entity_id: str
    entity: str
    before: dict[str, str]
    after: dict[str, str]

    def sentence(self, entity: str) -> Markup:
        """Return the sentence about the action, with this element for its entity."""
        return Markup.escape(sentence_of(self.action)) % {"entity": entity}

    @property
    def by(self) -> str:
        """Return the actor; of a program also the command."""
        return f"{self.actor} ({self.origin})" if self.actor_id == "system" and self.origin else self.actor

    @property
    def is_whole(self) -> bool:
        """Tell whether the words are complete without the name of the entity."""
        return self.action in _ALONE

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Return name, before and after of each value that says something to people, "" if there was or is none."""
        names = [name for name in dict.fromkeys((*self.before, *self.after)) if name not in _UNSAID]
        values = [(name, self.before.get(name, ""), self.after.get(name, "")) for name in names]
        said = partial(value_said, self.entity_type)
        return [(name_said(n), said(n, before), said(n, after)) for n, before, after in values if before or after]


def name_said(stored: str) -> str:
    """Return the name of a value in the reader's language: entries keep it in English."""
    for begins, text in _NAMES_OF.items():
        if stored.startswith(begins):
            return _(text) % {"of": stored.removeprefix(begins)}
    return _(stored.replace("_", " "))


def value_said(about: str, name: str, value: str) -> str:
    """Return a value in the reader's language, one that people have typed as it is."""
    name = name.replace("_", " ") if not (begins := next(filter(name.startswith, _NAMES_OF), "")) else begins
    said = _said_by.get((about, name)) or _said_by.get(("", name))
    return said(value) if said and value else value


@dataclass(frozen=True)
class TrailPage:
    """Rows, newest first. `next` and `previous` are cursors, None at the ends."""

    rows: list[TrailRow]
    next: str | None
    previous: str | None


def page(
    repository: Store,
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
    return TrailPage([shown(row_of(stored), erased) for stored in in_order], links.next, links.previous)


def everything(repository: Store, *, only: TrailFilter, erased: ErasedPeople = NOBODY) -> Iterator[TrailRow]:
    """Yield all rows of a filter, newest first, read while they are taken."""
    for found in all_pages(lambda start: _query(repository, only, _EXPORT_PAGE, start)):
        yield from (shown(row_of(stored), erased) for stored in found.items)


def shown(row: TrailRow, erased: ErasedPeople) -> TrailRow:
    """Return a row in which those who were erased after it have other names."""
    then = erased.in_row_of(clock.stamp(row.at))
    before, after = then.values(row.before), then.values(row.after)
    return replace(row, actor=then.shown(row.actor), entity=then.shown(row.entity), before=before, after=after)


def names_of(repository: Store, user_ids: Sequence[str]) -> dict[str, str]:
    """Return the names by which the trail last called these people: one Query of a few rows for each, in parallel."""

    def name(user_id: str) -> str:
        newest = _query(repository, TrailFilter(entity=("user", user_id)), _NAME_ROWS, None)
        return next((row.entity for row in map(row_of, newest.items) if row.entity), "")

    names = fan_out([partial(name, user_id) for user_id in user_ids]) if user_ids else []
    return dict(zip(user_ids, names, strict=True))


def filter_of(
    *, actor: str = "", entity: str = "", first: str = "", last: str = "", zone: str = clock.UTC_NAME
) -> TrailFilter:
    """Return the filter of a page's address, with days in this time zone. An entity is given as "user:<id>".

    Raises Invalid with the parameter.
    """
    if actor and entity:
        raise Invalid(gettext("Choose what one actor did or what was done to one thing, not both."), field="entity")
    only = TrailFilter(actor=actor, first=_day(first, "first"), last=_day(last, "last"), zone=zone)
    try:
        if entity:
            kind, _, entity_id = entity.partition(":")
            only = replace(only, entity=(kind, entity_id))
        _partition(Store("tenant", keys.PLATFORM), only)
    except ValueError as error:
        raise Invalid(gettext("This filter is not valid."), field="entity" if entity else "actor") from error
    if only.first and only.last and only.first > only.last:
        raise Invalid(gettext("The first day must not be after the last day."), field="first")
    return only


def _day(text: str, field: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise Invalid(gettext("This filter is not valid: a day is written as 2026-11-20."), field=field) from error


def _partition(repository: Store, only: TrailFilter) -> tuple[Any, Any, tuple[str, ...]]:
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
    repository: Store,
    only: TrailFilter,
    limit: int,
    start: dict[str, Any] | None,
    *,
    descending: bool = True,
) -> Page[Any]:
    model, build, args = _partition(repository, only)
    return repository.query(model, build, *args, between=only.bounds(), descending=descending, limit=limit, start=start)


def _start(repository: Store, only: TrailFilter, sort: str) -> dict[str, Any]:
    model, build, args = _partition(repository, only)
    start = {AUDIT.hash: {"S": repository.tenant_id}, AUDIT.range or "": {"S": sort}}
    return start | ({model.gsi.hash: {"S": repository.key(build, *args)}} if model.gsi else {})


def _bound(only: TrailFilter) -> tuple[object, ...]:
    return ("audit", only.actor, only.entity, str(only.first), str(only.last))


def _entity(stored: AuditItem | AuditByActor | AuditByEntity) -> str:
    """Return the name of what a row is about, translated where it is a text of the program."""
    name = stored.entity_name or ""
    is_ours = stored.entity_type == "page" or (stored.entity_type == "export" and stored.entity_id in _NAMED_BY_US)
    return _(name) if is_ours and name else name


def row_of(stored: AuditItem | AuditByActor | AuditByEntity) -> TrailRow:
    return TrailRow(
        id=event_id(stored.timestamp_event_id),
        at=clock.parse(audited_at_key(stored.timestamp_event_id)),
        actor_id=stored.actor_id,
        actor=stored.actor_email or {"system": "Pooldesk"}.get(stored.actor_id, gettext("Somebody")),
        origin=stored.origin or "",
        action=stored.action,
        entity_type=stored.entity_type,
        entity_id=stored.entity_id,
        entity=_entity(stored),
        before=json.loads(stored.before or "{}"),
        after=json.loads(stored.after or "{}"),
    )
