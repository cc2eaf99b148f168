"""Tickets as templates show them: items turned into labels, links and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal import clock
from portal.web import desk_prefix, locales
from portal.web.locales import stored_text
from tenants.tenancy.context import TenantContext
from tickets.attachments.presenters import FIELD, FileLine
from tickets.attachments.presenters import lines as file_lines
from tickets.attachments.scanning import READABLE
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import Definitions
from tickets.custom_fields.forms import defined_choices
from tickets.desk import changing, comment_changes, filters, letter_texts, timelines
from tickets.desk.changing import EditConflict, Present, TicketState, Wishes
from tickets.desk.forms import ChangeForm, TicketForm
from tickets.desk.timelines import TicketTimeline, is_opening, verb_shown
from tickets.desk_setup import setup
from tickets.live import page_tokens
from tickets.sla.presenters import DueLine, due_line, receipt_lines
from tickets.ticket import causes, due_marks, fields, stored
from tickets.ticket.fields import (
    ASSIGNEE,
    BY_NAME,
    CHOICES,
    CUSTOM,
    CUSTOM_PREFIX,
    DESCRIPTION,
    EDITED,
    FIELDS,
    MOVES,
    Status,
)
from tickets.ticket.stored import BOUNCED, COMPLAINED, HELD, SENT, ActivityItem, SummaryItem


class ShownChoice(NamedTuple):
    """The value of a field that has a few."""

    name: str
    field: str  # its label
    value: str
    label: str
    is_symbol: bool


class ListedTicket(NamedTuple):
    """A ticket in a list, and the head of its page."""

    number: int
    title: str
    status: str
    choices: dict[str, ShownChoice]  # the fields that have a few values
    tags: tuple[str, ...]
    hues: tuple[str, ...]  # of the tags, empty where no tag of the desk has a colour
    resolver: str
    resolver_name: str
    is_mine: bool
    requester_name: str
    created_at: datetime
    updated_at: datetime
    comment_count: int
    version: int
    url: str
    select_value: str
    description: str = ""
    kind: str = ""
    group: str = ""
    custom: Mapping[str, str] = MappingProxyType({})
    due: DueLine | None = None
    snoozed: str = ""  # "answer" or the stamp until which it is


def listed(tenant: TenantContext, item: SummaryItem, *, description: str = "", query: str = "") -> ListedTicket:
    of: dict[str, Any] = item.attribute_values  # attributes are descriptors, and a list reads a thousand of them
    number, version, status, resolver = int(of["number"]), int(of["version"]), of["status"], of["resolver"]
    return ListedTicket(
        number=number,
        title=of["title"],
        status=status,
        choices=_choices(locales.language(), *map(of.get, _CHOICE_NAMES)),
        tags=tuple(of["tags"]),
        hues=setup.hues(tenant, of["tags"]),
        resolver=resolver,
        resolver_name=of["resolver_name"],
        is_mine=bool(resolver) and resolver == tenant.user_id,
        requester_name=of["requester_name"],
        created_at=clock.parse(of["created_at"]),
        updated_at=clock.parse(changing.updated_at(tenant, item)),
        comment_count=int(of["comment_count"]),
        version=version,
        url=ticket_url(number) + query,
        select_value=TicketState.text(number, version, status, resolver),
        description=description,
        kind=of["kind"],
        group=of["group"],
        custom=of.get("custom") or {},
        due=due_line(due, status) if (due := of.get("due")) else None,
        snoozed=due_marks.snooze_text(due_marks.snoozed(due, status)) if (due := of.get("due")) else "",
    )


_CHOICE_NAMES: Final = tuple(choice.name for choice in CHOICES)


@lru_cache(maxsize=256)
def _choices(language: str, *values: str) -> dict[str, ShownChoice]:
    return {
        one.name: ShownChoice(one.name, one.label, value, one.shown(value), one.is_symbol)
        for one, value in zip(CHOICES, values, strict=True)
    }


# --- comments that are letters ---

_LABELS: Final = {
    HELD: gettext_noop("Waiting to be sent"),
    SENT: gettext_noop("Sent by mail"),
    BOUNCED: gettext_noop("Not delivered"),
    COMPLAINED: gettext_noop("Reported as unwanted"),
}
_FAILED: Final = (BOUNCED, COMPLAINED)


@dataclass(frozen=True)
class DeliveryLine:
    """The fate of a comment as a letter. `note` is a sentence that says why, "" where nothing needs one."""

    state: str
    label: str
    at: datetime
    note: str
    cc: str
    has_failed: bool


def delivery_line(item: ActivityItem) -> DeliveryLine | None:
    """Return what is known of the letter that a comment became; None where it became none."""
    if not item.delivery:
        return None
    return DeliveryLine(
        item.delivery,
        _(_LABELS.get(item.delivery, item.delivery)),
        clock.parse(item.delivery_at or item.at),
        stored_text(item.delivery_note or ""),
        ", ".join(item.cc or ()),
        item.delivery in _FAILED,
    )


def reply_facts(tenant: TenantContext, timeline: TicketTimeline) -> dict[str, Any]:
    """Return what the comment form says of the letter that it makes: nothing to read for it, it is read with the page.

    `undelivered` is the line of the last letter where that did not get through, and `cc` are the addresses of the last
    entry that had copies, or of the letter that the ticket came as.
    """
    summary, activity = timeline.summary, timeline.latest
    if not stored.is_requester(summary.requester):
        return {"letter_to": "", "undelivered": None, "cc": ""}
    lines = [line for line in map(delivery_line, activity) if line]
    entries = (_copies(item.cc, item.letter) for item in reversed(activity))
    copies = next((one for one in entries if one), _copies(None, timeline.letter))
    others = ", ".join(one for one in copies if not _is_own(tenant, one))
    last = lines[-1] if lines else None
    return {
        "letter_to": summary.requester_name,
        "undelivered": last if last and last.has_failed else None,
        "cc": others,
    }


def _copies(cc: Sequence[str] | None, letter: Any) -> list[str]:
    """Return the addresses that had a copy of a letter that went out, or of one that came in: not of one whose sender
    may be somebody else, who would read what the desk answers to the requester."""
    kept = letter.as_dict() if letter else {}
    is_doubtful = {letter_texts.UNCONFIRMED, letter_texts.OTHER_PERSON} & {*kept.get("marks", ())}
    return list(cc or (() if is_doubtful else kept.get("cc", ())))


def _is_own(tenant: TenantContext, address: str) -> bool:
    """Tell whether an address is one of those that every desk has, so that a copy would come back to it."""
    local, _, domain = address.lower().rpartition("@")
    return domain == settings.MAIL_DOMAIN and local.partition("+")[0] in (tenant.slug, "reply")


# --- entries and the page ---


@dataclass(frozen=True)
class FormerLine:
    """An earlier text of a comment, and who put another in its place."""

    body: str
    at: datetime
    by_name: str


class CommentState(NamedTuple):
    """Say what became of a comment: its last edit with the earlier texts for those who may read them, or its deletion.

    `url` begins the addresses at which an agent does something about it, "" where this person may do nothing.
    `reference` is its name there.
    """

    edited: FormerLine | None = None
    former: tuple[FormerLine, ...] = ()
    deleted_at: datetime | None = None
    deleted_by: str = ""
    url: str = ""
    reference: str = ""
    may_change: bool = False


AS_WRITTEN = CommentState()


def comment_state(item: ActivityItem, tenant: TenantContext | None, number: int, reference: str) -> CommentState:
    """Return what became of a comment of a ticket, as `tenant` may know it; without one nothing can be done about
    it."""
    of: dict[str, Any] = item.attribute_values
    if deleted_at := of.get("deleted_at"):
        return CommentState(deleted_at=clock.parse(deleted_at), deleted_by=of.get("deleted_by_name") or "")
    lines = tuple(FormerLine(one.body, clock.parse(one.at), one.by_name) for one in of.get("former_texts") or ())
    edited = lines[-1] if lines else None
    if tenant is None or not tenant.is_agent:
        return CommentState(edited)
    url, may_change = f"{ticket_url(number)}comments/{reference}/", comment_changes.may_change(tenant, item)
    return CommentState(edited, lines, url=url, reference=reference, may_change=may_change)


class TimelineEntry(NamedTuple):
    """One entry of a ticket's history.

    A text of somebody outside `is_plain`: in Markdown, a stranger could hide where a link leads. `source` is the number
    of the merged ticket that it came from, 0 for one of the ticket itself.
    """

    id: str
    kind: str
    author_name: str
    at: datetime
    body: str
    verb: str
    changes: list[dict[str, str]]
    delivery: DeliveryLine | None
    files: list[FileLine]
    letter: dict[str, Any] | None = None
    is_plain: bool = False
    receipt: dict[str, Any] | None = None
    state: CommentState = AS_WRITTEN
    source: int = 0
    why: tuple[str, str] | None = None  # the rule and its run that made it


def timeline_entry(
    item: ActivityItem, defined: Definitions, tenant: TenantContext | None = None, *, of_ticket: int = 0
) -> TimelineEntry:
    """Return an entry as `tenant` sees it; without one, as somebody who can do nothing about it. One of another ticket
    than `of_ticket`, where that is given, names the ticket."""
    of: dict[str, Any] = item.attribute_values  # attributes are descriptors, and a page reads hundreds of them
    changes = [defined.told(c.field, c.before, c.after) for c in of.get("changes") or ()]
    owner = stored.owner_of(of["pk"])
    number, reference = owner[1] if owner else 0, stored.entry_reference(of["sk"])
    is_comment = of["kind"] != "event" and not is_opening(item)
    return TimelineEntry(
        id=reference.rpartition("~")[2],
        kind=of["kind"],
        author_name=of["author_name"],
        at=clock.parse(of["at"]),
        body=of.get("body") or "",
        verb=verb_shown(of.get("verb") or ""),
        changes=changes,
        delivery=delivery_line(item) if of.get("delivery") else None,
        files=file_lines(number, of["files"]) if of.get("files") else [],
        letter=letter_line(of["letter"], is_agent=bool(tenant and tenant.is_agent), author=of["author"])
        if of.get("letter")
        else None,
        is_plain=of["kind"] == "event" or bool(of.get("letter")) or stored.is_requester(of["author"]),
        receipt=receipt_lines(of["receipt"]) if of.get("receipt") else None,
        state=comment_state(item, tenant, number, reference) if is_comment else AS_WRITTEN,
        source=number if of_ticket and number != of_ticket else 0,
        why=causes.run_of(of["pk"], of["cause"]) if of.get("cause") and tenant and tenant.is_agent else None,
    )


def letter_line(kept: Any, *, is_agent: bool, author: str) -> dict[str, Any] | None:
    """Return what a description or comment shows of the letter that it came as. Agents find the letter itself, and can
    block its sender if that is somebody outside the desk."""
    if not kept:
        return None
    of: dict[str, Any] = kept.as_dict()
    marks = of.get("marks", [])
    can_block = is_agent and "digest" in of and stored.is_requester(author)
    return {
        "warnings": [*letter_texts.warnings(marks)],
        "checks": [*letter_texts.checks(marks)],
        "folded": of.get("folded", ""),
        "cc": of.get("cc", []),
        "files": letter_texts.values(marks, letter_texts.FILE),
        "remarks": [*map(stored_text, letter_texts.values(marks, letter_texts.REMARK))],
        "way": _way(of, marks),
        "url": reverse("tickets:letter", args=[of["digest"]]) if is_agent and "digest" in of else "",
        "block_url": reverse("tickets:letter_block", args=[of["digest"]]) if can_block else "",
    }


# For how long a ticket can be snoozed by a click; snoozing/views.py says what each means.
SNOOZES: Final = {
    "hours": gettext_noop("For 3 hours"),
    "tomorrow": gettext_noop("Until tomorrow, 9:00"),
    "monday": gettext_noop("Until Monday, 9:00"),
    "follow_up": gettext_noop("Follow up in 3 days"),
    due_marks.UNTIL_ANSWER: gettext_noop("Until an answer"),
}


def ticket_page(tenant: TenantContext, timeline: TicketTimeline, *, wanted: str | None = None) -> dict[str, Any]:
    """Return what the page of a ticket shows, but for its comment form. `wanted` is the sort key of the entry that the
    address asks for."""
    is_latest = not timeline.later
    summary, here, defined = timeline.summary, ticket_url(int(timeline.summary.number)), definitions.of(tenant)
    merged, colours = [int(one) for one in summary.merged or ()], setup.colours_of(tenant)
    of_ticket = int(summary.number) if merged else 0
    activity = [entry for entry in timeline.activity if not timelines.is_other_side(entry, merged)]
    is_here = any(entry.sk == wanted for entry in activity)
    return {
        "ticket": listed(tenant, summary, description=timeline.description),
        "tag_links": [
            {"name": tag, "url": queue_url(status="any", tag=tag), "hue": colours.get(tag, "")} for tag in summary.tags
        ],
        "merged": merged,
        "links": [link_line(one.kind, int(one.number)) for one in timeline.links],
        "activity": [timeline_entry(a, defined, tenant, of_ticket=of_ticket) for a in activity],
        "earlier_url": f"{here}?before={timeline.earlier}" if timeline.earlier else None,
        "wanted": stored.entry_id(wanted) if wanted and is_here else None,
        "later_url": entry_url(int(summary.number), activity[-1].sk) if activity and not is_latest else None,
        "latest_url": None if is_latest else here,
        **_seen(tenant, summary, timeline.latest[-1].at if timeline.latest else ""),
        "custom": defined.shown_values(summary.kind, summary.custom),
        "outside": _outside(tenant, summary),
        "statuses": _statuses(summary),
        "can_resolve": Status.RESOLVED in MOVES[Status(summary.status)],
        "quick": [(one, one.offered(getattr(summary, one.name))) for one in fields.CHANGED if one is not fields.STATUS],
        "group_name": defined.name(fields.GROUP, summary.group),
        "groups": defined_choices(defined, fields.GROUP, summary.group) if defined.groups else [],
        "can_write": tenant.is_agent and not summary.spam_at,
        "spam_at": clock.parse(summary.spam_at) if summary.spam_at else None,
        "reply": reply_facts(tenant, timeline),
        "hears": summary.hears(tenant.user_id),
        "follower_count": len(summary.followers or ()),
        "snoozes": {choice: _(label) for choice, label in SNOOZES.items()},
        "files": file_lines(int(summary.number), timeline.files) if timeline.files else [],
        "has_files": any(
            file.state in READABLE
            for files in (timeline.files, *(e.attribute_values.get("files") for e in timeline.activity))
            for file in files or ()
        ),
        "attached": FIELD,
        "letter": letter_line(timeline.letter, is_agent=tenant.is_agent, author=summary.requester),
    }


def _way(kept: dict[str, Any], marks: Sequence[str]) -> str:
    way = _("By mail") if "digest" in kept else _("By the public form")
    return way if letter_texts.SPLIT not in marks else _("A comment of another ticket")


@dataclass(frozen=True)
class LinkLine:
    """A link to another ticket; `title` and `status` are "" where the other one was not read."""

    kind: str
    label: str
    number: int
    url: str
    title: str = ""
    status: str = ""
    status_label: str = ""


def link_line(kind: str, number: int, other: SummaryItem | None = None) -> LinkLine:
    """Return a link as pages show it, with what is known of the other ticket."""
    line = LinkLine(kind, _(stored.LINK_LABELS.get(kind, kind)), number, ticket_url(number))
    if other is None:
        return line
    return replace(line, title=other.title, status=other.status, status_label=Status(other.status).label)


def _outside(tenant: TenantContext, summary: SummaryItem) -> dict[str, str] | None:
    """Return where agents read more of a requester outside the desk, None of anybody else."""
    if not (tenant.is_agent and stored.is_requester(summary.requester)):
        return None
    return {
        "url": reverse("tickets:requester", args=[summary.requester]),
        "beside_url": reverse("tickets:requester_beside", args=[summary.requester, int(summary.number)]),
    }


def _statuses(summary: SummaryItem) -> list[dict[str, Any]]:
    """Return every status in its fixed place, so that no button moves under the pointer when the status changes."""
    moves = MOVES[Status(summary.status)]
    return [
        {"value": s.value, "label": s.label, "is_now": s.value == summary.status, "can_be": s in moves} for s in Status
    ]


def news(tenant: TenantContext, summary: SummaryItem, entries: list[ActivityItem], seen: str) -> dict[str, Any]:
    """Return what an open page is shown of what came after the moment `seen`."""
    later = {
        "ticket": listed(tenant, summary),
        "news": [timeline_entry(entry, definitions.of(tenant), tenant) for entry in entries],
        "is_updated": True,
        "can_write": tenant.is_agent,
    }
    return later | _seen(tenant, summary, entries[-1].at if entries else "", since=seen)


def _seen(tenant: TenantContext, summary: SummaryItem, last: str, since: str = "") -> dict[str, Any]:
    """Return up to when a page knows the ticket, and where it asks for more. An entry may come after its change."""
    seen_at = max(changing.updated_at(tenant, summary), last)
    query = urlencode({"seen": since or seen_at, "shown": seen_at})
    address = f"{ticket_url(int(summary.number))}updates/"
    return {
        "seen_at": seen_at,
        "updates_url": f"{address}?{query}" if tenant.is_agent else None,
        "live_token": page_tokens.token(tenant, int(summary.number), seen_at),
    }


def editable(summary: SummaryItem, description: str) -> dict[str, Any]:
    values = values_of(summary, description)
    typed = {field.name: field.typed(values[field.name]) for field in EDITED if field is not CUSTOM}
    return {**typed, **values[CUSTOM.name], "version": int(summary.version)}


def values_of(summary: SummaryItem, description: str) -> dict[str, Any]:
    """Return the stored values of a ticket by the names of its fields, of the assignee the name."""
    stored = {field.name: getattr(summary, field.name) for field in FIELDS if field is not DESCRIPTION}
    return stored | {DESCRIPTION.name: description, ASSIGNEE.name: summary.resolver_name}


# Beside the filters, which stand in front of the last three.
def ticket_url(number: int) -> str:
    return f"{tickets_url()}{number}/"


def entry_url(number: int, activity_key: str) -> str:
    """Return the address of a ticket's page that shows the entry with this sort key, however old it is."""
    asked = urlencode({"entry": stored.entry_reference(activity_key)})
    return f"{ticket_url(number)}?{asked}#entry-{stored.entry_id(activity_key)}"


