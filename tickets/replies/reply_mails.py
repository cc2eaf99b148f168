"""Write letters to requesters, as text and as HTML: an agent's answer, the acknowledgement of a new ticket, a link.

They are rendered of public entries alone; no stored item comes here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import css_inline
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from portal import clock, plain_text
from portal.mailing.letters import MARKERS
from portal.web import markdown
from portal.web.guest_pages import known_language
from tenants.tenancy.request import page_for_mail
from tickets.replies.mail_settings import ACKNOWLEDGEMENT, MailSettings
from tickets.replies.public_entries import PublicEntry
from tickets.replies.ticket_links import TicketLink
from tickets.ticket.fields import Rating

HISTORY_BYTES: Final = 64 * 1024  # of quoted text; older messages are left out
_inliner: Final = css_inline.CSSInliner(load_remote_stylesheets=False)  # a template never names one


@dataclass(frozen=True)
class LetterText:
    """Hold what a letter says: its subject, and the same content as text and as HTML."""

    subject: str
    text: str
    html: str


def answer(
    *,
    desk: str,
    settings: MailSettings,
    number: int,
    title: str,
    entry: PublicEntry,
    earlier: Sequence[PublicEntry],
    left_out: Sequence[str] = (),
    link: TicketLink | None = None,
    language: str = "",
    asks_for_rating: bool = False,
) -> LetterText:
    """Write an agent's answer. `earlier` are the messages before it, the newest first; the desk says how many go along.

    `desk` is the name of the desk, `left_out` are the names of files that the letter has no room for.
    `link` leads to the ticket, and where the desk `asks_for_rating` to its form. All words but the desk's own are in
    the `language` of the requester.
    """
    quoted = _fitting([one for one in earlier if one.body.strip()][: settings.history])  # some are files alone
    body = entry.body
    if left_out:
        with translation.override(known_language(language)):
            not_attached = _("Not attached: %(names)s. Please ask for it in another way.")
        body += "\n\n" + not_attached % {"names": ", ".join(left_out)}
    links = _links(link, language, asks_for_rating=asks_for_rating)
    return _letter(desk, settings, number, title, body=body, quoted=quoted, links=links, language=language)


def acknowledgement(
    *, desk: str, settings: MailSettings, number: int, title: str, link: TicketLink | None = None, language: str = ""
) -> LetterText:
    """Write that a message has arrived. It repeats nothing of it: an address may be forged, and would be sent that.
    The title stays, so that mail programs show one conversation, and no program makes a link of it."""
    shown = plain_text.unlinked(title)
    with translation.override(known_language(language)):
        body = settings.acknowledgement or _(ACKNOWLEDGEMENT)
    links = _links(link, language)
    return _letter(desk, settings, number, shown, body=body, quoted=[], links=links, language=language)


def link_letter(
    *, desk: str, settings: MailSettings, number: int, title: str, link: TicketLink | None = None, language: str = ""
) -> LetterText:
    """Write the letter with the link that a requester has asked for on the page of a ticket."""
    with translation.override(known_language(language)):
        body = _("You have asked for this link. If you have not, ignore this message: nobody else gets the link.")
    shown, links = plain_text.unlinked(title), _links(link, language)
    return _letter(desk, settings, number, shown, body=body, quoted=[], links=links, language=language)


@dataclass(frozen=True)
class _Link:
    """A line of a letter that leads to a page."""

    label: str
    url: str


def _links(link: TicketLink | None, language: str, *, asks_for_rating: bool = False) -> list[_Link]:
    """Return the lines with links, in the requester's language. Opening one changes nothing: mail scanners do so."""
    if link is None:
        return []
    with translation.override(known_language(language)):
        if link.is_to_all:
            url = page_for_mail(reverse("tickets:r_all", args=[link.token]))
            return [_Link(_("All your requests, for the next 30 minutes:"), url)]
        url = page_for_mail(reverse("tickets:r_ticket", args=[link.token]))
        shown = [_Link(_("Read and answer this request on its page:"), url)]
        if asks_for_rating:
            shown.append(_Link(_("Were we of help? Good:"), f"{url}?rating={Rating.GOOD}#rating"))
            shown.append(_Link(_("Or bad:"), f"{url}?rating={Rating.BAD}#rating"))
        return shown


def _letter(
    desk: str,
    settings: MailSettings,
    number: int,
    title: str,
    *,
    body: str,
    quoted: list[PublicEntry],
    links: Sequence[_Link],
    language: str,
) -> LetterText:
    known = known_language(language)
    page: dict[str, Any] = {
        "language": known,
        "marker": MARKERS[known],
        "body": markdown.render(body),
        "signature": settings.signature or desk,
        "number": number,
        "desk": desk,
        "links": links,
        "quoted": [
            {"wrote": _attribution(one, known), "body": _shown(one), "is_plain": one.is_plain} for one in quoted
        ],
    }
    html = _inliner.inline(render_to_string("replies/mail/letter.html", page))
    led = [f"{one.label}\n{one.url}" for one in links]
    sign = f"-- \n{settings.signature or desk}"
    text = "\n\n".join([f"-- {MARKERS[known]} --", body.strip(), *led, sign, *(_quote(one, known) for one in quoted)])
    with translation.override(known):
        return LetterText(subject(number, title), text + "\n", html)


def subject(number: int, title: str) -> str:
    """Return the subject of all letters about a ticket, so that mail programs show them as one conversation."""
    shown = re.sub(r"(?i)^(?:(?:re|aw|fw|fwd|wg)\s*:\s*)+", "", plain_text.without_controls(title, limit=150))
    unnamed = _("Your message")
    return f"Re: {shown or unnamed} [#{number}]"


def _shown(entry: PublicEntry) -> str:
    """Return the HTML of a message, or the text itself where it is plain."""
    return entry.body.strip() if entry.is_plain else markdown.render(entry.body)


def _fitting(entries: Sequence[PublicEntry]) -> list[PublicEntry]:
    kept, size = [], 0
    for one in entries:
        size += len(one.body.encode())
        if size > HISTORY_BYTES:
            break
        kept.append(one)
    return kept


def _attribution(entry: PublicEntry, language: str) -> str:
    """Return the line above a quoted message, of a form by which programs know it."""
    when = clock.parse(entry.at).strftime("%Y-%m-%d %H:%M UTC")
    with translation.override(language):
        return _("On %(when)s, %(name)s wrote:") % {"when": when, "name": entry.author_name}


def _quote(entry: PublicEntry, language: str) -> str:
    lines = "\n".join(f"> {line}".rstrip() for line in entry.body.strip().split("\n"))
    return f"{_attribution(entry, language)}\n{lines}"
