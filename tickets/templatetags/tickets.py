"""The small pieces that stand many times on a page: in every row of a list, in every entry of a ticket's activity.

Tags and not partials: a page of fifty rows would include a partial some three hundred times, which costs more than all
the rest of the page.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.plain_text import amount
from portal.templatetags.portal import hue, icon, initials, markdown, when
from tickets.desk.ticket_presenters import ListedTicket, TimelineEntry, tickets_url

register = template.Library()

# A number of a ticket, as people write it, and the pieces of safe HTML: tags, attributes with what they hold, and text.
_NUMBER = re.compile(r"(?<![\w&/#])#([1-9]\d{0,14})(?!\w)")
_PIECES = re.compile(r"""(</?(\w+)(?:[^>"']|"[^"]*"|'[^']*')*>)""")
_VERBATIM = frozenset({"a", "code", "pre"})


@register.filter
def ticket_text(text: str) -> SafeString:
    """Return Markdown as safe HTML, in which #176 is a link to that ticket of the same desk."""
    return _linked(text, tickets_url() if "#" in text else "")


@lru_cache(maxsize=512)
def _linked(text: str, tickets_url: str) -> SafeString:
    html = markdown(text)
    if "#" not in html:
        return html
    parts, verbatim, at = [], 0, 0
    for piece in _PIECES.finditer(html):
        parts += [_with_links(html[at : piece.start()], tickets_url, verbatim), piece[0]]
        if piece[2] in _VERBATIM:
            verbatim += -1 if piece[0].startswith("</") else 1
        at = piece.end()
    parts.append(_with_links(html[at:], tickets_url, verbatim))
    return mark_safe("".join(parts))  # noqa: S308  # safe HTML, into which only addresses of ours were put


def _with_links(text: str, tickets_url: str, verbatim: int) -> str:
    return text if verbatim else _NUMBER.sub(rf'<a href="{tickets_url}\1/">#\1</a>', text)


@register.simple_tag
@lru_cache(maxsize=64)
def priority(value: str, label: str) -> SafeString:
    return format_html('<span class="priority priority-{}">{}<span>{}</span></span>', value, icon(value), label)


@register.simple_tag
@lru_cache(maxsize=64)
def status(value: str, label: str) -> SafeString:
    return format_html('<span class="badge badge-{}">{}{}</span>', value, icon(value), label)


@register.simple_tag
@lru_cache(maxsize=4096)
def person(name: str, is_me: bool, short: bool = False) -> SafeString:
    """Return a person with an avatar; nobody for an empty name. `short` says only "You" for oneself."""
    if not name:
        return format_html(
            '<span class="person"><span class="avatar avatar-none" aria-hidden="true"></span>'
            '<span class="person-name muted">{}</span></span>',
            "Unassigned",
        )
    shown = ("You" if short else f"{name} (you)") if is_me else name
    return format_html(
        '<span class="person"><span class="avatar hue-{}" aria-hidden="true">{}</span>'
        '<span class="person-name" title="{}" dir="auto">{}</span></span>',
        hue(name),
        initials(name),
        name,
        shown,
    )


@register.simple_tag
def activity_entry(entry: TimelineEntry) -> SafeString:
    """Return an entry of a ticket's activity: an event as one line, a comment or note as an article."""
    if entry.kind == "event":
        return format_html(
            '<li class="event" id="entry-{}">{}<p class="event-text"><b dir="auto">{}</b>{}{} · {}</p></li>',
            entry.id,
            icon("event"),
            entry.author_name,
            "" if entry.verb in ("", "changed") else f" {entry.verb}",
            format_html_join("", '<span class="event-change"> {}</span>', ((change,) for change in _changes(entry))),
            when(entry.at),
        )
    is_note = entry.kind == "note"
    return format_html(
        '<li id="entry-{}">{}<a href="#entry-{}">{}</a>{}</div>'
        '<div class="prose" dir="auto" data-folds>{}</div></article></li>',
        entry.id,
        _entry_head(entry.author_name, is_note),
        entry.id,
        when(entry.at),
        format_html('<span class="entry-kind">{}Internal note</span>', icon("note")) if is_note else "",
        ticket_text(entry.body),
    )


@register.simple_tag
def news_entry(entry: TimelineEntry) -> SafeString:
    """Return an entry as it is shown beside what somebody writes at that moment."""
    verb = entry.verb if entry.verb != "changed" else ""
    said = format_html_join("", " {}", ((change,) for change in _changes(entry)))
    what = {"note": "wrote an internal note", "comment": "commented"}.get(entry.kind) or format_html("{}{}", verb, said)
    return format_html(
        '<li><p><b dir="auto">{}</b> {} · {}</p>{}</li>',
        entry.author_name,
        what,
        when(entry.at),
        format_html('<div class="prose" dir="auto">{}</div>', ticket_text(entry.body)) if entry.body else "",
    )


@lru_cache(maxsize=4096)
def _entry_head(author_name: str, is_note: bool) -> SafeString:
    return format_html(
        '<article class="entry{}" aria-label="{} by {}"><div class="entry-head">'
        '<span class="avatar hue-{}" aria-hidden="true">{}</span><b dir="auto">{}</b>',
        " entry-note" if is_note else "",
        "Internal note" if is_note else "Comment",
        author_name,
        hue(author_name),
        initials(author_name),
        author_name,
    )


def _changes(entry: TimelineEntry) -> list[SafeString]:
    """Say what an event changed, each change as the rest of a sentence that begins with the author's name."""
    return [
        _change(change["label"].lower(), change["before"], change["after"], by=entry.author_name)
        for change in entry.changes
    ]


def _change(label: str, before: str, after: str, *, by: str) -> SafeString:
    if label == "assignee":
        if not after:
            return format_html('unassigned <del dir="auto">{}</del>', before)
        if after == by and not before:
            return SafeString("assigned it to themselves")
        if not before:
            return format_html('assigned it to <ins dir="auto">{}</ins>', after)
        return format_html('reassigned it from <del dir="auto">{}</del> to <ins dir="auto">{}</ins>', before, after)
    if not before:
        return format_html('added {} <ins dir="auto">{}</ins>', label, after)
    if not after:
        return format_html('removed {} <del dir="auto">{}</del>', label, before)
    return format_html('changed {} from <del dir="auto">{}</del> to <ins dir="auto">{}</ins>', label, before, after)


@register.simple_tag
def ticket_row(row: ListedTicket, can_write: bool, is_mixed: bool, tag_url: str) -> SafeString:
    """Return a ticket as a row of the queue. `is_mixed` shows its status; `tag_url` ends where the name of a tag
    belongs."""
    cells = [
        format_html(_CHECK, row.select_value, row.number) if can_write else "",
        format_html('<td class="cell-number" role="cell">#{}</td>', row.number),
        format_html(_STATUS, icon(row.status), row.labels["status"]) if is_mixed else "",
        format_html('<td class="cell-priority" role="cell">{}</td>', priority(row.priority, row.labels["priority"])),
        format_html(_TITLE, row.url, row.title, _row_tags(tuple(row.tags), tag_url) if row.tags else ""),
        format_html('<td class="cell-requester clip" role="cell" dir="auto">{}</td>', row.requester_name),
        format_html('<td class="cell-resolver" role="cell">{}</td>', person(row.resolver_name, row.is_mine, True)),
        format_html('<td class="cell-comments" role="cell">{}</td>', _row_count(row.comment_count)),
        format_html('<td class="cell-when" role="cell">{}</td>', when(row.updated_at)),
    ]
    return format_html('<tr class="row" role="row" data-row>{}</tr>', mark_safe("".join(cells)))  # noqa: S308  # safe each


_CHECK = (
    '<td class="cell-check" role="cell"><label class="check">'
    '<input type="checkbox" name="tickets" value="{}" aria-label="Select #{}"></label></td>'
)
_STATUS = '<td class="cell-status" role="cell">{}<span>{}</span></td>'
_TITLE = (
    '<th class="cell-title" role="rowheader" scope="row"><div class="cell-title-line">'
    '<a class="row-link" href="{}" data-row-link dir="auto">{}</a>{}</div></th>'
)
_MORE = '<span class="tag tag-more if-{}" title="{}">+{}<span class="visually-hidden"> more tags</span></span>'
_WIDE, _NARROW = 3, 2  # tags that there is room for


@lru_cache(maxsize=1024)
def _row_tags(tags: tuple[str, ...], tag_url: str) -> SafeString:
    """Return the first tags as links to the tickets that have them, and how many more there are."""
    links = ((tag_url + quote(tag, safe=""), tag) for tag in tags[:_WIDE])
    shown = format_html_join("", '<a class="tag" href="{}" dir="auto">{}</a> ', links)
    for room, what in ((_WIDE, "wide"), (_NARROW, "narrow")):
        if len(tags) > room:
            shown += format_html(_MORE, what, ", ".join(tags[room:]), len(tags) - room)
    return format_html('<span class="tags" hx-boost="true">{}</span>', shown)


@lru_cache(maxsize=1024)
def _row_count(comments: int) -> SafeString | str:
    if not comments:
        return ""
    noun = amount(comments, "comment").partition(" ")[2]
    return format_html(
        '<span class="count">{}{}<span class="visually-hidden"> {}</span></span>',
        icon("comment"),
        comments,
        noun,
    )