def tickets_url() -> str:
    """Return what stands in front of the number in the addresses of tickets of the desk in use: the queue's."""
    return desk_prefix.address("tickets:queue")


def queue_url(**params: str | None) -> str:
    """Return the queue with these filters in its address; None and "" leave one out. The words of each: filters.py.

    `status` is a status, "unresolved" or "any"; `resolver` "me", "none" or a user id, whose `name` is shown until a
    row says it; days are in UTC: "2026-11-20", "2026-11-01..2026-11-07", "..2026-11-20", "2026-11-01..". `sort` is a
    word of ORDERS. `after`: a cursor, and `place` that of the first row behind it.
    """
    return tickets_url() + filters.query(tuple(params.items()))


# --- two versions of a ticket as the conflict page shows them ---


Texts = dict[str, str]  # by field, as a person reads them


def conflict_page(tenant: TenantContext, conflict: EditConflict, *, mine: Texts, theirs: Texts) -> dict[str, Any]:
    """Return the fields in question side by side, and who made the other version and when."""
    entries = conflict.since.entries
    authors = {entry.author for entry in entries}
    names = list(dict.fromkeys(entry.author_name for entry in entries if entry.author != tenant.user_id))
    return {
        "ticket": listed(tenant, conflict.stored),
        "fields": [
            {
                "label": label,
                "mine": mine[name],
                "theirs": theirs.get(name, ""),
                "differs": mine[name] != theirs.get(name, "")
                and (not conflict.since.is_known or name in conflict.since.before),
            }
            for name, label in definitions.of(tenant).labels(mine)
            if name in mine
        ],
        "by_oneself": authors == {tenant.user_id},
        "by": _(" and ").join(names),
        "when_changed": clock.parse(entries[0].at) if entries else None,
    }


