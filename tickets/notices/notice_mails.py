"""Write the mail to a member about what concerns them."""

from __future__ import annotations

from email.utils import formataddr, parseaddr
from typing import Any, Final

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.mail.outbox_backend import MailContent
from portal import plain_text
from portal.mailing.letters import MARKER
from portal.web import desk_prefix, locales
from tenants.membership.mail_choices import MailKind
from tenants.tenancy.request import page_for_mail
from tickets.notices.digest import Digest, TicketNews
from tickets.notices.following import MuteLink
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import ActivityItem, is_requester

_TEXT_LIMIT: Final = 3_000  # characters of one entry
_NAME_LIMIT: Final = 60  # characters of a name
_TITLE_LIMIT: Final = 120
_SAID: Final = {
    MailKind.ASSIGNED: gettext_noop("This ticket is assigned to you now."),
    MailKind.DUE: gettext_noop("This ticket waited for a time that has come."),
    MailKind.BREACHED: gettext_noop("A target of this ticket is missed, or soon will be."),
}
_WHAT: Final = {
    "comment": gettext_noop("commented"),
    "note": gettext_noop("added an internal note"),
    "event": gettext_noop("rated this ticket as bad"),
}


def digest(told: Digest) -> MailContent:
    """Return the mail. Its text and its HTML say the same."""
    with locales.shown_in(told.person.locale_at(told.tenant)):
        return _written(told)


def _written(told: Digest) -> MailContent:
    tenant, person = told.tenant, told.person
    desk = plain_text.named(tenant.name, limit=_NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        tickets = [_ticket(told, news) for news in told.tickets]
        kinds = [
            {"label": kind.label, "url": _mute_page(MuteLink(tenant.tenant_id, person.id, kind=kind))}
            for kind in told.kinds
        ]
        name = plain_text.named(person.name, limit=_NAME_LIMIT)
        marker = MARKER if any(news.answer_to for news in told.tickets) else ""
        page = {"marker": marker, "desk": desk, "name": name, "tickets": tickets, "more": told.more, "kinds": kinds}
        text, html = (render_to_string(f"notices/mail/digest.{ending}", page) for ending in ("txt", "html"))
    alone = tickets[0] if len(tickets) == 1 else None
    return MailContent(
        sender=formataddr((desk, parseaddr(settings.DEFAULT_FROM_EMAIL)[1])),
        to=[person.email],
        subject=f"[{desk}] #{alone['number']} {alone['title']}"
        if alone
        else _("[%(desk)s] News of %(count)s tickets") % {"desk": desk, "count": len(tickets)},
        body=text,
        alternatives=[[html, "text/html"]],
        reply_to=[alone["answer_to"]] if alone and alone["answer_to"] else [],
        headers=_headers(alone["mute_url"] if alone else kinds[0]["url"]),
    )


def _headers(unsubscribe: str) -> dict[str, str]:
    """Return the headers by which mail programs know a notice. Sources: RFC 3834, RFC 8058."""
    headers = {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}
    if unsubscribe.startswith("http"):
        headers |= {"List-Unsubscribe": f"<{unsubscribe}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    return headers


def _ticket(told: Digest, news: TicketNews) -> dict[str, Any]:
    summary, number = news.summary, int(news.summary.number)
    name = plain_text.named(summary.requester_name, limit=_NAME_LIMIT)
    return {
        "number": number,
        "title": plain_text.without_controls(summary.title, limit=_TITLE_LIMIT),
        "facts": _("%(status)s · %(priority)s · requested by %(name)s")
        % {"status": Status(summary.status).label, "priority": Priority(summary.priority).label, "name": name},
        "url": page_for_mail(reverse("tickets:ticket", args=[number])),
        "mute_url": _mute_page(MuteLink(told.tenant.tenant_id, told.person.id, number=number)),
        "said": [_(_SAID[kind]) if kind in _SAID else kind.word for kind in news.said],
        "has_note": any(one.has_note for one in told.tickets),
        "answer_to": news.answer_to,
        "entries": [_entry(entry) for entry in news.entries],
    }


def _entry(entry: ActivityItem) -> dict[str, Any]:
    """Return an entry. The text of somebody outside is shown as it is, as on the page: in Markdown a stranger could
    hide where a link leads."""
    text = entry.body if len(entry.body) <= _TEXT_LIMIT else f"{entry.body[:_TEXT_LIMIT].rstrip()} …"
    return {
        "by": plain_text.named(entry.author_name, limit=_NAME_LIMIT),
        "what": _(_WHAT[entry.kind]),
        "text": text,
        "is_plain": bool(entry.letter) or is_requester(entry.author),
    }


def _mute_page(link: MuteLink) -> str:
    return page_for_mail(reverse("tickets:mute", args=[link.token]))
