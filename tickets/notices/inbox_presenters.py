"""Prepare the inbox for its page."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from portal import clock
from tenants.membership.mail_choices import MailKind
from tenants.tenancy.context import TenantContext
from tickets.notices import inbox
from tickets.notices.inbox import InboxPage, TicketNotices
from tickets.ticket.fields import Status

_EXCERPT: Final = 160  # characters
_EVENTS: Final = 4  # of one ticket that are named


def inbox_page(
    tenant: TenantContext, page: InboxPage, *, kind: str, only_unread: bool, is_first: bool
) -> dict[str, Any]:
    """Return the values of the page. `all_unread` are the tickets that its button marks as read."""
    narrowed = ({"kind": kind} if kind else {}) | ({"unread": "1"} if only_unread else {})
    return {
        "tickets": [_ticket(one) for one in page.tickets],
        "all_unread": sorted(inbox.unread(tenant)),
        "is_first": is_first,
        "is_narrow": bool(narrowed),
        "only_unread": only_unread,
        "kind": kind,
        "kinds": [{"label": one.word, "value": one.value} for one in MailKind],
        "next_url": _address(narrowed | {"before": page.before}) if page.before else "",
        "first_url": _address(narrowed),
    }


def _address(params: dict[str, str]) -> str:
    return reverse("tickets:inbox") + (f"?{urlencode(params)}" if params else "")


def _ticket(one: TicketNotices) -> dict[str, Any]:
    words = [MailKind(row.kind).word if row.kind in list(MailKind) else _("News") for row in one.rows]
    counted = {word: words.count(word) for word in words}
    summary, latest = one.summary, one.latest
    excerpt = " ".join(latest.body.split()) if latest else ""
    return {
        "number": one.number,
        "is_unread": one.is_unread,
        "title": summary.title if summary else "",
        "is_gone": summary is None,
        "status": {"value": summary.status, "label": Status(summary.status).label} if summary else None,
        "at": clock.parse(one.rows[0].at) if one.rows else None,
        "events": [f"{word} ({many})" if many > 1 else word for word, many in counted.items()][:_EVENTS],
        "by": latest.author_name if latest else "",
        "excerpt": f"{excerpt[:_EXCERPT].rstrip()} \u2026" if len(excerpt) > _EXCERPT else excerpt,
        "url": reverse("tickets:ticket", args=[one.number]),
    }