def left_alone(form: TicketForm, conflict: EditConflict) -> dict[str, str]:
    """Return what others made of the fields that the author of this form left as they were."""
    before, now = conflict.since.before, values_of(conflict.stored, conflict.description)
    left = {
        field.name: field.typed(now[field.name])
        for field in EDITED
        if field is not CUSTOM
        if field.name in before and field.typed(form.cleaned_data[field.name]) == before[field.name]
    }
    sent = CUSTOM.by_change(form.values[CUSTOM.name])
    own = [name.removeprefix(CUSTOM_PREFIX) for name, text in sent.items() if text == before.get(name)]
    return left | {field_id: now[CUSTOM.name].get(field_id, "") for field_id in own}


def stored_texts(tenant: TenantContext, stored: SummaryItem, description: str = "") -> Texts:
    """Return all fields of the stored ticket, custom ones by the names of their changes."""
    return _texts(tenant, values_of(stored, description))


def sent_texts(tenant: TenantContext, form: TicketForm | ChangeForm) -> Texts:
    """Return the fields that a form changes, of an assignee the id."""
    return _texts(tenant, form.values)


def _texts(tenant: TenantContext, values: Mapping[str, Any]) -> Texts:
    shown = {name: BY_NAME[name].shown(value) for name, value in values.items() if name != CUSTOM.name}
    return shown | definitions.of(tenant).texts(values)


