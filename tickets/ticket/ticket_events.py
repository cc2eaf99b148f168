"""Declare what is told of tickets to those outside, and make it of what the rules know.

A payload holds all that a receiver needs: nobody has to ask back. `sequence` is the version that the change made of
the ticket. A comment makes none, and carries that of the last change; comments between two changes follow each other
by the timestamp of their event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.outbox.publisher import Event, EventField, EventType, declare_event
from tenants.tenancy.context import TenantContext
from tickets.ticket.fields import (
    ASSIGNEE,
    BY_NAME,
    CUSTOM_PREFIX,
    DESCRIPTION,
    FIELDS,
    OPTIONAL,
    STATUS,
    Values,
)
from tickets.ticket.stored import ActivityItem, SummaryItem, entry_id

Json = dict[str, Any]


_ALICE: Final = {"id": "5f0c1d2e3a4b4c5d8e6f708192a3b4c5", "name": "Alice Example"}
_BOB: Final = {"id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9", "name": "Bob Example"}
_NUMBER: Final = EventField("number", gettext_noop("number"), gettext_noop("the ticket's number, as in its address"), 7)
_BY: Final = EventField("by", gettext_noop("person"), gettext_noop("who did it"), _BOB)
_BODY: Final = EventField(
    "body", gettext_noop("text"), gettext_noop("what was written, in Markdown"), "It works again after a **restart**."
)
_AT: Final = EventField(
    "at", gettext_noop("moment"), gettext_noop("when it was written"), "2026-11-20T09:30:00.000000Z"
)
_VALUES: Final = tuple(
    EventField(field.name, field.told_as + " or null" * (field.name in OPTIONAL), field.about, field.example)
    for field in FIELDS
    if field is not ASSIGNEE
)

CREATED: Final = declare_event(
    EventType(
        "ticket.created",
        1,
        gettext_noop("Somebody opened a ticket."),
        (
            _NUMBER,
            *_VALUES,
            EventField("requester", gettext_noop("person"), gettext_noop("for whom it was opened"), _ALICE),
            EventField("by", gettext_noop("person"), gettext_noop("who opened it"), _ALICE),
        ),
    )
)
CHANGED: Final = declare_event(
    EventType(
        "ticket.changed",
        1,
        gettext_noop("A field other than the status or the assignee was changed."),
        (
            _NUMBER,
            EventField(
                "changes",
                gettext_noop("list of changes"),
                gettext_noop(
                    "each with `field`, `before` and `after`; `before` of a description is null. `merged_into` and "
                    "`merged` are numbers of tickets as texts, `spam` is yes or empty, `snoozed` is a moment, answer "
                    "or empty; of a custom field `field` is `custom.` and its id"
                ),
                [{"field": "priority", "before": "normal", "after": "urgent"}],
            ),
            _BY,
        ),
    )
)
CAME_DUE: Final = declare_event(
    EventType(
        "ticket.due",
        1,
        gettext_noop("The time of a snoozed ticket is over, and nobody has answered."),
        (
            _NUMBER,
            EventField(
                "to", gettext_noop("text"), gettext_noop("the id of the member who snoozed it, or null"), _BOB["id"]
            ),
        ),
    )
)
STATUS_CHANGED: Final = declare_event(
    EventType(
        "ticket.status_changed",
        1,
        gettext_noop("The status was changed, of one ticket or of many together: there is one event for each."),
        (
            _NUMBER,
            EventField("before", gettext_noop("text"), gettext_noop("open, pending, resolved or closed"), "open"),
            EventField("after", gettext_noop("text"), gettext_noop("the status since then"), "resolved"),
            _BY,
        ),
    )
)
ASSIGNED: Final = declare_event(
    EventType(
        "ticket.assigned",
        1,
        gettext_noop("The ticket was given to somebody, or to nobody."),
        (
            _NUMBER,
            EventField("before", gettext_noop("person or null"), gettext_noop("who had it"), None),
            EventField("after", gettext_noop("person or null"), gettext_noop("who has it now"), _BOB),
            _BY,
        ),
    )
)
COMMENTED: Final = declare_event(
    EventType("ticket.commented", 1, gettext_noop("Somebody commented on the ticket."), (_NUMBER, _BODY, _AT, _BY))
)
NOTE_ADDED: Final = declare_event(
    EventType("ticket.note_added", 1, gettext_noop("Somebody added an internal note."), (_NUMBER, _BODY, _AT, _BY))
)
_ENTRY: Final = EventField(
    "entry", gettext_noop("text"), gettext_noop("the id of the entry, as in the API"), "5d1c2b3a4f5e"
)
_WRITTEN_AT: Final = EventField(
    "at", gettext_noop("moment"), gettext_noop("when it was written first"), "2026-11-20T09:30:00.000000Z"
)
_NEW_BODY: Final = EventField(
    "body", gettext_noop("text"), gettext_noop("what it says now, in Markdown"), "It works again after a **restart**."
)
_EDITED_NOW: Final = (_NUMBER, _ENTRY, _NEW_BODY, _WRITTEN_AT, _BY)
_DELETED: Final = (_NUMBER, _ENTRY, _WRITTEN_AT, _BY)

COMMENT_EDITED: Final = declare_event(
    EventType("ticket.comment_edited", 1, gettext_noop("A comment was edited."), _EDITED_NOW)
)
NOTE_EDITED: Final = declare_event(
    EventType("ticket.note_edited", 1, gettext_noop("An internal note was edited."), _EDITED_NOW)
)
COMMENT_DELETED: Final = declare_event(
    EventType("ticket.comment_deleted", 1, gettext_noop("A comment was deleted."), _DELETED)
)
NOTE_DELETED: Final = declare_event(
    EventType("ticket.note_deleted", 1, gettext_noop("An internal note was deleted."), _DELETED)
)

_LINK: Final = EventField(
    "link",
    gettext_noop("text"),
    gettext_noop("blocks, blocked_by, duplicate_of, duplicated_by, relates_to …"),
    "blocks",
)
_OTHER: Final = EventField(
    "other", gettext_noop("number"), gettext_noop("the number of the other ticket, which has the opposite link"), 8
)
_LINKED: Final = (_NUMBER, _LINK, _OTHER, _BY)
LINKED: Final = declare_event(
    EventType("ticket.linked", 1, gettext_noop("The ticket was linked to another one."), _LINKED)
)
UNLINKED: Final = declare_event(
    EventType("ticket.unlinked", 1, gettext_noop("A link to another ticket was removed."), _LINKED)
)

REDACTED: Final = declare_event(
    EventType(
        "ticket.redacted",
        1,
        gettext_noop(
            "Words were taken out of the ticket and its history: what was received before has to be read anew."
        ),
        (_NUMBER, _BY),
    )
)

RULE_RAN: Final = declare_event(
    EventType(
        "ticket.rule_ran",
        1,
        gettext_noop(
            "A rule of the desk has done something with the ticket. The endpoint that the rule names is "
            "told of it, too."
        ),
        (
            _NUMBER,
            EventField(
                "rule",
                gettext_noop("object"),
                gettext_noop("`id`, `name` and `version` of the rule"),
                {"id": "rule_019e0c1d2e3a4b4c5d8e", "name": "Urgent ones to Bob", "version": 3},
            ),
            *(value for value in _VALUES if value.name != DESCRIPTION.name),
            EventField("assignee", gettext_noop("person or null"), gettext_noop("who has the ticket"), _BOB),
            EventField("requester", gettext_noop("person"), gettext_noop("for whom it was opened"), _ALICE),
        ),
    )
)
_TARGET: Final = EventField("target", gettext_noop("text"), gettext_noop("first, next or solution"), "first")
_DUE_AT: Final = EventField(
    "due_at", gettext_noop("moment"), gettext_noop("the moment of the target"), "2026-11-20T09:30:00.000000Z"
)
DUE_SOON: Final = declare_event(
    EventType("ticket.due_soon", 1, gettext_noop("A target of the ticket is due soon."), (_NUMBER, _TARGET, _DUE_AT))
)
BREACHED: Final = declare_event(
    EventType("ticket.breached", 1, gettext_noop("A target of the ticket was missed."), (_NUMBER, _TARGET, _DUE_AT))
)

REPLY: Final = "reply"  # the destination of comments that go to somebody outside as letters
PREVIEW: Final = "preview"  # makes the small pictures of the files of an entry
NOTICE: Final = "notice"  # decides which members are told
DIGEST: Final = "digest"  # sends a member's mail
RULE_ANSWER: Final = "rule_answer"  # writes the comment of a rule
RULE_MAIL: Final = "rule_mail"  # sends the mail of a rule

# Of each comment and note, for destinations of our own: nobody subscribes to it, and it has no text.
ENTERED: Final = EventType(
    "ticket.entered",
    1,
    "An entry was added to a ticket's history.",
    (_NUMBER, EventField("entry", "text", "the sort key of the entry", ""), EventField("by", "text", "an id", "")),
)

# Of a comment or note that mentions people since it was edited. Nobody subscribes to it, and it has no text.
EDITED_ENTRY: Final = EventType(
    "ticket.entry_edited",
    1,
    "An entry of a ticket's history was edited.",
    (*ENTERED.fields, EventField("times", "number", "how often it was edited by then", 1)),
)

# A letter with a link, for which a requester asks. Nobody subscribes to it.
TO_TICKET, TO_ALL = "ticket", "all"
LINK_ASKED: Final = EventType(
    "ticket.link_asked",
    1,
    "A requester asked for a link by mail.",
    (
        _NUMBER,
        EventField("person", "text", "the id of the requester", ""),
        EventField("link", "text", "where it leads: ticket or all", TO_TICKET),
    ),
)


def created(tenant: TenantContext, number: int, values: Values, *, requester: tuple[str, str]) -> Event:
    """Tell of a new ticket that has these values. Its assignment has an event of its own.

    `requester` are the id and the name of the person for whom it was opened.
    """
    told = {field.name: values[field.name] for field in FIELDS if field is not ASSIGNEE}
    told |= {name: told[name] or None for name in OPTIONAL}
    for_whom: Json = {"id": requester[0], "name": requester[1]}
    return Event(CREATED, {"number": number, **told, "requester": for_whom, "by": _me(tenant)}, 1)


def commented(tenant: TenantContext, number: int, *, kind: str, body: str, at: str, version: int) -> Event:
    """Tell of a comment, or of an internal note where `kind` is note, on a ticket that has this version."""
    data = {"number": number, "body": body, "at": at, "by": _me(tenant)}
    return Event(NOTE_ADDED if kind == "note" else COMMENTED, data, version)


def entered(tenant: TenantContext, number: int, *, entry: str, version: int, to: tuple[str, ...]) -> Event:
    """Tell destinations of our own of a comment or note, by the sort key of its entry. Without any it is not stored."""
    return Event(ENTERED, {"number": number, "entry": entry, "by": tenant.user_id}, version, to)


def edited(tenant: TenantContext, number: int, *, entry: str, version: int, times: int) -> Event:
    """Tell those who decide which members hear of it that a comment or note has another text, for the nth time."""
    return Event(
        EDITED_ENTRY, {"number": number, "entry": entry, "by": tenant.user_id, "times": times}, version, (NOTICE,)
    )


def linked(
    tenant: TenantContext, number: int, *, kind: str, other: int, version: int, is_removed: bool = False
) -> Event:
    """Tell that a ticket was linked to another one, or is not any more."""
    data = {"number": number, "link": kind, "other": other, "by": _me(tenant)}
    return Event(UNLINKED if is_removed else LINKED, data, version)


def rule_ran(summary: SummaryItem, *, rule: tuple[str, str, int], to: tuple[str, ...]) -> Event:
    """Tell that a rule (id, name, version) has left a ticket so, also to these destinations."""
    told = {field.name: getattr(summary, field.name) for field in FIELDS if field not in (ASSIGNEE, DESCRIPTION)}
    told |= {name: told[name] or None for name in OPTIONAL}
    told |= {"assignee": _person(summary.resolver, summary.resolver_name)}
    told |= {"requester": {"id": summary.requester, "name": summary.requester_name}}
    named = dict(zip(("id", "name", "version"), rule, strict=True))
    return Event(RULE_RAN, {"number": int(summary.number), "rule": named, **told}, int(summary.version), to)


def due_soon(number: int, *, target: str, due_at: str) -> Event:
    return Event(DUE_SOON, {"number": number, "target": target, "due_at": due_at}, 1, (NOTICE,))


def breached(number: int, *, target: str, due_at: str) -> Event:
    return Event(BREACHED, {"number": number, "target": target, "due_at": due_at}, 1, (NOTICE,))


def redacted(tenant: TenantContext, number: int, *, version: int) -> Event:
    """Tell that words were taken out of a ticket, and not which."""
    return Event(REDACTED, {"number": number, "by": _me(tenant)}, version)


def comment_edited(tenant: TenantContext, number: int, *, entry: ActivityItem, body: str, version: int) -> Event:
    """Tell that a comment or an internal note has this text now."""
    kind = NOTE_EDITED if entry.kind == "note" else COMMENT_EDITED
    return Event(kind, _of_entry(tenant, number, entry) | {"body": body}, version)


def comment_deleted(tenant: TenantContext, number: int, *, entry: ActivityItem, version: int) -> Event:
    return Event(NOTE_DELETED if entry.kind == "note" else COMMENT_DELETED, _of_entry(tenant, number, entry), version)


def _of_entry(tenant: TenantContext, number: int, entry: ActivityItem) -> Json:
    return {"number": number, "entry": entry_id(entry.sk), "at": entry.at, "by": _me(tenant)}


def link_asked(number: int, *, person: str, link: str) -> Event:
    return Event(LINK_ASKED, {"number": number, "person": person, "link": link}, 1, (REPLY,))


def revised(
    tenant: TenantContext,
    *,
    number: int,
    version: int,
    changes: Iterable[tuple[str, str, str]],
    resolver: tuple[str, str],
    description: str | None = None,
) -> list[Event]:
    """Tell of changed fields: field, text before, text after. `version` is what they made of the ticket.

    `resolver` are the ids of whoever had it and of whoever has it; `description` is the new one in full.
    """
    events, others = [], []
    for name, before, after in changes:
        told: Json = {"number": number, "before": before, "after": after, "by": _me(tenant)}
        if name == STATUS.name:
            events.append(Event(STATUS_CHANGED, told, version))
        elif name == ASSIGNEE.name:
            people = {"before": _person(resolver[0], before), "after": _person(resolver[1], after)}
            is_news = resolver[1] not in ("", tenant.user_id)
            events.append(Event(ASSIGNED, told | people, version, (NOTICE,) if is_news else ()))
        else:
            others.append(_change(name, before, after, description))
    if others:
        events.append(Event(CHANGED, {"number": number, "changes": others, "by": _me(tenant)}, version))
    return events


def came_due(tenant: TenantContext, number: int, *, version: int, to: str) -> Event:
    """Tell that a snooze is over, first of all to the member who snoozed the ticket."""
    return Event(CAME_DUE, {"number": number, "to": to or None}, version, (NOTICE,))


def subject(number: int) -> str:
    return f"ticket/{number}"


def _change(name: str, before: str, after: str, description: str | None) -> Json:
    if name == DESCRIPTION.name:
        return {"field": name, "before": None, "after": description}
    values = [BY_NAME[name].from_text(text) if name in BY_NAME else text for text in (before, after)]
    can_be_null = name in OPTIONAL or name.startswith(CUSTOM_PREFIX)
    was, now = [value or None for value in values] if can_be_null else values
    return {"field": name, "before": was, "after": now}


def _person(user_id: str, name: str) -> Json | None:
    return {"id": user_id, "name": name} if user_id else None


def _me(tenant: TenantContext) -> Json:
    return {"id": tenant.user_id, "name": tenant.author_name}
