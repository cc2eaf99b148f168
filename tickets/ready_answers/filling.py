"""Fill the placeholders of a ready answer with a ticket's values, so that none of them can be markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _

from portal import plain_text
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tickets.ticket.fields import Channel
from tickets.ticket.stored import SummaryItem

# Each with what stands in its place where a ticket has no such value and the text names nothing else.
PLACEHOLDERS: Final[Mapping[str, str]] = {
    "requester": "there",
    "requester_first_name": "there",
    "ticket": "",
    "title": "your request",
    "desk": "",
    "me": "",
}
_TYPED_OUTSIDE: Final = ("requester", "requester_first_name", "title")
# A backslash before the brace makes it text, in Markdown too.
_PLACEHOLDER: Final = re.compile(r"(?<!\\)\{([A-Za-z_][A-Za-z0-9_]*)(?:\|([^{}\n]{0,80}))?\}")
_MARKUP: Final = re.compile(r"[\\`*\[\]<>~|{}&]|(?<!\w)_|_(?!\w)|^(?:[#+=-](?=[#=-]*(?:\s|$))|\d{1,9}(?=[.)]\s))")
_TITLES: Final = re.compile(r"(?:\w{1,5}\.\s+)+")  # "Dr. ", "Prof. Dr. "


def check(text: str) -> None:
    """Raise Invalid for a text with a placeholder that there is not."""
    for found in _PLACEHOLDER.finditer(text):
        if found[1] not in PLACEHOLDERS:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise Invalid(
                _("There is no placeholder {%(value)s}. Use %(known)s; write \\{ for a brace that is text.")
                % {"value": found[1], "known": known},
                field="body",
            )


def filled(
    tenant: TenantContext, summary: SummaryItem, text: str, *, is_plain: bool = False, is_unseen: bool = False
) -> str:
    """Return a text with the values of this ticket, and of whoever is at work, in place of its placeholders. In one
    that is plain they stand as they are, in Markdown so that they show as they are.

    One that leaves without anybody having seen it could carry a stranger's words to anybody: none of them is a link in
    it, and none is in it where nobody has proved the address, as with a form.
    """
    values = _values(tenant, summary)
    if is_unseen:
        is_proved = summary.channel != Channel.FORM
        values |= {name: plain_text.unlinked(values[name]) if is_proved else "" for name in _TYPED_OUTSIDE}
    shown = str if is_plain else escaped

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        return shown(values[found[1]]) or (found[2] if found[2] is not None else PLACEHOLDERS[found[1]])

    return _PLACEHOLDER.sub(value, text)


def _values(tenant: TenantContext, summary: SummaryItem) -> dict[str, str]:
    name = summary.requester_name
    if "@" in name:  # somebody of whom only the address is known
        name = ""
    return {
        "requester": name,
        "requester_first_name": first_name(name),
        "ticket": f"#{int(summary.number)}",
        "title": summary.title,
        "desk": tenant.name,
        "me": tenant.user_name,
    }


def first_name(name: str) -> str:
    """Return the name by which somebody is greeted: of "Example, Bob" and of "Dr. Bob Example" it is "Bob"."""
    last, comma, first = name.partition(",")
    words = _TITLES.sub("", (first if comma and first.strip() else last).strip(), count=1).split()
    return words[0] if words else ""


def escaped(value: str) -> str:
    """Return a value so that Markdown shows it as it is."""
    return _MARKUP.sub(lambda found: found[0] + "\\" if found[0].isdigit() else "\\" + found[0], value)
