"""Write letters to requesters, as text and as HTML: an agent's answer, the acknowledgement of a new ticket, a link.

They are rendered of public entries alone; no stored item comes here. Their own words are in the first of the
`languages` that the pages of people outside have, too; a desk's texts stay as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import css_inline
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from portal import clock, plain_text
from portal.web import locales, markdown
from portal.web.locales import in_language, known_language
from tenants.tenancy.request import page_for_mail
from tickets.replies.mail_settings import ACKNOWLEDGEMENT, MailSettings
from tickets.replies.public_entries import PublicEntry
from tickets.replies.ticket_links import TicketLink
from tickets.ticket import checklists
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
    languages: Sequence[str] = (),
    asks_for_rating: bool = False,
    signature: str = "",
    zone: str = clock.UTC_NAME,
) -> LetterText:
    """Write an agent's answer. `earlier` are the messages before it, the newest first; the desk says how many go along.

    `desk` is the name of the desk, `left_out` are the names of files that the letter has no room for. The author's
    `signature` stands above the desk's. Times are in the `zone` of the desk.
    `link` leads to the ticket, and where the desk `asks_for_rating` to its form.
    """
    quoted = _fitting([one for one in earlier if one.body.strip()][: settings.history])  # some are files alone
    with in_language(known_language(*languages)):
        body = entry.body
        if left_out:
            names = {"names": ", ".join(left_out)}
            body += "\n\n" + _("Not attached: %(names)s. Please ask for it in another way.") % names
        links = _links(link, asks_for_rating=asks_for_rating)
        return _letter(
            desk, settings, number, title, body=body, quoted=quoted, links=links, signature=signature, zone=zone
        )


def acknowledgement(
    *,
    desk: str,
    settings: MailSettings,
    number: int,
    title: str,
    link: TicketLink | None = None,
    languages: Sequence[str] = (),
) -> LetterText:
    """Write that a message has arrived. It repeats nothing of it: an address may be forged, and would be sent that.
    The title stays, so that mail programs show one conversation, and no program makes a link of it."""
    with in_language(known_language(*languages)):
        body = settings.acknowledgement or _(ACKNOWLEDGEMENT)
        return _letter(desk, settings, number, plain_text.unlinked(title), body=body, quoted=[], links=_links(link))


def link_letter(
    *,
    desk: str,
    settings: MailSettings,
    number: int,
    title: str,
    link: TicketLink | None = None,
    languages: Sequence[str] = (),
) -> LetterText:
    """Write the letter with the link that a requester has asked for on the page of a ticket."""
    with in_language(known_language(*languages)):
        body = _("You have asked for this link. If you have not, ignore this message: nobody else gets the link.")
        return _letter(desk, settings, number, plain_text.unlinked(title), body=body, quoted=[], links=_links(link))


@dataclass(frozen=True)
class _Link:
    """A line of a letter that leads to a page."""

    label: str
    url: str


def _links(link: TicketLink | None, *, asks_for_rating: bool = False) -> list[_Link]:
    """Return the lines with links, in the language that is active. Opening one changes nothing: mail scanners do so."""
    if link is None:
        return []
    if link.is_to_all:
        url = page_for_mail(reverse("tickets:r_all", args=[link.token]))
        return [_Link(_("All your requests, for the next 30 minutes"), url)]
    url = page_for_mail(reverse("tickets:r_ticket", args=[link.token]))
    shown = [_Link(_("Read and answer this request on its page"), url)]
    if asks_for_rating:
        shown.append(_Link(_("Rate our help as good"), f"{url}?rating={Rating.GOOD}#rating"))
        shown.append(_Link(_("Rate our help as bad"), f"{url}?rating={Rating.BAD}#rating"))
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
    signature: str = "",
    zone: str = clock.UTC_NAME,
) -> LetterText:
    marker = _("Please reply above this line")  # quotes.py knows it in each language
    signature = "\n".join(filter(None, (signature, settings.signature or desk)))
    page: dict[str, Any] = {
        "language": locales.current().language,
        "marker": marker,
        "body": markdown.render(checklists.boxed(body)),
        "signature": signature,
        "number": number,
        "desk": desk,
        "links": links,
        "quoted": [
            {"name": one.author_name, "at": _moment(one.at, zone), "body": _shown(one), "is_plain": one.is_plain}
            for one in quoted
        ],
    }
    html = _inliner.inline(render_to_string("replies/mail/letter.html", page))
    led = [f"{one.label}:\n{one.url}" for one in links]
    sign = f"-- \n{signature}"
    text = "\n\n".join([f"-- {marker} --", body.strip(), *led, sign, *(_quote(one, zone) for one in quoted)])
    return LetterText(subject(number, title), text + "\n", html)


def subject(number: int, title: str) -> str:
    """Return the subject of all letters about a ticket, so that mail programs show them as one conversation. Without
    a title it is in the language that is active."""
    shown = re.sub(r"(?i)^(?:(?:re|aw|fw|fwd|wg)\s*:\s*)+", "", plain_text.without_controls(title, limit=150))
    unnamed = _("Your message")
    return f"Re: {shown or unnamed} [#{number}]"


def _shown(entry: PublicEntry) -> str:
    """Return the HTML of a message, or the text itself where it is plain."""
    return entry.body.strip() if entry.is_plain else markdown.render(checklists.boxed(entry.body))


def _fitting(entries: Sequence[PublicEntry]) -> list[PublicEntry]:
    kept, size = [], 0
    for one in entries:
        size += len(one.body.encode())
        if size > HISTORY_BYTES:
            break
        kept.append(one)
    return kept


def _moment(stamp: str, zone: str) -> str:
    """Write a moment as all who get the letter can read it: "2026-11-26 11:04 Europe/Berlin (UTC+1)"."""
    at = clock.parse(stamp)
    return f"{at.astimezone(clock.zone_of(zone)):%Y-%m-%d %H:%M} {clock.named(zone, at)}"


def _quote(entry: PublicEntry, zone: str) -> str:
    when = _moment(entry.at, zone)
    lines = "\n".join(f"> {line}".rstrip() for line in entry.body.strip().split("\n"))
    said = _("On %(when)s, %(name)s wrote:") % {"when": when, "name": entry.author_name}
    return f"{said}\n{lines}"