# --- after a change ---

_NAMED: Final = 5  # sentences about single tickets


def change_text(tenant: TenantContext, wishes: Wishes, written: Present) -> str:
    """Return what a quick change has made of a ticket, for its message."""
    told = {name: BY_NAME[name].shown(value).lower() for name, value in wishes.values.items()}
    told |= {name: text or _("none") for name, text in definitions.of(tenant).texts(wishes.values).items()}
    if ASSIGNEE.name in told:
        told[ASSIGNEE.name] = written.resolver_name or _("nobody")
    said = _("%(field)s is now %(value)s.")
    return " ".join(said % {"field": BY_NAME[name].label, "value": text} for name, text in told.items())


def held_text(entry: ActivityItem, hold: int) -> str:
    """Return the message after a comment that others hear of when the hold is over."""
    if entry.delivery:
        return _("Your reply leaves in %(num)s seconds.") % {"num": hold}
    return _("Your note is added.") if entry.kind == "note" else _("Your comment is added.")


def shortened(sentences: Sequence[str]) -> list[str]:
    """Return the first sentences, and one that counts the others."""
    rest = len(sentences) - _NAMED
    more = ngettext(
        "%(num)s more ticket was left as they are.", "%(num)s more tickets were left as they are.", max(rest, 1)
    )
    return [*sentences[:_NAMED], more % {"num": rest}] if rest > 0 else [*sentences]
