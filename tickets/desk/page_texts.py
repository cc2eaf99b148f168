"""Show what people write: Markdown in which the numbers of tickets are links."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext
from markupsafe import Markup

from portal.web import locales
from portal.web.markdown import render
from tickets.desk.ticket_presenters import tickets_url
from tickets.ticket import checklists
from tickets.ticket.checklists import ChecklistItem
from tickets.ticket.fields import PLAIN

# A number of a ticket, as people write it, and the pieces of safe HTML: tags, attributes with what they hold, and text.
_NUMBER = re.compile(r"(?<![\w&/#])#([1-9][0-9]{0,14})(?!\w)")
_PIECES = re.compile(r"""(</?(\w+)(?:[^>"']|"[^"]*"|'[^']*')*>)""")
_VERBATIM = frozenset({"a", "code", "pre"})


TICKS: Final = "ticks"  # the id of the form that the boxes of checklists belong to


def ticket_text(text: str, ticks: str = "") -> Markup:
    """Return Markdown as safe HTML, in which #176 is a link to that ticket of the same desk and items of checklists
    have boxes. With `ticks`, "description" or what names a comment, the boxes are buttons of a form."""
    has_sign = "#" in text or "&num;" in text  # Markdown makes the one of the other
    return _shown(text, tickets_url() if has_sign else "", ticks, locales.current().language)


@lru_cache(maxsize=512)
def _shown(text: str, tickets_url: str, ticks: str, language: str) -> Markup:
    if not checklists.has_items(text):
        return _linked(text, tickets_url)
    html, items = str(_linked(checklists.marked(text), tickets_url)), checklists.items(text)

    def box(found: re.Match[str]) -> str:
        place = int(found[2])
        if place >= len(items) or not found[1]:  # in a block of code, say
            return f"{found[1] or ''}[{'x' if place < len(items) and items[place].is_ticked else ' '}]"
        return found[1].replace("<li>", '<li class="task">') + str(_box(items[place], ticks))

    return Markup(checklists.MARKED.sub(box, html))  # noqa: S704  # safe HTML, and boxes of ours


def _box(item: ChecklistItem, ticks: str) -> Markup:
    sign = "\u2611" if item.is_ticked else "\u2610"
    if not ticks:
        return Markup('<span class="tick" role="img" aria-label="{}">{}</span>').format(
            gettext("Done:") if item.is_ticked else gettext("Not done:"), sign
        )
    value = item.value if ticks == "description" else f"{item.value}.{ticks}"
    identity = re.sub(r"\W", "-", f"tick-{ticks}-{item.place}")  # focus stays on it when the page changes around it
    return Markup(
        '<button class="tick" type="submit" id="{}" form="{}" name="tick" value="{}" role="checkbox" '
        'aria-checked="{}" aria-label="{}">{}</button>'
    ).format(identity, TICKS, value, "true" if item.is_ticked else "false", item.words, sign)


def _linked(text: str, tickets_url: str) -> Markup:
    html = str(render(text))  # pieces of Markup would be escaped where they are joined
    if "#" not in html:
        return Markup(html)  # noqa: S704  # safe already
    parts, verbatim, at = [], 0, 0
    for piece in _PIECES.finditer(html):
        parts += [_with_links(html[at : piece.start()], tickets_url, verbatim), piece[0]]
        if piece[2] in _VERBATIM:
            verbatim += -1 if piece[0].startswith("</") else 1
        at = piece.end()
    parts.append(_with_links(html[at:], tickets_url, verbatim))
    return Markup("".join(parts))  # noqa: S704  # safe HTML, into which only addresses of ours were put


def _with_links(text: str, tickets_url: str, verbatim: int) -> str:
    return text if verbatim else _NUMBER.sub(rf'<a href="{tickets_url}\1/">#\1</a>', text)


GLOBALS: Final[dict[str, Any]] = {"plain_choices": PLAIN}
FILTERS: Final = {"ticket_text": ticket_text}
PIECES: Final = {
    "tickets/pieces.html": {
        "person": 4096,
        "priority": 64,
        "choice": 64,
        "status": 64,
        "row_tags": 1024,
        "row_count": 256,
    },
    "tickets/large_pieces.html": {"row_begins": 4096, "row_people": 4096, "entry_begins": 4096, "entry_actions": 1024},
}
